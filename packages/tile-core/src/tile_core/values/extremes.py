"""Absolute values, extremes and limits of scalars."""

from __future__ import annotations

import builtins
import math as _math
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.numerics.build import bind
from tile_core.values import scalar
from tile_core.values.checks import argument
from tile_core.values.promotion import float_type
from tile_core.values.scalar import Number, Scalar, is_python
from tile_core.values.value import as_value, derive, elementwise, promote


@elementwise
def abs(x: Scalar) -> Number:
    """Return the absolute value; the least integer of a type wraps to itself."""
    if is_python(x):
        return builtins.abs(x)
    value = as_value(x)
    if value.dtype.kind == "uint" or value.dtype == "bool":
        return value
    if value.dtype.is_integer:
        zero = nodes.zero(str(value.dtype))
        size = bind(value.expr, lambda v: tirx.Select(tirx.LT(v, zero), tirx.Sub(zero, v), v))
        return derive(size, value.dtype, value)
    wide = scalar.cast(value, float_type(value.dtype))
    result = derive(tirx.abs(wide.expr), wide.dtype, value, wide)
    return result if value.dtype.is_narrow else scalar.cast(result, value.dtype)


@elementwise
def max(a: Scalar, b: Scalar, *more: Scalar, nan_propagate: bool = False) -> Number:
    """Return the greatest; a number beats NaN unless ``nan_propagate``, and +0 beats -0."""
    return _extreme("max", (a, b, *more), nan_propagate)


@elementwise
def min(a: Scalar, b: Scalar, *more: Scalar, nan_propagate: bool = False) -> Number:
    """Return the least; a number beats NaN unless ``nan_propagate``, and -0 beats +0."""
    return _extreme("min", (a, b, *more), nan_propagate)


def _extreme(name: str, items: tuple[Scalar, ...], nan_propagate: bool) -> Number:
    result = _extreme2(name, items[0], items[1], nan_propagate)
    for item in items[2:]:
        result = _extreme2(name, result, item, nan_propagate)
    return result


def _extreme2(name: str, a: Scalar, b: Scalar, nan_propagate: bool) -> Number:
    if is_python(a) and is_python(b):
        numbers = [x for x in (a, b) if x == x]
        if len(numbers) < 2:
            return (_math.nan if nan_propagate else numbers[0]) if numbers else _math.nan
        return builtins.max(a, b) if name == "max" else builtins.min(a, b)
    x, y = promote(a, b)
    if x.dtype == "bool":
        return scalar.bitwise("or" if name == "max" else "and", x, y)
    if not x.dtype.is_float:
        return derive((tirx.Max if name == "max" else tirx.Min)(x.expr, y.expr), x.dtype, x, y)
    from tile_core.numerics.extremes import float_extreme

    return derive(float_extreme(name, x.expr, y.expr, nan_propagate), x.dtype, x, y)


@elementwise
def clamp(x: Scalar, min_val: Scalar | None = None, max_val: Scalar | None = None) -> Number:
    """Return ``x`` limited to ``min_val`` and ``max_val``, as ``numpy.clip`` computes it.

    Where ``min_val`` is larger than ``max_val``, that is ``max_val``. NaN stays NaN; ``None`` is no limit, nor is NaN.

    Raises
    ------
    BadArgument
        If there is no limit at all.
    """
    if min_val is None and max_val is None:
        raise argument("clamp", "min_val", "None, and max_val too", "a limit", "give min_val, max_val or both")
    if is_python(x) and all(limit is None or is_python(limit) for limit in (min_val, max_val)):
        numbers: Any = (x, min_val, max_val)
        return _clamped(*numbers)
    least = None if min_val is None else promote(x, min_val)
    value = as_value(x) if least is None else least[0]
    most = None if max_val is None else promote(value, max_val)
    value = value if most is None else most[0]
    bounds = [None if pair is None else scalar.cast(pair[1], value.dtype) for pair in (least, most)]
    if value.dtype == "bool":
        low, high = bounds
        above = value if low is None else scalar.bitwise("or", value, low)
        return above if high is None else scalar.bitwise("and", above, high)
    from tile_core.numerics.minmax import clamp_expr

    exprs = [None if bound is None else bound.expr for bound in bounds]
    return derive(clamp_expr(value.expr, *exprs), value.dtype, value, *bounds)


def _clamped(x: float, low: float | None, high: float | None) -> float:
    x = x if x != x or low is None else builtins.max(x, low)
    return x if x != x or high is None else builtins.min(x, high)
