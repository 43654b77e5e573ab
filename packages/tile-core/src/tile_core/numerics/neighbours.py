"""``copysign`` and ``nextafter`` on bits: the same on every target and type."""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.dtypes import DType
from tile_core.numerics.build import bind, cast, constants, equal, select

__all__ = ["copysign_expr", "nextafter_expr"]


def copysign_expr(x: Expr, y: Expr, dtype: DType) -> Expr:
    """Return the magnitude of ``x`` with ``y``'s sign, for floats of 16 bits up."""
    k, word = constants(_word(dtype), x), _word(dtype)
    sign = 1 << (dtype.bits - 1)
    bits = (_bits(x, dtype) & k(sign - 1)) | (_bits(y, dtype) & k(_signed(sign, dtype)))
    return _number(bits, dtype, word)


def nextafter_expr(x: Expr, y: Expr, dtype: DType) -> Expr:
    """Return the next number after ``x`` towards ``y``: bits increase with magnitude."""
    word = _word(dtype)
    return bind(_bits(x, dtype), lambda u: bind(_bits(y, dtype), lambda v: _next(u, v, dtype, word), "v"), "u")


def _next(u: Var, v: Var, dtype: DType, word: str) -> Expr:
    k = constants(word, u)
    sign = 1 << (dtype.bits - 1)
    size, other = u & k(sign - 1), v & k(sign - 1)
    infinity = ((1 << dtype.exponent) - 1) << dtype.mantissa
    same_sign = (u ^ v) & k(_signed(sign, dtype))
    away = tirx.And(equal(same_sign, k(0)), size < other)
    moved = select(away, u + k(1), u - k(1))
    least = (v & k(_signed(sign, dtype))) | k(1)
    moved = select(equal(size, k(0)), least, moved)
    moved = select(tirx.Or(equal(u, v), equal(size | other, k(0))), v, moved)
    nan = tirx.Or(size > k(infinity), other > k(infinity))
    return _number(select(nan, k(infinity | (1 << (dtype.mantissa - 1))), moved), dtype, word)


def _word(dtype: DType) -> str:
    """Return a signed integer with the bits, of at least 32 bits against overflow."""
    return "int64" if dtype.bits == 64 else "int32"


def _signed(sign: int, dtype: DType) -> int:
    """The sign bit as a constant of ``_word``."""
    return sign if dtype.bits == 16 else sign - (1 << dtype.bits)


def _bits(x: Expr, dtype: DType) -> Expr:
    if dtype.bits == 16:
        return cast("int32", tirx.reinterpret("uint16", x))
    return tirx.reinterpret(f"int{dtype.bits}", x)


def _number(bits: Expr, dtype: DType, word: str) -> Expr:
    name = str(dtype)
    return tirx.reinterpret(name, cast("uint16", bits) if dtype.bits == 16 else bits)
