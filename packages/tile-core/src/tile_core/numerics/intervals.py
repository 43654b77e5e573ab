"""Interval analysis of float expressions: least and greatest value, and whether NaN is possible.

Precise enough to prove that a clamped number fits into 8 bits and that a loop's variable times a half fits into 32. An
unknown expression may have any value of its type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.dtypes import DTYPES, largest
from tile_core.ir import nodes
from tile_core.numerics.build import type_name
from tile_core.numerics.truncation import limits_of
from tile_core.records import dataclass

__all__ = ["Interval", "Intervals"]


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``, and NaN if ``nan``."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = True

    @property
    def finite(self) -> bool:
        """Whether no value is infinite or NaN."""
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)

    def fits(self, dtype: str) -> bool:
        """Whether every value, rounded towards zero, fits into an integer type."""
        low, high = limits_of(dtype)
        return not self.nan and self.low > low - 1 and self.high < high + 1


def _of_type(dtype: str) -> Interval:
    kind = DTYPES[dtype]
    if kind.is_integer:
        low, high = limits_of(dtype)
        return Interval(float(low), float(high), False)
    if not kind.is_narrow:
        return Interval()
    if kind.form is not None and kind.form.has_infinity:
        return Interval()
    top = largest(kind)
    return Interval(-top if kind.has_zero else 0.0, top, kind.has_nan)


_WHOLE: Mapping[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "nearbyint": round,
}
_UNIT = frozenset({"sin", "cos", "tanh", "erf"})
_FLIPPED = {tirx.LT: tirx.GT, tirx.LE: tirx.GE, tirx.GT: tirx.LT, tirx.GE: tirx.LE}
_OPPOSITE = {tirx.LT: tirx.GE, tirx.LE: tirx.GT, tirx.GT: tirx.LE, tirx.GE: tirx.LT}


class Intervals:
    """Finds intervals of expressions.

    Parameters
    ----------
    analyzer
        TVM's analyzer, with the ranges of loop variables.
    values
        The bindings of variables.
    """

    def __init__(self, analyzer: Any, values: Mapping[Var, Var]) -> None:
        self.analyzer = analyzer
        self.values = dict(values)
        self.known: dict[Expr, Interval] = {}

    def of(self, e: Expr) -> Interval:
        """Return the interval of a float or integer expression."""
        dtype = type_name(e)
        if dtype not in DTYPES:
            return Interval()
        if DTYPES[dtype].kind != "float":
            return self.integer(e, dtype)
        method = getattr(self, type(e).__name__.lower(), None)
        found: Interval | None = method(e) if method is not None else None
        return _of_type(dtype) if found is None else found

    def integer(self, e: Expr, dtype: str) -> Interval:
        """Return the interval of an integer, as a float of any type holds it."""
        if dtype == "bool":
            return Interval(0.0, 1.0, False)
        bound, whole = self.analyzer.const_int_bound(e), _of_type(dtype)
        return Interval(max(float(bound.min_value), whole.low), min(float(bound.max_value), whole.high), False)

    # One method for each supported kind of node; ``None`` means any value of the type.

    def floatimm(self, e: Expr) -> Interval:
        """Return the interval of a constant."""
        value = float(e.value)
        return Interval() if math.isnan(value) else Interval(value, value, False)

    def broadcast(self, e: Expr) -> Interval:
        """Return the interval of equal lanes."""
        return self.of(e.value)

    def cast(self, e: Expr) -> Interval | None:
        """Return the interval of a conversion: rounding keeps the order of numbers."""
        target = DTYPES[type_name(e)]
        found = self.of(e.value)
        if target.is_narrow or target.bits < 16:
            return None
        top = largest(target)
        if found.low < -top or found.high > top:
            return Interval(-math.inf, math.inf, found.nan)
        return _rounded(found, str(target))

    def var(self, e: Expr) -> Interval | None:
        """Return the interval of a variable's value."""
        if e in self.known:
            return self.known[e]
        if e not in self.values:
            return None
        found = self.known[e] = self.of(self.values[e])
        return found

    def let(self, e: Expr) -> Interval:
        """Return the interval of a body with a binding."""
        self.values[e.var] = e.value
        return self.of(e.body)

    def add(self, e: Expr) -> Interval | None:
        """Return the interval of a sum."""
        return self.combined(e, lambda x, y: x + y)

    def sub(self, e: Expr) -> Interval | None:
        """Return the interval of a difference."""
        return self.combined(e, lambda x, y: x - y)

    def mul(self, e: Expr) -> Interval | None:
        """Return the interval of a product."""
        return self.combined(e, lambda x, y: x * y)

    def div(self, e: Expr) -> Interval | None:
        """Return the interval of a quotient."""
        b = self.of(e.b)
        return self.combined(e, lambda x, y: x / y) if b.low > 0 or b.high < 0 else None

    def combined(self, e: Expr, operation: Callable[[float, float], float]) -> Interval | None:
        """Return the interval of an operation whose extremes are among those of the corners."""
        a, b = self.of(e.a), self.of(e.b)
        if not (a.finite and b.finite):
            return None
        corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return _rounded(Interval(min(corners), max(corners), False), type_name(e))

    def select(self, e: Expr) -> Interval:
        """Return the interval of a select, with a variable refined on each side."""
        return self.choice(e.condition, e.true_value, e.false_value)

    def choice(self, condition: Expr, yes: Expr, no: Expr) -> Interval:
        """Return the interval of either side."""
        sides = []
        for side, holds in ((yes, True), (no, False)):
            before = dict(self.known)
            self.narrow(condition, holds)
            sides.append(self.of(side))
            self.known = before
        a, b = sides
        return Interval(min(a.low, b.low), max(a.high, b.high), a.nan or b.nan)

    def narrow(self, condition: Expr, holds: bool) -> None:
        """Refine by a comparison of a variable with a constant, false for NaN."""
        kind = type(condition)
        if kind not in _FLIPPED:
            return
        var, bound = condition.a, condition.b
        if not isinstance(var, tirx.Var):
            var, bound, kind = condition.b, condition.a, _FLIPPED[kind]
        if not isinstance(var, tirx.Var) or DTYPES[type_name(var)].kind != "float":
            return
        limit = self.of(bound)
        if limit.nan:
            return
        old = self.of(var)
        if holds:
            old = replace(old, nan=False)
        else:
            kind = _OPPOSITE[kind]
        if kind in (tirx.LT, tirx.LE):
            self.known[var] = replace(old, high=min(old.high, limit.high))
        else:
            self.known[var] = replace(old, low=max(old.low, limit.low))

    def call(self, e: Expr) -> Interval | None:
        """Return the interval of a function's value."""
        name = nodes.operator_name(e).removeprefix("tirx.").removeprefix("prim.")
        if name == "if_then_else":
            return self.choice(*e.args)
        if name.startswith(("tile.float_max", "tile.float_min")):
            return self.extreme(name, *(self.of(x) for x in e.args))
        if name in _UNIT:
            return Interval(-1.0, 1.0, True)
        if name == "sigmoid":
            return Interval(0.0, 1.0, True)
        if name == "fabs":
            x = self.of(e.args[0])
            return Interval(0.0, max(abs(x.low), abs(x.high)), x.nan)
        if name in _WHOLE:
            x = self.of(e.args[0])
            ends = [v if math.isinf(v) else float(_WHOLE[name](v)) for v in (x.low, x.high)]
            return Interval(ends[0], ends[1], x.nan)
        return None

    def extreme(self, name: str, a: Interval, b: Interval) -> Interval:
        """Return the interval of a maximum or minimum, where a NaN may lose."""
        nan = a.nan or b.nan if name.endswith("_nan") else a.nan and b.nan
        largest_of = name.startswith("tile.float_max")
        low, high = (max(a.low, b.low), max(a.high, b.high)) if largest_of else (min(a.low, b.low), min(a.high, b.high))
        for this, other in ((a, b), (b, a)):
            if this.nan:
                low, high = min(low, other.low), max(high, other.high)
        return Interval(low, high, nan)


def _rounded(x: Interval, dtype: str) -> Interval:
    """Return the interval that holds every value after it was rounded to a float type."""
    unit = 2.0 ** -DTYPES[dtype].mantissa
    tiny = 2.0**-14
    low, high = (v + sign * (abs(v) * unit + tiny) for v, sign in ((x.low, -1), (x.high, 1)))
    return Interval(min(x.low, low), max(x.high, high), x.nan)
