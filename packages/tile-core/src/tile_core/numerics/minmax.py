"""``max``, ``min``, ``clamp`` and ``round`` with the NaN and zero rules of ``tile_core.numerics.rules``.

TVM folds ``max(1, nan)`` and ``max(nan, 1)`` to different constants, and code generators disagree as well, so floats
are ordered here by comparisons that are false for NaN, with NaN detected by its bits.
"""

from __future__ import annotations

import math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.numerics.build import bind, bits_of, cast, constant, float_of, is_nan, select, type_name
from tile_core.numerics.ordered import is_larger
from tile_runtime.numerics.formats import IEEE

__all__ = ["clamp_expr", "max_expr", "min_expr", "round_away_expr"]


def max_expr(a: Expr, b: Expr, nan_propagate: bool = False, flushed: bool = False) -> Expr:
    """The larger of ``a`` and ``b`` (same type; float or integer), expanded.

    With ``nan_propagate`` a NaN on either side wins; without, the other side does. +0 is larger than -0. ``flushed``
    indicates that comparisons may flush subnormal numbers to zero, so that equal numbers may have other bits.
    """
    return _extreme(a, b, nan_propagate, True, flushed)


def min_expr(a: Expr, b: Expr, nan_propagate: bool = False, flushed: bool = False) -> Expr:
    """The smaller of ``a`` and ``b``; see ``max_expr``."""
    return _extreme(a, b, nan_propagate, False, flushed)


def clamp_expr(value: Expr, low: Expr | None, high: Expr | None) -> Expr:
    """Clamp ``value`` to ``low`` and ``high``; a limit may be missing, NaN stays NaN.

    Integers are the analyzer's own minimum and maximum: such indices are often proved to be inside.
    """
    if not type_name(value).startswith(("float", "bfloat")):
        above = value if low is None else tirx.Max(value, low)
        return above if high is None else tirx.Min(above, high)
    above = value if low is None else bind(value, lambda v: select(v < low, low, v), "v")
    return above if high is None else bind(above, lambda v: select(v > high, high, v), "v")


def round_away_expr(value: Expr) -> Expr:
    """``value`` rounded to an integer, ties away from zero; ``tirx.round`` rounds ties to even."""

    def nearest(x: Expr) -> Expr:
        name, whole = type_name(x), tirx.trunc(x)
        step = select(x < constant(0.0, name, x), constant(-1.0, name, x), constant(1.0, name, x))
        far = tirx.abs(tirx.Sub(x, whole)) >= constant(0.5, name, x)  # the difference is exact
        return select(far, tirx.Add(whole, step), whole)

    return bind(value, nearest, "x")


def _extreme(a: Expr, b: Expr, nan_propagate: bool, largest: bool, flushed: bool) -> Expr:
    short = None if nan_propagate else _beside_constant(a, b, largest)
    if short is not None:
        return short
    return bind(a, lambda x: bind(b, lambda y: _pick(x, y, nan_propagate, largest, flushed), "b"), "a")


def _beside_constant(a: Expr, b: Expr, largest: bool) -> Expr | None:
    """Use one comparison, which suffices for most constants: NaN yields the constant."""
    node = tirx.GT if largest else tirx.LT
    for other, value in ((a, b), (b, a)):
        if isinstance(other, tirx.FloatImm) and _decides(float(other.value), largest):
            return bind(value, lambda v: select(node(v, other), v, other))  # noqa: B023 - used at once
    return None


def _decides(number: float, largest: bool) -> bool:
    """Whether the constant is correct unless exceeded: not a NaN or the lesser zero."""
    if number == 0:
        return (math.copysign(1.0, number) > 0) == largest
    return number == number


def _pick(a: Expr, b: Expr, nan_propagate: bool, largest: bool, flushed: bool) -> Expr:
    if not type_name(a).startswith(("float", "bfloat")):
        return tirx.Max(a, b) if largest else tirx.Min(a, b)
    if type_name(a) not in IEEE:  # bfloat16: exact in float32, and back
        wide = _pick(cast("float32", a), cast("float32", b), nan_propagate, largest, flushed)
        return cast(type_name(a), wide)
    above, below = (a, b) if largest else (b, a)
    if flushed and type_name(a) != "float16":
        same = select(is_larger(a, b), above, below)
    else:
        # Equal values have equal bits, except for the two zeros: their AND is +0 and their OR is -0.
        same = float_of(bits_of(a) & bits_of(b) if largest else bits_of(a) | bits_of(b))
    number = select(a > b, above, select(a < b, below, same))
    if nan_propagate:
        return select(is_nan(a), a, select(is_nan(b), b, number))
    return select(is_nan(a), b, select(is_nan(b), a, number))
