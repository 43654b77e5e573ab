"""Powers: by products where the exponent is a constant integer, else by the target's function."""

from __future__ import annotations

import builtins
import math as _math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.numerics.build import bind
from tile_core.values import scalar
from tile_core.values.promotion import float_type
from tile_core.values.scalar import Number, Scalar, is_python
from tile_core.values.value import Value, as_value, derive, elementwise, promote


@elementwise
def pow(x: Scalar, y: Scalar) -> Number:
    """Return ``x ** y``: by products for constants up to 64, else by the target.

    Integers to a runtime or negative power are computed in ``float32`` (``float64`` for 64-bit ones).
    """
    if is_python(x) and is_python(y):
        return _python_pow(x, y)
    exponent = y if isinstance(y, int) else int(y) if isinstance(y, float) and y.is_integer() else None
    base = as_value(x, None if not isinstance(y, Value) or not is_python(x) else _weak(x, y))
    integral = not base.dtype.is_float and isinstance(y, int)
    if exponent is not None and builtins.abs(exponent) <= 64 and not (integral and exponent < 0):
        if not base.dtype.is_float and not integral:
            base = scalar.cast(base, float_type(base.dtype))
        return _product(base, exponent)
    a, b = promote(base, y)
    work = float_type(a.dtype)
    result = derive(tirx.pow(scalar.cast(a, work).expr, scalar.cast(b, work).expr), work, a, b)
    return scalar.cast(result, a.dtype) if a.dtype.is_float else result


def _python_pow(x: float, y: float) -> float:
    try:
        result = x**y
    except OverflowError:
        return _math.copysign(_math.inf, x) if y % 2 == 1 else _math.inf
    except ZeroDivisionError:
        return _math.inf
    return _math.nan if isinstance(result, complex) else result


def _weak(number: float, other: Value) -> DType:
    from tile_core.values.promotion import weak_type

    return weak_type(number, other.dtype)


def _product(base: Value, exponent: int) -> Value:
    if base.dtype == "bool":
        base = scalar.cast(base, DTYPES["int32"])
    narrow = base.dtype.is_float and base.dtype.bits < 32
    work = scalar.cast(base, DTYPES["float32"]) if narrow else base
    power = _power_expr(work.expr, builtins.abs(exponent), work.dtype)
    result = derive(power, work.dtype, work) if exponent else as_value(1, work.dtype)
    if exponent < 0:
        result = scalar.divide(as_value(1.0, work.dtype), result)
    return scalar.cast(result, base.dtype) if narrow and not base.dtype.is_narrow else result


def _power_expr(x: Expr, n: int, dtype: DType) -> Expr:
    """Return the product of ``n`` factors, squaring; every factor is computed once."""
    if n <= 1:
        return x
    multiply = tirx.Mul if dtype.is_float else lambda a, b: a * b

    def square(v: Var) -> Expr:
        half = _power_expr(multiply(v, v), n // 2, dtype)
        return multiply(half, v) if n % 2 else half

    return bind(x, square, "p")
