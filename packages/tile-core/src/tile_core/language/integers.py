"""Integer arithmetic: quotients by rounding direction, shifts and bits, of any sign.

Overflow wraps; a quotient and a remainder by zero are 0 (see ``passes/divisions.py``).
"""

from __future__ import annotations

import builtins
from typing import TypeVar

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.errors.naming import naming
from tile_core.values import scalar
from tile_core.values.checks import argument
from tile_core.values.intervals import interval
from tile_core.values.value import Index, Number, Scalar, Value, as_value, derive, elementwise, promote

Divisor = TypeVar("Divisor", bound=Number)


@elementwise
def ceildiv(a: Index, b: Index) -> Index:
    """Return the quotient of integers rounded up; a Python int of Python ints."""
    if not _runtime(a, b):
        return -(-a // _nonzero("ceildiv", b))
    x, y = _integers("ceildiv", a, b)
    divisor = scalar.constant_of(y)
    if divisor is not None and divisor > 0 and _has_headroom(x, divisor):
        return derive(tirx.ceildiv(x.expr, y.expr), x.dtype, x, y)
    # The sum of dividend and divisor may overflow.
    quotient, rest = scalar.floordiv(x, y), scalar.floormod(x, y)
    if divisor is not None and divisor > 0:
        one = as_value(1, x.dtype)
        return quotient + derive(tirx.Min(rest.expr, one.expr), x.dtype, rest)
    return quotient + scalar.cast(scalar.compare(tirx.NE, rest, 0), x.dtype)


@elementwise
@naming("align_up")
def align_up(a: Index, b: Index) -> Index:
    """Return the least multiple of ``b`` not below ``a``: ``ceildiv(a, b) * b``."""
    return ceildiv(a, b) * b


@elementwise
def floordiv(a: Number, b: Number) -> Number:
    """Return the quotient rounded down."""
    return scalar.floordiv(a, b) if _runtime(a, b) else a // _nonzero("floordiv", b)


@elementwise
def floormod(a: Number, b: Number) -> Number:
    """Return the remainder with the sign of ``b``.

    For floats it is ``a - floor(a / b) * b``: inexact for huge quotients.
    """
    return scalar.floormod(a, b) if _runtime(a, b) else a % _nonzero("floormod", b)


@elementwise
def truncdiv(a: Scalar, b: Scalar) -> Number:
    """Return the quotient rounded towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        return _quotient(a, b)
    x, y = _integers("truncdiv", a, b)
    return scalar.integer_quotient(tirx.truncdiv, _quotient, x, y)


@elementwise
def truncmod(a: Scalar, b: Scalar) -> Number:
    """Return the remainder with the sign of ``a``."""
    if isinstance(a, int) and isinstance(b, int):
        return _remainder(a, b)
    x, y = _integers("truncmod", a, b)
    return scalar.integer_quotient(tirx.truncmod, _remainder, x, y)


def _quotient(a: int, b: int) -> int:
    size = builtins.abs(a) // builtins.abs(_nonzero("truncdiv", b))
    return size if (a >= 0) == (b >= 0) else -size


def _remainder(a: int, b: int) -> int:
    return a - _quotient(a, b) * b


def _runtime(a: Scalar, b: Scalar) -> bool:
    """Whether an operand is a kernel value, or not a Python integer.

    A placeholder for a size not yet known (``T.const`` before the declarations) has Python's operators.
    """
    unknown = [x for x in (a, b) if not isinstance(x, int)]
    return any(not getattr(x, "is_unknown_size", False) for x in unknown)


def _has_headroom(x: Value, divisor: int) -> bool:
    """Whether dividend plus divisor fits: symbolic sizes leave headroom for a tile (K422)."""
    if x.reads or x.dtype.kind != "int" or x.dtype.bits < 32:
        return False
    most = 2 ** (x.dtype.bits - 1) - 1
    least, greatest = interval(x.expr)
    return least > -most and greatest <= most - divisor


def _integers(name: str, a: Scalar, b: Scalar) -> tuple[Value, Value]:
    x, y = promote(a, b)
    if x.dtype == "bool":
        x, y = scalar.cast(x, DTYPES["int32"]), scalar.cast(y, DTYPES["int32"])
    if not x.dtype.is_integer:
        raise argument(name, "an operand", f"a {x.dtype} value", "integers", "cast the operands")
    scalar.refuse_zero(f"T.{name}", y)
    return x, y


def _nonzero(name: str, b: Divisor) -> Divisor:
    if isinstance(b, int) and b == 0:
        raise argument(name, "the divisor", "0", "another number", "check the block sizes")
    return b


@elementwise
def shift_left(a: Scalar, b: Scalar) -> Number:
    """Return ``a << b`` in the type of ``a`` or of a wider runtime count.

    It is 0 when the count is the width or more.
    """
    return a << b if isinstance(a, int) and isinstance(b, int) else scalar.shift("left", a, b)


@elementwise
def shift_right(a: Scalar, b: Scalar) -> Number:
    """Return ``a >> b``, arithmetic for signed types.

    The type is that of ``a`` or of a wider runtime count.
    """
    return a >> b if isinstance(a, int) and isinstance(b, int) else scalar.shift("right", a, b)


@elementwise
def bitwise_and(a: Scalar, b: Scalar) -> Number:
    """Return ``a & b``."""
    return a & b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("and", a, b)


@elementwise
def bitwise_or(a: Scalar, b: Scalar) -> Number:
    """Return ``a | b``."""
    return a | b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("or", a, b)


@elementwise
def bitwise_xor(a: Scalar, b: Scalar) -> Number:
    """Return ``a ^ b``."""
    return a ^ b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("xor", a, b)


@elementwise
def bitwise_not(a: Scalar) -> Number:
    """Return ``~a``."""
    return ~a if isinstance(a, int) else ~as_value(a)


@elementwise
def popcount(x: Scalar) -> Number:
    """Return the number of set bits as ``int32``; of Python ints a Python int.

    A negative Python int has the bits of an ``int32``, or of an ``int64`` if it does not fit.
    """
    if isinstance(x, int):
        return (x if x >= 0 else x % 2 ** (32 if x >= -(2**31) else 64)).bit_count()
    value = as_value(x)
    scalar.need_integer("T.popcount", value)
    unsigned = scalar.cast(value, DTYPES["uint64" if value.dtype.bits == 64 else "uint32"])
    if value.dtype.kind == "int" and value.dtype.bits < 32:
        unsigned = unsigned & (2**value.dtype.bits - 1)
    return scalar.cast(derive(tirx.popcount(unsigned.expr), unsigned.dtype, value), DTYPES["int32"])
