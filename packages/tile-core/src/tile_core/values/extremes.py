"""Absolute values, extremes and limits of scalars."""

from __future__ import annotations

import builtins
import math as _math
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.numerics.build import bind
from tile_core.values import scalar
from tile_core.values.promotion import float_type
from tile_core.values.value import as_value, derive, promote

_PYTHON = (bool, int, float)


def abs(x: Any) -> Any:
    """Return the absolute value; for the least integer of a type it is that integer, by wrapping."""
    if type(x) in _PYTHON:
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


def max(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the greatest; a number beats NaN unless ``nan_propagate``, and +0 beats -0 (``numerics/rules.py``)."""
    return _extreme("max", (a, b, *more), nan_propagate)


def min(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the least; a number beats NaN unless ``nan_propagate``, and -0 beats +0 (``numerics/rules.py``)."""
    return _extreme("min", (a, b, *more), nan_propagate)


def _extreme(name: str, items: tuple[Any, ...], nan_propagate: bool) -> Any:
    result = items[0]
    for item in items[1:]:
        result = _extreme2(name, result, item, nan_propagate)
    return result


def _extreme2(name: str, a: Any, b: Any, nan_propagate: bool) -> Any:
    if type(a) in _PYTHON and type(b) in _PYTHON:
        numbers = [x for x in (a, b) if x == x]
        if len(numbers) < 2:
            return (_math.nan if nan_propagate else numbers[0]) if numbers else _math.nan
        return builtins.max(a, b) if name == "max" else builtins.min(a, b)
    x, y = promote(a, b)
    if not x.dtype.is_float:
        return derive((tirx.Max if name == "max" else tirx.Min)(x.expr, y.expr), x.dtype, x, y)
    from tile_core.numerics.extremes import float_extreme

    return derive(float_extreme(name, x.expr, y.expr, nan_propagate), x.dtype, x, y)


def clamp(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` limited to [``low``, ``high``] in the type of ``x``; NaN stays NaN."""
    if all(type(v) in _PYTHON for v in (x, low, high)):
        return x if x != x else builtins.min(builtins.max(x, low), high)
    x, low = promote(x, low)
    x, high = promote(x, high)
    low = scalar.cast(low, x.dtype)
    from tile_core.numerics.minmax import clamp_expr

    return derive(clamp_expr(x.expr, low.expr, high.expr), x.dtype, x, low, high)
