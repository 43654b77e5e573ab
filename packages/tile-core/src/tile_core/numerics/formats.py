"""The bit layouts of the float types, as data.

No NumPy and no TVM here: codecs and expressions both read it.
"""

from __future__ import annotations

from tile_core.records import dataclass


@dataclass(frozen=True)
class Format:
    """One binary float layout: a sign bit (but see ``signed``), ``exponent`` bits, ``mantissa`` bits.

    Codes are magnitudes, without the sign bit, unless ``unsigned_zero`` marks the special codes as whole.

    Attributes
    ----------
    exponent, mantissa, bias
        Field widths, and the bias of the exponent.
    largest
        Code of the largest finite value.
    overflow, infinity, nan
        Codes that finite overflow, infinity and NaN become.
    unsigned_zero
        The "fnuz" forms: no negative zero, and its code is the only NaN.
    signed
        False only for e8m0, which has neither sign nor zero.
    has_nan
        False only for float4, where a NaN becomes a zero.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    infinity: int
    nan: int
    unsigned_zero: bool = False
    signed: bool = True
    has_nan: bool = True

    @property
    def sign(self) -> int:
        """The sign bit of a code; 0 without a sign."""
        return 1 << (self.exponent + self.mantissa) if self.signed else 0

    @property
    def has_infinity(self) -> bool:
        """Whether the format represents infinities."""
        return self.infinity == self.largest + 1 and self.nan > self.infinity

    @property
    def code_bits(self) -> int:
        """Width of a code, sign included."""
        return self.exponent + self.mantissa + (1 if self.signed else 0)


FORMATS: dict[str, Format] = {
    "float16": Format(5, 10, 15, 0x7BFF, 0x7C00, 0x7C00, 0x7E00),
    "bfloat16": Format(8, 7, 127, 0x7F7F, 0x7F80, 0x7F80, 0x7FC0),
    "tfloat32": Format(8, 10, 127, 0x3FBFF, 0x3FC00, 0x3FC00, 0x3FE00),
    "float8_e4m3fn": Format(4, 3, 7, 0x7E, 0x7F, 0x7F, 0x7F),
    "float8_e4m3fnuz": Format(4, 3, 8, 0x7F, 0x80, 0x80, 0x80, unsigned_zero=True),
    "float8_e5m2": Format(5, 2, 15, 0x7B, 0x7C, 0x7C, 0x7E),
    "float8_e5m2fnuz": Format(5, 2, 16, 0x7F, 0x80, 0x80, 0x80, unsigned_zero=True),
    "float8_e8m0fnu": Format(8, 0, 127, 0xFE, 0xFF, 0xFF, 0xFF, signed=False),
    "float4_e2m1fn": Format(2, 1, 1, 0x7, 0x7, 0x7, 0x0, has_nan=False),
}
"""Float types that are encoded by bit arithmetic."""

EVERY: dict[str, Format] = FORMATS | {
    "float32": Format(8, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7F800000, 0x7FC00000),
    "float64": Format(11, 52, 1023, 0x7FEF << 48 | (1 << 48) - 1, 0x7FF << 52, 0x7FF << 52, 0xFFF << 51),
}
"""All float types."""


@dataclass(frozen=True)
class Wide:
    """An IEEE source format: field widths and names of its float and integer types."""

    bits: int
    mantissa: int
    bias: int

    @property
    def infinity(self) -> int:
        """Bits of +infinity."""
        return (2 * self.bias + 1) << self.mantissa


IEEE: dict[str, Wide] = {"float16": Wide(16, 10, 15), "float32": Wide(32, 23, 127), "float64": Wide(64, 52, 1023)}
"""Types that targets compute with."""

WIDE: dict[str, Wide] = {name: IEEE[name] for name in ("float32", "float64")}
"""Types that codes are decoded to and encoded from."""
