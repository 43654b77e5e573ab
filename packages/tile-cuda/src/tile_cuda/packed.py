"""Packed arithmetic of 16-bit floats, and conversions of two numbers by one instruction.

Every architecture has the multiply-add of bfloat16, which is also its sum and product: ``a * 1 + b`` is exact before
its one rounding, and adding -0 changes no product, not the sign of a zero either.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import calls
from tile_core.passes.pack_floats import PackedFloats
from tile_core.target import Target
from tile_cuda.target import BF16_ARITHMETIC, FP8_MMA

_KINDS = {"float16": "f16x2", "bfloat16": "bf16x2"}
_FLOAT8 = {"float8_e4m3fn": "e4m3x2", "float8_e5m2": "e5m2x2"}
_EXTREMES = {"max": "max", "min": "min", "max_nan": "max_NaN", "min_nan": "min_NaN"}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq")
#: The table of ``lop3`` for ``(a & b) ^ c``. The assembler makes two instructions of it where b and c are constants.
_AND_XOR = (0xF0 & 0xCC) ^ 0xAA
#: Words of two bfloat16.
_ONES, _MINUS_ZEROS = 0x3F803F80, 0x80008000


def packed_floats(target: Target) -> PackedFloats:
    """Return the instructions of a target."""
    operations: dict[tuple[str, str], Callable[..., Expr]] = {}
    for dtype, kind in _KINDS.items():
        operations |= {(dtype, name): _word(f"{op}_{kind}") for name, op in _EXTREMES.items()}
        operations |= {(dtype, name): _word(f"set_{name}_u32_{kind}") for name in _COMPARISONS}
        operations |= {(dtype, name): _word(f"{name}_rn_{kind}") for name in ("add", "sub", "mul", "fma")}
    operations |= {("float16", name): _word(f"{name}_f16x2") for name in ("abs", "neg")}
    operations["bfloat16", "abs"] = lambda x: tirx.bitwise_and(x, tirx.IntImm("uint32", 0x7FFF7FFF))
    operations["bfloat16", "neg"] = lambda x: tirx.bitwise_xor(x, tirx.IntImm("uint32", _MINUS_ZEROS))
    if not target.capabilities.fact(BF16_ARITHMETIC):
        for name in _COMPARISONS:
            del operations["bfloat16", name]
        operations |= _by_fma(operations["bfloat16", "fma"])
    has_float8 = target.capabilities.fact(FP8_MMA)
    return PackedFloats(
        join={dtype: _joined(f"cvt_rn_{kind}_f32", "uint32") for dtype, kind in _KINDS.items()},
        operations=operations,
        decode={dtype: _word(f"cvt_rn_f16x2_{kind}") for dtype, kind in _FLOAT8.items() if has_float8},
        encode={dtype: _joined(f"cvt_rn_{kind}_f32", "uint16") for dtype, kind in _FLOAT8.items() if has_float8},
        masked=_word(f"lop3_b32_{_AND_XOR:02x}"),
    )


def _word(name: str) -> Callable[..., Expr]:
    return lambda *args: calls.instruction(name, list(args), "uint32")


def _joined(name: str, result: str) -> Callable[[Expr, Expr], Expr]:
    """Return a function of the low and the high number, as instructions take them."""
    return lambda low, high: calls.instruction(name, [high, low], result)


def _by_fma(fma: Callable[..., Expr]) -> dict[tuple[str, str], Callable[..., Expr]]:
    def word(value: int) -> Expr:
        return tirx.IntImm("uint32", value)

    return {
        ("bfloat16", "add"): lambda a, b: fma(a, word(_ONES), b),
        ("bfloat16", "sub"): lambda a, b: fma(b, word(_ONES | _MINUS_ZEROS), a),
        ("bfloat16", "mul"): lambda a, b: fma(a, b, word(_MINUS_ZEROS)),
    }
