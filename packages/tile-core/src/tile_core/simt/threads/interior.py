"""Write loops over a thread's elements twice: without their conditions where all elements meet them.

A tail, a mask or a programmer's own ``if c < N:`` is a condition of each element, although most blocks have elements of
one outcome only. The conditions are monotone in the loops' variables, so that one element decides for all: a thread
whose elements all meet them executes loops without tests, whose loads are independent and wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import VECTOR
from tile_core.ir.visit import StmtRewriter, annotation, collect, renamed, replace_for, role, uses_var
from tile_core.simt.memory.alignment import view_roots
from tile_core.simt.memory.lane_conditions import LaneConditions, negated
from tile_core.simt.memory.vector_bodies import evaluated, leading_conditions, parts_of, with_outcome

__all__ = ["split_interior"]

#: Accesses of a thread one after the other, at least: for fewer of them one test saves little.
_LEAST = 4
#: Conditions of a loop nest that are decided together.
_MOST = 4
#: Operations of all iterations, at most: they are written twice.
_SIZE = 4096


def split_interior(body: Stmt) -> Stmt:
    """Write the loop nests of a thread twice where that removes conditions."""
    return _SplitInterior(view_roots(body)).stmt(body)


class _SplitInterior(StmtRewriter):
    def __init__(self, roots: Mapping[BufferVar, BufferVar]) -> None:
        self.roots = roots

    def visit_For(self, s: Stmt) -> Stmt:
        nest = _nest(s)
        # The lanes of a vector are decided where vectors are made.
        trips = [int(nodes.as_int(loop.extent)) for loop in nest if not annotation(loop, VECTOR)]
        if prod(trips) < _LEAST or any(nodes.is_tile_call(c) for c in collect(s, ir.Call)):
            return super().visit_For(s)
        found = _interior(nest, self.roots)
        size = prod(trips) * len(collect(s, (tirx.BufferStore, tirx.Bind, ir.TensorLoad)))
        if found is None or size > _SIZE:
            return super().visit_For(s)
        corner, inner = found
        for loop in reversed(nest):
            inner = replace_for(loop, inner)
        return tirx.IfThenElse(corner, renamed(inner), s, s.span)


def _nest(s: Stmt) -> list[Stmt]:
    """Return a thread's loops of constant extents around a body, from the outermost."""
    found = []
    # The loops over the grid stay as they are: they become the launch.
    while (
        type(s) is tirx.For
        and role(s) != "grid"
        and isinstance(nodes.as_int(s.extent), int)
        and nodes.as_int(s.min) == 0
    ):
        if s.step is not None and nodes.as_int(s.step) != 1:
            return []
        found.append(s)
        s = s.body
    return found


def _interior(nest: list[Stmt], roots: Mapping[BufferVar, BufferVar]) -> tuple[Expr, Stmt] | None:
    """Return the condition for a body without tests, and that body."""
    body, corners = nest[-1].body, list[Expr]()
    written = {roots.get(x.buffer, x.buffer) for x in collect(body, tirx.BufferStore)}
    own = {x.var for x in collect(body, (tirx.Bind, tirx.Let))}
    if not any(nodes.scope_of(x.source) != "local" for x in collect(body, ir.TensorLoad)) and not is_choosing(body):
        return None
    while len(corners) < _MOST:
        for condition in leading_conditions(body):
            if own.intersection(collect(condition, tirx.Var)) or collect(condition, ir.Call):
                continue
            if any(roots.get(x.source, x.source) in written for x in collect(condition, ir.TensorLoad)):
                continue
            outcome = _favoured(body, condition)
            corner = None if outcome is None else _corner(condition, outcome, nest)
            if corner is not None:
                corners.append(corner)
                body = with_outcome(body, condition, bool(outcome))
                break
        else:
            break
    return (tirx.all(*corners), body) if corners else None


def is_choosing(body: Stmt) -> bool:
    """Whether a body chooses between values, with instructions for each element."""
    calls = collect(body, ir.Call)
    return bool(collect(body, tirx.Select)) or any(nodes.operator_name(c) == "if_then_else" for c in calls)


def _corner(condition: Expr, outcome: bool, nest: list[Stmt]) -> Expr | None:
    """Return a condition under which all iterations have an outcome."""
    found = condition if outcome else negated(condition)
    if found is None or not any(uses_var(found, loop.loop_var) for loop in nest if not annotation(loop, VECTOR)):
        return None
    for loop in nest:
        lanes = LaneConditions(loop.loop_var, int(nodes.as_int(loop.extent)), {})
        found = lanes.every(found)
        if found is None or nodes.as_int(lanes.analyzer.simplify(found)) == 0:
            return None
    return found


def _favoured(body: Stmt, condition: Expr) -> bool | None:
    """Return the outcome under which an element is computed, neither skipped nor constant."""
    for s in parts_of(body):
        if isinstance(s, tirx.IfThenElse) and _decides(s.condition, condition):
            return True if s.else_case is None else None
        if isinstance(s, (tirx.BufferStore, tirx.Bind)):
            for e in evaluated(s):
                if isinstance(e, ir.TensorLoad):
                    continue
                test, *sides = (e.condition, e.true_value, e.false_value) if isinstance(e, tirx.Select) else e.args
                if _decides(test, condition):
                    constant = [isinstance(x, (tirx.FloatImm, tirx.IntImm)) for x in sides]
                    return None if constant[0] == constant[1] else constant[1]
    return None


def _decides(whole: Expr, condition: Expr) -> bool:
    """Whether a condition is a test or the first side of a conjunction."""
    if whole.same_as(condition):
        return True
    return isinstance(whole, tirx.And) and _decides(whole.a, condition)
