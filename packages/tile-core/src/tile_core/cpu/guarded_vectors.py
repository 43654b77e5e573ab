"""Vectors of a loop with conditions: decided around each vector where its lanes agree.

A vector whose lanes all meet a condition runs in lanes; of another one, each lane tests the condition::

    for o in 0 … n / 8:
        if base + 8 * o + 7 < N: a vector
        else: for v in 0 … 7: if base + 8 * o + v < N: a scalar
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, renamed, replace_for, uses_var
from tile_core.simt.memory.lane_conditions import LaneConditions, negated
from tile_core.simt.memory.vector_bodies import leading_conditions, with_outcome

#: Conditions that are decided one inside the other.
_MOST_CHOICES = 3
#: Conditions, and statements, of a loop whose conditions are decided: each one doubles the copies of the body.
_MOST_CONDITIONS = 4
_MOST_STATEMENTS = 40


def decided(
    loop: Stmt, lanes: int, divisors: Mapping[Var, int], has_form: Callable[[Stmt], bool], most: int = _MOST_CHOICES
) -> Stmt | None:
    """Return one vector with its conditions decided around it, or ``None`` without a vector form.

    Parameters
    ----------
    loop
        The lanes, as a loop whose variable counts from 0.
    lanes
        Their number.
    divisors
        Divisors of variables.
    has_form
        Whether a loop has a vector form.
    most
        Conditions that may be decided one inside the other.
    """
    if has_form(loop):
        return loop
    own = {x.var for x in collect(loop.body, (tirx.Bind, tirx.Let))}
    written = {s.buffer for s in collect(loop.body, tirx.BufferStore)}
    known = LaneConditions(loop.loop_var, lanes, divisors)
    for c in _conditions(loop.body) if most else []:
        loads = collect(c, ir.TensorLoad)
        if own.intersection(collect(c, tirx.Var)) or collect(c, ir.Call):
            continue
        if any(x.source in written or uses_var(x, loop.loop_var) for x in loads):
            continue
        every, opposite = known.every(c), negated(c)
        if every is None or nodes.as_int(known.analyzer.simplify(every)) == 0:
            continue
        agreed = known.uniform(c) is not None
        never = every if agreed else None if opposite is None else known.every(opposite)
        sides = [replace_for(loop, with_outcome(loop.body, c, side)) for side in (True, False)]
        vectors = [decided(side, lanes, divisors, has_form, most - 1) for side in sides]
        if vectors[0] is not None:
            return _branches(loop, every, never, agreed, sides, vectors)
    return None


def _conditions(body: Stmt) -> list[Expr]:
    if len(collect(body, (tirx.BufferStore, tirx.Bind, tirx.IfThenElse))) > _MOST_STATEMENTS:
        return []
    found = list(leading_conditions(body))
    return found if len(found) <= _MOST_CONDITIONS else []


def _branches(
    loop: Stmt, every: Expr, never: Expr | None, agreed: bool, sides: list[Stmt], vectors: list[Stmt | None]
) -> Stmt:
    """Return the vectors for the outcomes of a condition, and separate lanes otherwise."""
    empty = nodes.is_nop(sides[1].body)
    if agreed:
        other = None if empty else vectors[1] or sides[1]
    else:
        other = loop
        if empty and never is not None and negated(never) is not None:
            other = tirx.IfThenElse(negated(never), loop, None, loop.span)
        if not empty and vectors[1] is not None and never is not None:
            other = tirx.IfThenElse(never, renamed(vectors[1]), other, loop.span)
    return tirx.IfThenElse(every, vectors[0], None if other is None else renamed(other), loop.span)
