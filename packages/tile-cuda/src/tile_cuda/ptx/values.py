"""Bit representation of an element type's values, and the combination of two values."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.records import dataclass
from tile_cuda.ptx.instruction import REGISTERS


@dataclass(frozen=True)
class PtxValue:
    """An element type in C++.

    Attributes
    ----------
    name
        As PTX writes it: ``"s8"``, ``"bf16"``.
    ctype
        Its C++ type.
    register
        Class of its register.
    bits
        Its width.
    to_bits, from_bits
        Forms of the conversion to an unsigned integer of the same width, or of 32 bits, and back.
    wide, back
        For types that are stored alone, the conversion to float32 and back.
    """

    name: str
    ctype: str
    register: str
    bits: int
    to_bits: str = "({u}){x}"
    from_bits: str = "({t}){x}"
    wide: str = ""
    back: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer."""
        return self.name[0] in "su"

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of functions that `combine` calls."""
        return (self.wide, self.back) if self.wide else ()

    def encode(self, text: str) -> str:
        """Return the bits of a value, as an unsigned of 32 or 64 bits."""
        wide = REGISTERS["l" if self.bits == 64 else "r"]
        return self.to_bits.format(u=wide, x=text)

    def decode(self, text: str) -> str:
        """Return the value of bits."""
        return self.from_bits.format(t=self.ctype, x=text)

    def combine(self, kind: str, a: str, b: str) -> str:
        """Return ``sum``, ``max`` or ``min`` of two values; narrow integers wrap, NaN is ignored."""
        if self.wide:
            return f"{self.back}({_FLOAT.combine(kind, f'{self.wide}({a})', f'{self.wide}({b})')})"
        if kind == "sum":
            return self._narrowed(f"{a} + {b}")
        if not self.is_integer:
            return f"f{kind}{'f' if self.bits == 32 else ''}({a}, {b})"
        return f"{a} {'>' if kind == 'max' else '<'} {b} ? {a} : {b}"

    def _narrowed(self, text: str) -> str:
        return f"({self.ctype})({text})" if self.bits < 32 else text


_FLOAT = PtxValue("f32", "float", "f", 32, "__float_as_uint({x})", "__uint_as_float({x})")

VALUES: Mapping[str, PtxValue] = {
    "int8": PtxValue("s8", "signed char", "h", 8),
    "uint8": PtxValue("u8", "unsigned char", "h", 8),
    "int16": PtxValue("s16", "short", "h", 16),
    "uint16": PtxValue("u16", "unsigned short", "h", 16),
    "int32": PtxValue("s32", "int", "r", 32),
    "uint32": PtxValue("u32", "unsigned", "r", 32, "{x}", "{x}"),
    "int64": PtxValue("s64", "long long", "l", 64),
    "uint64": PtxValue("u64", "unsigned long long", "l", 64, "{x}", "{x}"),
    "float16": PtxValue("f16", "f16", "h", 16, wide="cvt_f32_f16", back="cvt_rn_f16_f32"),
    "bfloat16": PtxValue("bf16", "bf16", "h", 16, wide="cvt_f32_bf16", back="cvt_rn_bf16_f32"),
    "float32": _FLOAT,
    "float64": PtxValue("f64", "double", "d", 64, "(unsigned long long)__double_as_longlong({x})",
                     "__longlong_as_double((long long){x})"),
}  # fmt: skip
"""By the element type's name."""
