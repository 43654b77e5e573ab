"""Barriers of a program's own: initialised before their first use, dropped after the last, and trusted in between.

What a program's barriers order, as ``passes/check_barriers.py`` has proved, barrier insertion need not order again:
these buffers are managed between the first and the last statement of a block that has to do with its barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.lowering import BarrierUnsupported
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role
from tile_core.passes.barrier_steps import step_of
from tile_core.passes.check_barriers import barriers_of

if TYPE_CHECKING:
    from tile_core.context import Context

#: Who makes and drops objects, announces bytes and issues copies.
LEADER = ("the first thread", 0, 1)


def enter_barriers(body: Stmt, ordered: frozenset[str], ctx: Context) -> Stmt:
    """Return the body with the objects of its barriers made and dropped, and with what they order marked.

    Parameters
    ----------
    ordered
        Names of the buffers whose accesses the barriers order.

    Raises
    ------
    BarrierUnsupported
        If the target has no such barriers.
    """
    made = barriers_of(body)
    if not made:
        return body
    if not ctx.capabilities.phase_barriers:
        alloc = next(a for a in collect(body, tirx.AllocBuffer) if a.buffer in made)
        facts = {"name": str(alloc.buffer.name), "target": ctx.target.text, "found": "no barriers with phases"}
        raise BarrierUnsupported(**facts, where=nodes.where_of(alloc))
    return _Enter(ordered).stmt(body)


class _Enter(StmtRewriter):
    def __init__(self, ordered: frozenset[str]) -> None:
        self.ordered = ordered

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid" or (isinstance(s.body, tirx.For) and role(s.body) == "grid"):
            return super().visit_For(s)
        made = barriers_of(s.body)
        if not made:
            return super().visit_For(s)
        inside = self.stmt(s.body)
        parts = structural.items(inside.seq) if isinstance(inside, tirx.SeqStmt) else [inside]
        drops = [calls.barrier_drop(b, nodes.int_const(i)) for b, n in made.items() for i in range(len(n))]
        whole = [*self.marked(parts), calls.only(LEADER, nodes.seq(drops))]
        return replace_for(s, nodes.seq(whole))

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        counts = barriers_of(s).get(s.buffer)
        if counts is None:
            return s
        inits = [calls.barrier_init(s.buffer, nodes.int_const(i), n) for i, n in enumerate(counts)]
        return nodes.seq([s, calls.only(LEADER, nodes.seq(inits), s.span)])

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return calls.only(LEADER, s, s.span) if nodes.is_tile_call(s.value, "barrier_announce") else s

    def marked(self, parts: Sequence[Stmt]) -> list[Stmt]:
        """Return the statements of a block, those around all calls for its barriers as one that orders buffers."""
        used = [n for n, s in enumerate(parts) if _has_step(s)]
        buffers = [b for b in _shared(parts) if str(b.name) in self.ordered]
        if not used or not buffers:
            return list(parts)
        inside = parts[used[0] : used[-1] + 1]
        kept = [s for s in inside if isinstance(s, tirx.AllocBuffer)]
        rest = [s for s in inside if not isinstance(s, tirx.AllocBuffer)]
        return [*parts[: used[0]], *kept, calls.managed(buffers, nodes.seq(rest)), *parts[used[-1] + 1 :]]


def _has_step(s: Stmt) -> bool:
    return any(step_of(x) is not None for x in collect(s, tirx.Evaluate))


def _shared(parts: Sequence[Stmt]) -> list[BufferVar]:
    allocs = [a for s in parts for a in collect(s, tirx.AllocBuffer)]
    return [a.buffer for a in allocs if nodes.scope_of(a.buffer) == "shared"]
