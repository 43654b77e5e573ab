"""Loop fission over a block's threads, which run one after another between synchronization points.

The body is split into regions of thread code, each of which becomes one loop over the threads. A region ends at a
barrier, a warp operation or a tile op, and before a statement that accesses shared memory which the region wrote:
statements see the shared memory of all threads as if the threads ran in lock step. Divergent control flow becomes a
mask per thread where its body has to be split.
"""

from __future__ import annotations

from typing import Any

from tile_core.analysis.flow import Flow
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.cpu.deferred_steps import DeferredStep, Keep, Restore
from tile_core.cpu.warp_calls import has_warp_call, hoist
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, collect, loads_of, map_expr, replace_for, role, statements
from tile_core.ir.warp import WARP_CALLS
from tile_core.ops.effects import varies


def distribute(body: Stmt, threads: tuple[int, int, int]) -> Stmt:
    """Return the body with loops over threads instead of thread indices and barriers.

    Raises
    ------
    DivergentBarrier
        If a synchronization point may be in divergent control flow.
    """
    return _Blocks(threads).stmt(body)


class _Blocks(StmtRewriter):
    """Finds the block's body under the grid loops."""

    def __init__(self, threads: tuple[int, int, int]) -> None:
        self.threads = threads

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return super().visit_For(s)
        if isinstance(s.body, tirx.For) and role(s.body) == "grid":
            return replace_for(s, self.stmt(s.body))
        return replace_for(s, Threads(self.threads, s.body).run(s.body))


class Threads:
    """The distribution of one block."""

    def __init__(self, threads: tuple[int, int, int], body: Stmt) -> None:
        self.threads = threads
        self.count = threads[0] * threads[1] * threads[2]
        self.varying = Varying(body)
        self.slots: dict[Any, Any] = {}
        self.masks: list[Expr] = []
        self.allocs: list[Stmt] = []
        for buffer in self.varying.buffers:
            self.slots[buffer] = self.private(str(buffer.name), nodes.element_type(buffer), list(buffer.shape))

    def private(self, name: str, dtype: str, shape: list[Expr] | None = None) -> BufferVar:
        """Return a new buffer with one slot per thread."""
        buffer, allocate = nodes.alloc([self.count, *(shape or [])], dtype, name, "shared")
        self.allocs.append(allocate)
        return buffer

    def run(self, body: Stmt) -> Stmt:
        """Return the whole block."""
        done = self.block(body)
        return nodes.seq([*self.allocs, done])

    def block(self, s: Stmt) -> Stmt:
        """Return a sequence of uniform statements, loops over threads and compound statements."""
        out: list[Stmt] = []
        group: list[Stmt] = []

        def flush() -> None:
            if group:
                out.append(self.thread_loop(list(group)))
                group.clear()

        for part in list(statements(s)):
            if isinstance(part, tirx.AllocBuffer):
                if part.buffer not in self.slots:
                    out.append(part)
                continue
            if _is_barrier(part):
                flush()
                if self.masks and not nodes.is_tile_call(part.value, "sync_warp"):
                    raise DivergentBarrier(what="T.sync_threads()", where=nodes.where_of(part))
                continue
            if has_warp_call(part):
                flush()
                before, part = hoist(part, self)
                out.extend(before)
            if not self.masks and not varies(part, self.varying) and not self.meets(part):
                flush()
                out.append(_Strip().stmt(part))
            elif self.splits(part):
                flush()
                out.append(self.compound(part))
            else:
                if group and _conflict(group, part):
                    flush()
                group.append(part)
        flush()
        return nodes.seq(out)

    def meets(self, s: Stmt) -> bool:
        """Whether a statement contains a synchronization point."""
        if isinstance(s, tirx.AttrStmt) and s.attr_key == attributes.OP_MARK:
            return not varies(s, self.varying)
        if isinstance(s, tirx.For) and role(s) == "parallel":
            return True
        for call in collect(s, ir.Call):
            if nodes.is_tile_call(call) and str(call.op.name)[5:] in {"sync_threads", "sync_warp", *WARP_CALLS}:
                return True
        inner = [x for x in collect(s, (tirx.AttrStmt, tirx.For)) if not x.same_as(s)]
        return any(self.meets(x) for x in inner if isinstance(x, tirx.For) or x.attr_key == attributes.OP_MARK)

    def splits(self, s: Stmt) -> bool:
        """Whether a statement cannot stay inside one loop over threads."""
        if self.meets(s):
            return True
        if isinstance(s, tirx.IfThenElse):
            parts = [x for c in (s.then_case, s.else_case) if c is not None for x in statements(c)]
            return any(self.splits(p) for p in parts) or _conflict(parts, None)
        if isinstance(s, tirx.For) and not self.varying.expr(s.extent):
            return _conflict([*statements(s.body)] * 2, None)
        return isinstance(s, tirx.BufferStore) and _reads_own_target(s)

    def compound(self, s: Stmt) -> Stmt:
        """Return a statement that the threads execute together."""
        if isinstance(s, tirx.IfThenElse):
            return self.branch(s)
        if isinstance(s, tirx.For) and role(s) != "parallel":
            if self.varying.expr(s.extent) or self.varying.expr(s.min):
                raise DivergentBarrier(what="a loop whose threads meet inside", where=nodes.where_of(s))
            return replace_for(s, self.block(s.body))
        if isinstance(s, tirx.While):
            if self.varying.expr(s.condition) or self.masks:
                raise DivergentBarrier(what="a while loop whose threads meet inside", where=nodes.where_of(s))
            return tirx.While(s.condition, self.block(s.body), s.span)
        if isinstance(s, tirx.BufferStore):
            return self.two_steps(s)
        if self.masks or varies(s, self.varying):
            raise DivergentBarrier(what="an operation of the whole block", where=nodes.where_of(s))
        return _Strip().stmt(s)

    def branch(self, s: Stmt) -> Stmt:
        """Return a branch; a divergent one becomes a mask per thread."""
        if not self.varying.expr(s.condition):
            other = None if s.else_case is None else self.block(s.else_case)
            return tirx.IfThenElse(s.condition, self.block(s.then_case), other, s.span)
        mask = self.private("mask", "int32")
        cond = tirx.Cast("int32", s.condition)
        parts = [self.thread_loop([Keep(mask, cond)])]
        for side, wanted in ((s.then_case, 1), (s.else_case, 0)):
            if side is not None:
                self.masks.append((mask, wanted))
                parts.append(self.block(side))
                self.masks.pop()
        return nodes.seq(parts)

    def two_steps(self, s: Stmt) -> Stmt:
        """Return a store that reads other elements of its buffer: all reads precede all writes."""
        kept = self.private("kept", nodes.element_type(s.buffer))
        first = self.thread_loop([Keep(kept, s.value)])
        second = self.thread_loop([Restore(kept, s)])
        return nodes.seq([first, second])

    def thread_loop(self, group: list[Stmt]) -> Stmt:
        """Return a loop over the threads for a region of thread code."""
        t = nodes.fresh("thread")
        rewriter = _PerThread(self, t)
        parts = [p.emit(rewriter, t) if isinstance(p, DeferredStep) else rewriter.stmt(p) for p in group]
        body = nodes.seq(parts)
        for mask, wanted in reversed(self.masks):
            body = tirx.IfThenElse(tirx.EQ(mask[t], nodes.int_const(wanted)), body, None)
        return nodes.for_loop(t, self.count, body, "threads")

    def thread_index(self, t: Var, dim: int) -> Var:
        """Return the coordinate of thread ``t`` along an axis of the block."""
        x, y, _ = self.threads
        if dim == 0:
            return t if self.count == x else tirx.floormod(t, x)
        if dim == 1:
            return tirx.floormod(tirx.floordiv(t, x), y)
        return tirx.floordiv(t, x * y)


class _PerThread(StmtRewriter):
    """One thread's view of a region: thread indices, private slots and kept bindings."""

    def __init__(self, owner: Threads, t: Var) -> None:
        self.owner = owner
        self.t = t

    def expr(self, e: Expr) -> Expr:
        e = map_expr(e, self.load, ir.TensorLoad)
        e = map_expr(e, self.call, ir.Call)
        slots = self.owner.slots
        return map_expr(e, lambda v: slots[v][self.t] if v in slots and not tirx.is_buffer_var(v) else v, tirx.Var)

    def load(self, e: Expr) -> Expr:
        slot = self.owner.slots.get(e.source)
        return e if slot is None else nodes.load(slot, [self.t, *e.indices])

    def call(self, e: Call) -> Expr:
        if nodes.is_tile_call(e, "thread_index"):
            return self.owner.thread_index(self.t, int(nodes.as_int(e.args[0])))
        if nodes.is_tile_call(e, "lane_index"):
            return tirx.floormod(self.t, 32)
        if nodes.is_tile_call(e, "warp_index"):
            return tirx.floordiv(self.t, 32)
        return e.args[0] if nodes.is_tile_call(e, "per_thread") else e

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self.stmt(s.body) if s.attr_key == attributes.OP_MARK else super().visit_AttrStmt(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        slot = self.owner.slots.get(new.buffer)
        return new if slot is None else tirx.BufferStore(slot, new.value, [self.t, *new.indices], new.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Keep each thread's value: later regions may need it."""
        slot = self.owner.slots.get(s.var)
        if slot is None:
            slot = self.owner.slots[s.var] = self.owner.private(str(s.var.name), nodes.dtype_of(s.var))
        return nodes.store(slot, self.expr(s.value), [self.t], s.span)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.owner.slots else s


class _Strip(StmtRewriter):
    """Drops the marks inside a statement that the block executes once."""

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self.stmt(s.body) if s.attr_key == attributes.OP_MARK else super().visit_AttrStmt(s)


def _is_barrier(s: Stmt) -> bool:
    return isinstance(s, tirx.Evaluate) and any(nodes.is_tile_call(s.value, n) for n in ("sync_threads", "sync_warp"))


def _touched(s: Stmt) -> tuple[set[BufferVar], set[BufferVar]]:
    """Return the block's own buffers that a statement reads and writes."""
    if isinstance(s, DeferredStep):
        return set(), set()
    own = {a.buffer for a in collect(s, tirx.AllocBuffer)}
    found = [a for a in Flow(s).accesses if _common(a.buffer) and a.buffer not in own]
    return {a.buffer for a in found if not a.write}, {a.buffer for a in found if a.write}


def _common(buffer: BufferVar) -> bool:
    return nodes.scope_of(buffer) not in (*PRIVATE, "global")


def _conflict(group: list[Stmt], part: Stmt | None) -> bool:
    """Whether ``part`` or statements of ``group`` depend on shared memory of earlier ones."""
    reads: set[BufferVar] = set()
    writes: set[BufferVar] = set()
    for s in group if part is None else [*group, part]:
        r, w = _touched(s)
        atomic = isinstance(s, tirx.AttrStmt) and str(s.node.value).startswith("atomic")
        if not atomic and (writes & (r | w) or reads & w):
            return True
        reads, writes = reads | r, writes | w
    return False


def _reads_own_target(s: Stmt) -> bool:
    if not _common(s.buffer):
        return False
    mine = [str(i) for i in s.indices]
    return any(x.source.same_as(s.buffer) and [str(i) for i in x.indices] != mine for x in loads_of(s.value))
