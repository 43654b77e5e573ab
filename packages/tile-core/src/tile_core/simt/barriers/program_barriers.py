"""Barriers of a program: initialization, invalidation, and the accesses that they order.

A barrier is initialized before its first use and dropped after its last one.

Barrier insertion skips accesses that a program's barriers order, as ``passes/check_barriers.py`` has proved: their
buffers are managed between the first and the last statement of a block that uses its barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow
from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.lowering import BarrierUnsupported
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role
from tile_core.ops.copy_to_block import is_send
from tile_core.ops.effects import effects
from tile_core.passes.barrier_block import step_of
from tile_core.passes.check_barriers import barriers_of

if TYPE_CHECKING:
    from tile_core.context import Context

#: The thread that initializes and drops objects, expects bytes and issues copies.
LEADER = ("the first thread", 0, 1)


def enter_barriers(body: Stmt, ordered: frozenset[str], ctx: Context) -> Stmt:
    """Initialize and drop a program's barriers, and mark the accesses that they order.

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
        return _Enter(ordered).stmt(body) if any(map(is_send, collect(body, tirx.Evaluate))) else body
    if not ctx.capabilities.phase_barriers:
        alloc = next(a for a in collect(body, tirx.AllocBuffer) if a.buffer in made)
        facts = {"name": str(alloc.buffer.name), "target": ctx.target.text, "found": "no barriers with phases"}
        raise BarrierUnsupported(**facts, where=nodes.where_of(alloc))
    return _Enter(ordered).stmt(body)


class _Enter(StmtRewriter):
    def __init__(self, ordered: frozenset[str]) -> None:
        self.ordered = ordered
        #: Whether other blocks arrive at the barriers, or copies of theirs do.
        self.remote = False
        #: Whether threads write memory that bulk copies of other blocks write too: those follow a signal.
        self.fenced = False

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid" or (isinstance(s.body, tirx.For) and role(s.body) == "grid"):
            return super().visit_For(s)
        made = barriers_of(s.body)
        self.remote = any(map(_is_remote, collect(s.body, tirx.Evaluate)))
        if not made and not self.remote:
            return super().visit_For(s)
        self.fenced = _written_by_threads(s.body)
        inside = self.stmt(s.body)
        parts = structural.items(inside.seq) if isinstance(inside, tirx.SeqStmt) else [inside]
        drops = [calls.barrier_drop(b, nodes.int_const(i)) for b, n in made.items() for i in range(len(n))]
        whole = self.marked(_met(parts) if self.remote else parts)
        # No thread or copy arrives here any more.
        whole += [calls.cluster_arrive(), calls.cluster_wait()] if self.remote else []
        whole += [calls.only(LEADER, nodes.seq(drops))] if drops else []
        return replace_for(s, nodes.seq(whole))

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        counts = barriers_of(s).get(s.buffer)
        if counts is None:
            return s
        inits = [calls.barrier_init(s.buffer, nodes.int_const(i), n) for i, n in enumerate(counts)]
        inits += [calls.fence_init()] if self.remote else []
        return nodes.seq([s, calls.only(LEADER, nodes.seq(inits), s.span)])

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if self.fenced and any(nodes.is_tile_call(s.value, name) for name in ("barrier_arrive", "cluster_arrive")):
            return nodes.seq([calls.fence_proxy(), s])
        return calls.only(LEADER, s, s.span) if nodes.is_tile_call(s.value, "barrier_announce") else s

    def marked(self, parts: Sequence[Stmt]) -> list[Stmt]:
        """Wrap the statements between a block's first and last barrier call in a managed region."""
        used = [n for n, s in enumerate(parts) if _has_step(s)]
        buffers = [b for b in _shared(parts) if str(b.name) in self.ordered]
        if not used or not buffers:
            return list(parts)
        inside = parts[used[0] : used[-1] + 1]
        kept = [s for s in inside if isinstance(s, tirx.AllocBuffer)]
        rest = [s for s in inside if not isinstance(s, tirx.AllocBuffer)]
        return [*parts[: used[0]], *kept, calls.managed(buffers, nodes.seq(rest)), *parts[used[-1] + 1 :]]


def _met(parts: Sequence[Stmt]) -> list[Stmt]:
    """Insert a cluster barrier between the initialization of barriers and their first use."""
    found: list[Stmt] = []
    new = not any(map(barriers_of, parts))  # blocks have begun before others store to their memory
    for s in parts:
        if new and _has_step(s):
            found += [calls.cluster_arrive(), calls.cluster_wait()]
            new = False
        new = new or bool(barriers_of(s))
        found.append(s)
    return found


def _is_remote(s: Stmt) -> bool:
    step = step_of(s)
    if step is None:
        return False
    return bool(step.ranks) or step.name == "send" or (step.name == "arrive" and step.operand is not None)


def _written_by_threads(body: Stmt) -> bool:
    """Whether threads write a buffer that copies from other blocks write, which a barrier counts."""
    flow = Flow(body, effects)
    steps = {p: step_of(p.stmt) for p in flow.points}
    counted = {p for p, step in steps.items() if step is not None and step.barrier is not None}
    to = {flow.root(a.buffer) for a in flow.accesses if a.write and a.point in counted and is_send(a.statement)}
    return any(a.write and a.point not in counted and flow.root(a.buffer) in to for a in flow.accesses)


def _has_step(s: Stmt) -> bool:
    return any(step_of(x) is not None for x in collect(s, tirx.Evaluate))


def _shared(parts: Sequence[Stmt]) -> list[BufferVar]:
    allocs = [a for s in parts for a in collect(s, tirx.AllocBuffer)]
    return [a.buffer for a in allocs if nodes.scope_of(a.buffer) == "shared"]
