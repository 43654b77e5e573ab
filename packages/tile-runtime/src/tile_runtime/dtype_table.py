"""The table of element types: every fact about each of them, once.

No NumPy and no TVM here: ``dtypes``, ``numerics.formats`` and the names of ``T`` derive from it. New rows go to the
end: the conformance suite and the fuzzer choose types by position.
"""

from __future__ import annotations

import math

from tile_runtime.records import dataclass


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
    def bits(self) -> int:
        """Width of a code, sign included."""
        return self.exponent + self.mantissa + (1 if self.signed else 0)

    @property
    def maximum(self) -> float:
        """The largest finite value."""
        field, fraction = divmod(self.largest, 1 << self.mantissa)
        return math.ldexp(fraction + (1 << self.mantissa), field - self.bias - self.mantissa)


def _ieee(exponent: int, mantissa: int) -> Format:
    """Return a format whose greatest exponent is that of infinities and NaN."""
    bias, infinity = (1 << (exponent - 1)) - 1, ((1 << exponent) - 1) << mantissa
    return Format(exponent, mantissa, bias, infinity - 1, infinity, infinity, infinity | 1 << (mantissa - 1))


def _fnuz(exponent: int, mantissa: int, bias: int) -> Format:
    """Return a format without infinities and negative zero, whose code is the only NaN."""
    nan = 1 << (exponent + mantissa)
    return Format(exponent, mantissa, bias, nan - 1, nan, nan, nan, unsigned_zero=True)


_E4M3FN = Format(4, 3, 7, 0x7E, 0x7F, 0x7F, 0x7F)
_E2M1FN = Format(2, 1, 1, 0x7, 0x7, 0x7, 0x0, has_nan=False)


@dataclass(frozen=True)
class ElementType:
    """One element type.

    Attributes
    ----------
    name, kind, bits
        As in ``DType``.
    dlpack
        Its type code in DLPack; -1 without one.
    storage
        The type whose bits hold an element in memory, if not the type itself.
    form
        The layout of a float's bits.
    tolerance
        Relative and absolute tolerance of ``kernel.verify``; the default is one unit of three mantissa bits.
    words
        Other names in ``T``.
    aliases
        Other names in text.
    """

    name: str
    kind: str
    bits: int
    dlpack: int
    storage: str = ""
    form: Format | None = None
    tolerance: tuple[float, float] = (0.13, 0.02)
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


TABLE = (
    ElementType("bool", "bool", 8, 6, aliases=("bool_",)),
    ElementType("int8", "int", 8, 0, aliases=("char",)),
    ElementType("int16", "int", 16, 0, words=("short",)),
    ElementType("int32", "int", 32, 0, words=("int",)),
    ElementType("int64", "int", 64, 0, words=("long",)),
    ElementType("uint8", "uint", 8, 1, aliases=("uchar",)),
    ElementType("uint16", "uint", 16, 1, aliases=("ushort",)),
    ElementType("uint32", "uint", 32, 1, words=("uint",)),
    ElementType("uint64", "uint", 64, 1, aliases=("ulong",)),
    ElementType("int4", "int", 4, 0, "uint8"),
    ElementType("uint4", "uint", 4, 1, "uint8"),
    ElementType("float64", "float", 64, 2, "", _ieee(11, 52), (1e-9, 1e-9), ("double",)),
    ElementType("float32", "float", 32, 2, "", _ieee(8, 23), (1e-4, 1e-5), ("float",), ("fp32",)),
    ElementType("tfloat32", "float", 32, -1, "float32", _ieee(8, 10), (1e-2, 1e-3), (), ("tf32",)),
    ElementType("float16", "float", 16, 2, "", _ieee(5, 10), (1e-2, 1e-3), ("half",), ("fp16",)),
    ElementType("bfloat16", "float", 16, 4, "uint16", _ieee(8, 7), (2e-2, 1e-2), (), ("bf16",)),
    ElementType("float8_e4m3fn", "float", 8, 10, "uint8", _E4M3FN, words=("float8_e4m3",), aliases=("e4m3",)),
    ElementType("float8_e4m3fnuz", "float", 8, 11, "uint8", _fnuz(4, 3, 8)),
    ElementType("float8_e5m2", "float", 8, 12, "uint8", _ieee(5, 2), aliases=("e5m2",)),
    ElementType("float8_e5m2fnuz", "float", 8, 13, "uint8", _fnuz(5, 2, 16)),
    ElementType("float8_e8m0fnu", "float", 8, 14, "uint8", Format(8, 0, 127, 0xFE, 0xFF, 0xFF, 0xFF, signed=False)),
    ElementType("float4_e2m1fn", "float", 4, 17, "uint8", _E2M1FN, aliases=("float4_e2m1fn_x2",)),
)

#: Other names of types in ``T`` -> the type.
WORDS = {word: row.name for row in TABLE for word in row.words}
#: Other names of types in text -> the type.
ALIASES = {alias: row.name for row in TABLE for alias in (*row.words, *row.aliases)}
