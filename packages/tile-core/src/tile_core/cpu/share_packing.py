"""Pack operands once for all blocks of a grid, where several blocks pack the same.

The blocks of a product that differ in one coordinate pack the same part of A or of B. Such packing moves in front of
the grid: into loops over the coordinates and iterations that it depends on, with a panel for each of them. It may move
if it reads only tensors that the kernel never writes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import field

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.attributes import PACKING
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, role, substitute
from tile_core.records import dataclass

__all__ = ["packing", "share_packing"]

#: The most bytes of the panels of one operand.
_MOST_BYTES = 1 << 29


def packing(*steps: Stmt) -> Stmt:
    """Mark statements that fill panels from operands, and do nothing else."""
    return nodes.mark(PACKING, 0, nodes.seq([*steps]))


def share_packing(body: Stmt, params: Collection[Var]) -> Stmt:
    """Move shared packing in front of the grid, and drop all marks of packing.

    Parameters
    ----------
    body
        A program whose grid is not fused yet.
    params
        Its parameters and symbols.
    """
    if not any(s.attr_key == PACKING for s in collect(body, tirx.AttrStmt)):
        return body
    return _SharePacking(body, frozenset(params)).stmt(body)


@dataclass(eq=False)
class _PackingStep:
    """One statement that packs, and its way from the grid.

    Attributes
    ----------
    mark
        The statement.
    loops
        The loops around it, outermost first.
    conditions
        The conditions under which it runs.
    used
        Those loops on which it depends.
    panels
        The buffers that it fills, with those that replace them.
    """

    mark: Stmt
    loops: list[Stmt]
    conditions: list[Expr]
    used: list[Stmt] = field(default_factory=list)
    panels: dict[BufferVar, BufferVar] = field(default_factory=dict)


class _SharePacking(StmtRewriter):
    """Moves packing in front of each grid, and drops the marks of other packing."""

    def __init__(self, whole: Stmt, params: frozenset[Var]) -> None:
        self.params = params
        stores = collect(whole, tirx.BufferStore)
        calls = [c for s in collect(whole, tirx.Evaluate) if not _reads_only(s) for c in collect(s.value, tirx.Var)]
        self.written = {s.buffer for s in stores} | set(calls)
        self.aliased = {v for d in collect(whole, tirx.DeclBuffer) for v in (d.buffer, *collect(d.data, tirx.Var))}
        self.uses = Counter(collect(whole, tirx.Var))

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return s.body if s.attr_key == PACKING else super().visit_AttrStmt(s)

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return super().visit_For(s)
        found = _FindPacking()
        found.stmt(s)
        filled = Counter(b for p in found.packings for b in _stored(p.mark.body))
        moved = [p for p in found.packings if self.moves(p) and all(filled[panel] == 1 for panel in p.panels)]
        if not moved:
            return _MovePacking([]).stmt(s)
        move = _MovePacking(moved)
        rest = move.stmt(s)
        allocations = [tirx.AllocBuffer(panel) for p in moved for panel in p.panels.values()]
        return nodes.seq([*allocations, *map(move.shared, moved), rest])

    def moves(self, p: _PackingStep) -> bool:
        """Whether a statement may move and saves work; finds its loops and panels."""
        inside = Counter(collect(p.mark.body, tirx.Var))
        bound = {s.loop_var for s in collect(p.mark.body, tirx.For)}
        bound |= {s.var for s in collect(p.mark.body, tirx.Bind)}
        stored = _stored(p.mark.body)
        panels = [b for b in stored if self.uses[b] > inside[b]]
        loads = {e.source for e in collect(p.mark.body, ir.TensorLoad)} - stored
        if loads & (self.written | self.aliased) or not loads <= self.params or set(panels) & self.aliased:
            return False
        around = {loop.loop_var: loop for loop in p.loops}
        free = {v for v in inside if v not in bound and v not in stored and v not in loads}
        if not self.kept(p, free, set(around)) or not free <= set(around) | self.params:
            return False
        p.used = [loop for loop in p.loops if loop.loop_var in free]
        if not all(isinstance(nodes.as_int(x.extent), int) and nodes.as_int(x.min) == 0 for x in p.loops):
            return False
        others = [x for x in p.loops if x.loop_var not in free]
        saved = math.prod(int(nodes.as_int(x.extent)) for x in others if role(x) == "grid")
        count = math.prod(int(nodes.as_int(loop.extent)) for loop in p.used)
        for buffer in panels:
            if count * nodes.bytes_of(buffer) > _MOST_BYTES:
                return False
            shape, dtype = (count, *nodes.shape_of(buffer)), nodes.element_type(buffer)
            p.panels[buffer] = tirx.decl_buffer(shape, dtype, buffer.name, scope="global", layout=None)
        return saved > 1

    def kept(self, p: _PackingStep, free: set[Var], loops: set[Var]) -> bool:
        """Keep the conditions on what a statement depends on; whether the others concern nothing else."""
        conditions = []
        for condition in p.conditions:
            names = set(collect(condition, tirx.Var))
            if collect(condition, (ir.TensorLoad, ir.Call)) or not names <= loops | self.params:
                return False
            if names & loops <= free:
                conditions.append(condition)
            elif names & loops & free:
                return False
        p.conditions = conditions
        return True


class _FindPacking(StmtRewriter):
    """Finds the statements that pack."""

    def __init__(self) -> None:
        self.packings: list[_PackingStep] = []
        self.loops: list[Stmt] = []
        self.conditions: list[Expr] = []

    def visit_For(self, s: Stmt) -> Stmt:
        self.loops.append(s)
        self.stmt(s.body)
        self.loops.pop()
        return s

    def visit_While(self, s: Stmt) -> Stmt:
        return s

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        for condition, branch in ((s.condition, s.then_case), (tirx.Not(s.condition), s.else_case)):
            if branch is not None:
                before = len(self.conditions)
                self.conditions += _conjuncts(condition)
                self.stmt(branch)
                del self.conditions[before:]
        return s

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key != PACKING:
            return super().visit_AttrStmt(s)
        self.packings.append(_PackingStep(s, [*self.loops], [*self.conditions]))
        return s


class _MovePacking(StmtRewriter):
    """Removes packing that has moved, and reads its panels."""

    def __init__(self, moved: list[_PackingStep]) -> None:
        self.moved = moved
        self.panels = {old: (new, _index(p.used)) for p in moved for old, new in p.panels.items()}

    def shared(self, p: _PackingStep) -> Stmt:
        """Return the loops in front of the grid."""
        body = super().body(p.mark.body)
        if p.conditions:
            body = tirx.IfThenElse(tirx.all(*p.conditions), body, None)
        own = {x.loop_var: nodes.fresh(x.loop_var.name, nodes.dtype_of(x.loop_var)) for x in p.used}
        body = substitute(body, own)
        for loop in reversed(p.used):
            body = nodes.for_loop(own[loop.loop_var], loop.extent, body, "grid", span=loop.span)
        return body

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key != PACKING:
            return super().visit_AttrStmt(s)
        return nodes.seq([]) if any(p.mark.same_as(s) for p in self.moved) else s.body

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.panels else s

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        if e.source not in self.panels:
            return e
        new, at = self.panels[e.source]
        return tirx.BufferLoad(new, [at, *e.indices], e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        s = super().visit_BufferStore(s)
        if s.buffer not in self.panels:
            return s
        new, at = self.panels[s.buffer]
        return tirx.BufferStore(new, s.value, [at, *s.indices], s.span)


def _stored(s: Stmt) -> set[BufferVar]:
    return {store.buffer for store in collect(s, tirx.BufferStore)}


def _index(loops: list[Stmt]) -> Expr:
    """Return the number of an iteration of nested loops."""
    at: Expr = nodes.int_const(0)
    for loop in loops:
        at = at * int(nodes.as_int(loop.extent)) + nodes.cast(loop.loop_var, "int32")
    return at


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, tirx.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _reads_only(s: Stmt) -> bool:
    """Whether a statement of one call leaves all buffers in it as they are."""
    return nodes.operator_name(s.value) == "prefetch"
