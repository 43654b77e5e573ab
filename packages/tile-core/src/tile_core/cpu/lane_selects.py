"""Select values of choices in parallel loops, where both may be computed.

Vectors compare and blend instead of testing each lane.

``T.if_then_else`` evaluates one of its values. A choice between values that can be computed in any case becomes a
select, where its condition differs between iterations. A load may be made in any case if each of its indices is within
a dimension that every iteration accesses there::

    for j in 0 … 1023: y[r, j] = exp(x[r, j]) if mask[r, j] > 0 else 0
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Call, Expr, Key, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, replace_for, role, statements, uses_var
from tile_core.numerics.build import type_name
from tile_core.simt.memory.vector_bodies import evaluated, evaluated_in

__all__ = ["select_lanes"]

_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)
#: Functions that have vectors, besides arithmetic operators.
_TOTAL = frozenset({"reinterpret", "floor", "sqrt"})
_OPERATORS = (nodes.FLOAT_PREFIX, "tile.wrapping_")
#: An index and the extent of its dimension.
Reached = dict[Key, list[Expr]]


def select_lanes(body: Stmt) -> Stmt:
    """Return the program with selects in its innermost parallel loops."""
    return _SelectLanes().stmt(body)


class _SelectLanes(StmtRewriter):
    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "parallel" or collect(s.body, tirx.For):
            return super().visit_For(s)
        if not any(map(_is_choice, collect(s.body, ir.Call))):
            return s
        return replace_for(s, _Reached(s.loop_var, {}).rewritten(s.body))


class _Reached:
    """Statements that execute one after the other, with the accesses that each execution makes."""

    def __init__(self, lane: Var, outside: Reached) -> None:
        self.lane = lane
        self.reached = {key: list(extents) for key, extents in outside.items()}

    def rewritten(self, body: Stmt) -> Stmt:
        parts = list(statements(body))
        for s in parts:
            if isinstance(s, tirx.BufferStore):
                self.reach(s.buffer, s.indices)
            if isinstance(s, (tirx.BufferStore, tirx.Bind)):
                self.reach_all(evaluated(s))
            elif isinstance(s, tirx.IfThenElse):
                self.reach_all(evaluated_in(s.condition))
        return nodes.seq([self.statement(s) for s in parts])

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, tirx.IfThenElse):
            sides = [
                None if x is None else _Reached(self.lane, self.reached).rewritten(x)
                for x in (s.then_case, s.else_case)
            ]
            return tirx.IfThenElse(s.condition, *sides, s.span)
        if isinstance(s, tirx.BufferStore):
            return tirx.BufferStore(s.buffer, map_expr(s.value, self.choose, ir.Call), list(s.indices), s.span)
        return tirx.Bind(s.var, map_expr(s.value, self.choose, ir.Call), s.span) if isinstance(s, tirx.Bind) else s

    def reach_all(self, found: list[Expr]) -> None:
        for x in found:
            if isinstance(x, ir.TensorLoad):
                self.reach(x.source, x.indices)

    def reach(self, buffer: BufferVar, indices: list[Expr]) -> None:
        for index, extent in zip(indices, buffer.shape, strict=True):
            self.reached.setdefault(_key(index), []).append(extent)

    def choose(self, e: Call) -> Expr:
        if not _is_choice(e):
            return e
        condition, *values = e.args
        if not uses_var(condition, self.lane) or not all(map(self.is_total, values)):
            return e
        return tirx.Select(condition, *values, e.span)

    def is_total(self, e: Expr) -> bool:
        """Whether an expression may be evaluated where the program does not."""
        calls = (nodes.operator_name(c) for c in collect(e, ir.Call))
        if not all(name in _TOTAL or name.startswith(_OPERATORS) for name in calls):
            return False
        if any(type_name(d).startswith(("int", "uint")) for d in collect(e, _DIVISIONS)):
            return False
        return all(self.is_reached(x.source, x.indices) for x in collect(e, ir.TensorLoad))

    def is_reached(self, buffer: BufferVar, indices: list[Expr]) -> bool:
        def inside(index: Expr, size: Expr) -> bool:
            at, most = nodes.as_int(index), nodes.as_int(size)
            if isinstance(at, int) and isinstance(most, int):
                return 0 <= at < most
            return any(_fits(known, size) for known in self.reached.get(_key(index), []))

        return all(map(inside, indices, buffer.shape))


def _is_choice(e: Call) -> bool:
    return nodes.operator_name(e) == "if_then_else"


def _fits(known: Expr, size: Expr) -> bool:
    """Whether an index of a dimension of one size is within another one."""
    a, b = nodes.as_int(known), nodes.as_int(size)
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return bool(tvm_ffi.structural_equal(known, size, map_free_vars=False))


def _key(e: Expr) -> Key:
    return tvm_ffi.StructuralKey((e,))
