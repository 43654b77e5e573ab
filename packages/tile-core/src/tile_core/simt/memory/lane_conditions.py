"""Conditions over the lanes of a vector: uniform, or decided by one lane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr, substitute, uses_var
from tile_core.numerics.build import type_name
from tile_core.simt.memory.alignment import factor

__all__ = ["LaneConditions", "negated"]

_LESS = (tirx.LT, tirx.LE)
_GREATER = (tirx.GT, tirx.GE)
_COMPARISONS = (*_LESS, *_GREATER, tirx.EQ, tirx.NE)
_OPPOSITE: dict[type, Any] = {
    tirx.LT: tirx.GE, tirx.GE: tirx.LT, tirx.LE: tirx.GT, tirx.GT: tirx.LE, tirx.EQ: tirx.NE, tirx.NE: tirx.EQ,
}  # fmt: skip


class LaneConditions:
    """The lanes of a vector: the values 0, 1, … of a variable.

    Parameters
    ----------
    var
        The variable.
    count
        The number of lanes.
    divisors
        Divisors of other variables.
    """

    def __init__(self, var: Var, count: int, divisors: Mapping[Var, int]) -> None:
        self.var, self.count, self.divisors = var, count, divisors
        self.analyzer = Analyzer()
        self.analyzer.bind(var, ir.Range.from_min_extent(0, count))

    def at(self, e: Expr, lane: int) -> Expr:
        """Return the form of an expression in one lane."""
        found = substitute(e, {self.var: nodes.int_const(lane, nodes.dtype_of(self.var))})
        # The operators fold constants.
        return map_expr(found, lambda x: x.a + x.b if type(x) is tirx.Add else x.a * x.b, (tirx.Add, tirx.Mul))

    def uniform(self, condition: Expr) -> Expr | None:
        """Return a condition without the lane, if provably all lanes agree on it."""
        if not uses_var(condition, self.var):
            return condition
        if isinstance(condition, (tirx.And, tirx.Or)):
            sides = [self.uniform(x) for x in (condition.a, condition.b)]
            return None if None in sides else type(condition)(*sides)
        if isinstance(condition, tirx.Not):
            inner = self.uniform(condition.a)
            return None if inner is None else tirx.Not(inner)
        if not _compares_integers(condition):
            return None
        same = self.difference(condition)
        return self.at(condition, 0) if same is not None and self.agree(condition, *same) else None

    def agree(self, comparison: Expr, step: int, first: Expr) -> bool:
        """Whether all lanes agree on a comparison of ``first + step * lane`` with 0."""
        if step == 0:
            return True
        if isinstance(comparison, (tirx.EQ, tirx.NE)):
            return False
        # Of the differences, which grow by |step|, the least decides where it is a multiple of all that they span.
        strict = isinstance(comparison, (tirx.LT, tirx.GE))
        least = first + (min(step, 0) * (self.count - 1) - (0 if strict else 1))
        return factor(self.analyzer.simplify(least), self.divisors) % (abs(step) * self.count) == 0

    def every(self, condition: Expr) -> Expr | None:
        """Return a condition without the lane that implies a condition in all lanes, if any."""
        found = self.uniform(condition)
        if found is not None:
            return found
        if isinstance(condition, tirx.And):
            a, b = self.every(condition.a), self.every(condition.b)
            return None if a is None or b is None else tirx.And(a, b)
        if isinstance(condition, tirx.Or):
            # A lane may evaluate the second side only because the first one is false.
            second = None if collect(condition.b, ir.TensorLoad) else self.every(condition.b)
            first = self.every(condition.a)
            return second if first is None else first if second is None else tirx.Or(first, second)
        if isinstance(condition, tirx.Not):
            opposite = negated(condition.a)
            return None if opposite is None else self.every(opposite)
        if not isinstance(condition, (*_LESS, *_GREATER)) or not _compares_integers(condition):
            return None
        found = self.difference(condition)
        if found is None:
            return None
        last = (found[0] > 0) == isinstance(condition, _LESS)
        return self.at(condition, self.count - 1 if last else 0)

    def difference(self, comparison: Expr) -> tuple[int, Expr] | None:
        """Return the step of the sides' difference from lane to lane, and its first value.

        ``None`` if it is not linear.
        """
        a, b = (self.without_lane(x) for x in (comparison.a, comparison.b))
        moved = a - b
        hidden = collect(moved, (ir.TensorLoad, ir.Call))
        if any(uses_var(x, self.var) for x in hidden):
            return None
        form = linear_form(moved, [self.var])
        return None if form is None else (form.steps[0], form.rest)

    def without_lane(self, side: Expr) -> Expr:
        """Return a side of a comparison, simplified where quotients and remainders depend on the lane.

        Divisors of variables become visible: ``n`` with the divisor 8 is replaced by ``8 * (n / 8)``.
        """
        divisions = [x for x in collect(side, (tirx.FloorDiv, tirx.FloorMod)) if uses_var(x, self.var)]
        if not divisions:
            return side
        known = {v: self.divisors.get(v, 1) for v in collect(side, tirx.Var) if not v.same_as(self.var)}
        multiples = {v: nodes.fresh(str(v.name), nodes.dtype_of(v)) * f for v, f in known.items() if f > 1}
        shown = self.analyzer.simplify(substitute(side, multiples))
        # The fresh variables stand for quotients: they are not divisors of anything known.
        return shown if not uses_var(shown, self.var) else side


def negated(condition: Expr) -> Expr | None:
    """Return the opposite of a condition without ``not`` around comparisons, if possible."""
    if isinstance(condition, tirx.Not):
        return condition.a
    if isinstance(condition, (tirx.And, tirx.Or)):
        a, b = negated(condition.a), negated(condition.b)
        other = tirx.Or if isinstance(condition, tirx.And) else tirx.And
        return None if a is None or b is None else other(a, b)
    if isinstance(condition, _COMPARISONS) and _compares_integers(condition):
        return _OPPOSITE[type(condition)](condition.a, condition.b)
    return None


def _compares_integers(e: Expr) -> bool:
    return isinstance(e, _COMPARISONS) and type_name(e.a).startswith("int") and type_name(e.b) == type_name(e.a)
