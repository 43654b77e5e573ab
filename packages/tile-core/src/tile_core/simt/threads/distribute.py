"""From the block's program to the per-thread program.

A data-parallel nest becomes loops over the registers of a thread; a fragment becomes an array of its registers. A
statement that would have the same effect on common memory in all threads is executed by the first one. Every thread
executes everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.analysis.uniformity import Varying
from tile_core.compat import structural
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import LOWERED, MANAGED, NEST, ONLY, OP_MARK, ROLE, SPLIT, STEP, UPDATED
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, collect, loads_of, map_expr, replace_for, role
from tile_core.layout.fragment import FragmentLayout
from tile_core.ops.effects import PER_THREAD_OPS, varies
from tile_core.simt.placement.tile_uses import PARALLEL, Nest, nest_of, shares_bytes, viewed_buffers
from tile_core.simt.role_threads import block_in, is_shared
from tile_core.simt.threads.element_loops import ElementLoop, element_loops
from tile_core.simt.threads.parallel_nest import NestWriter
from tile_core.simt.variant import Block, Placement

_MEETING = frozenset({"sync_threads"})


def distribute(
    body: Stmt, block: Block, placement: Placement, nests: Mapping[int, FragmentLayout], names_threads: bool, width: int
) -> tuple[Stmt, list[ElementLoop]]:
    """Return the per-thread program, and its long element loops on one thread.

    Parameters
    ----------
    body
        The program without tile ops.
    block
        The threads.
    placement
        The placement of tiles.
    nests
        The layout of each nest's iterations by number.
    names_threads
        Whether the program names its threads: then every thread executes such statements as atomics, else one does.
    width
        Threads of a warp.

    Raises
    ------
    DivergentBarrier
        If a collective operation of the block is in divergent control flow.
    """
    rewriter = _Distribute(body, block, placement, nests, names_threads, width)
    return rewriter.stmt(body), [x for x in rewriter.slow if x.count >= block.count]


#: Calls of all threads of the block, each for itself.
_COLLECTIVE = {
    "sync_threads", "async_commit", "async_wait", "barrier_wait", "barrier_arrive", "cluster_arrive", "cluster_wait",
    "launch_wait", "launch_trigger",
}  # fmt: skip


_NEVER_SINGLE = frozenset((tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer, tirx.SeqStmt))


class _Distribute(StmtRewriter):
    def __init__(
        self,
        body: Stmt,
        block: Block,
        placement: Placement,
        nests: Mapping[int, FragmentLayout],
        names_threads: bool,
        width: int,
    ) -> None:
        self.width = width
        self.block, self.placement, self.nests, self.names_threads = block, placement, nests, names_threads
        self.varying = Varying(body)
        self.viewed = viewed_buffers(body)
        self.masked = self.single = False
        grid = [s.extent for s in collect(body, tirx.For) if role(s) == "grid"]
        self.one_block = all(nodes.as_int(extent) == 1 for extent in grid)
        self.outer: tuple[tuple[Var, Expr, Expr], ...] = ()
        self.slow: list[ElementLoop] = []
        #: Whether statements contain collective operations, cached for queries from each surrounding scope.
        self._meetings: dict[int, tuple[bool, Stmt]] = {}

    # Expressions

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.call, ir.Call)

    def call(self, e: Call) -> Expr:
        if nodes.is_tile_call(e, "per_thread"):
            return e.args[0]
        if nodes.is_tile_call(e, "lane_index"):
            return tirx.floormod(self.block.thread, self.width)
        if nodes.is_tile_call(e, "warp_index"):
            return tirx.floordiv(self.block.thread, self.width)
        return e

    # Statements

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        """Rewrite a sequence; consecutive statements for one thread become one step."""
        out: list[Stmt] = []
        single: list[Any] = []

        def flush() -> None:
            if single:
                out.append(self.once(nodes.seq(list(single))))
                single.clear()

        for part in structural.items(s.seq):
            if self.is_single(part):
                single.append(self.inner(part))
            else:
                flush()
                out.append(self.stmt(part))
        flush()
        return nodes.seq(out)

    def stmt(self, s: Stmt) -> Stmt:
        if type(s) is not tirx.SeqStmt and self.is_single(s):
            return self.once(self.inner(s))
        return super().stmt(s)

    def once(self, s: Stmt) -> Stmt:
        first = tirx.EQ(self.block.thread, nodes.int_const(0))
        body = s if self.block.count == 1 else tirx.IfThenElse(first, s, None, s.span)
        return calls.step(body, s.span)

    def inner(self, s: Stmt) -> Stmt:
        if self.block.count > 1:
            self.slow += element_loops(s, self.outer)
        outer, self.single = self.single, True
        new = _Plain(self).stmt(s)
        self.single = outer
        return new

    def stored(self, s: Stmt) -> Stmt:
        """Return a store, marked if another thread may store to the same byte.

        The other half of the byte may be stored at the same time.
        """
        if not DTYPES[nodes.element_type(s.buffer)].is_packed:
            return s
        outside = nodes.scope_of(s.buffer) == "global"
        alone = self.one_block and self.block.count == 1
        if not outside and (s.buffer not in self.viewed or self.block.count == 1):
            return s
        if alone or (self.single and (self.one_block or not outside)):
            return s
        return nodes.mark(SPLIT, 0, s, s.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        return self.stored(super().visit_BufferStore(s))

    def is_single(self, s: Stmt) -> bool:
        """Whether a statement is executed once per block: it writes common memory, and nothing private."""
        if self.masked or type(s) in _NEVER_SINGLE:
            return False
        if self.meets(s) or not self.names_nobody(s):
            return False
        own = {a.buffer for a in collect(s, tirx.AllocBuffer)}
        stores = [x for x in collect(s, tirx.BufferStore) if x.buffer not in own]
        if any(nodes.scope_of(x.buffer) in PRIVATE for x in stores):
            return False
        return bool(stores) or _acts(s)

    def names_nobody(self, s: Stmt) -> bool:
        """Whether a statement is the same for all threads."""
        if not self.names_threads:
            return True
        return not varies(s, self.varying)

    def meets(self, s: Stmt) -> bool:
        """Whether a statement contains a collective operation of the block."""
        known = self._meetings.get(identity(s))
        if known is None:
            known = self._meetings[identity(s)] = self._meets(s), s
        return known[0]

    def _meets(self, s: Stmt) -> bool:
        for x in collect(s, (tirx.For, tirx.AttrStmt)):
            if isinstance(x, tirx.For) and role(x) in PARALLEL and not shares_bytes(x, self.viewed):
                return True
            if isinstance(x, tirx.AttrStmt) and x.attr_key in (LOWERED, STEP, MANAGED, ONLY):
                return True
        return any(nodes.is_tile_call(c) and str(c.op.name)[5:] in _COLLECTIVE for c in collect(s, ir.Call))

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key == LOWERED:
            self.require_uniform(s, f"T.{s.node.value}")
            return calls.step(s.body, s.span) if _is_simple(s.body) else s.body
        if s.attr_key == OP_MARK:
            return self.stmt(s.body)
        if s.attr_key == ONLY:
            return self.only(s)
        return super().visit_AttrStmt(s)

    def only(self, s: Stmt) -> Stmt:
        """Restrict a statement to a role's threads.

        Barrier insertion handles the restriction of shared work.
        """
        if is_shared(s):
            self.require_uniform(s, "T.ws")
            outer, self.block = self.block, block_in(s, self.block)
            new = super().visit_AttrStmt(s)
            self.block = outer
            return new
        _, first, count = s.node
        first, count = int(nodes.as_int(first)), int(nodes.as_int(count))
        was, self.masked = self.masked, True
        body = self.stmt(s.body)
        self.masked = was
        if count == self.block.count:
            return body
        thread = self.block.thread
        if count == 1:
            mine = tirx.EQ(thread, nodes.int_const(first))
        else:
            mine = tirx.all(thread >= nodes.int_const(first), thread < nodes.int_const(first + count))
        return tirx.IfThenElse(mine, body, None, s.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if nodes.is_tile_call(s.value, "sync_threads"):
            self.require_uniform(s, "T.sync_threads()")
        return super().visit_Evaluate(s)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer, self.masked = self.masked, self.masked or self.differs(s.condition)
        new = super().visit_IfThenElse(s)
        self.masked = outer
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        outer, self.masked = self.masked, self.masked or self.differs(s.condition)
        new = super().visit_While(s)
        self.masked = outer
        return new

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) in PARALLEL:
            return self.nest(s)
        outer, before = self.masked, self.outer
        self.masked = outer or self.differs(s.extent) or self.differs(s.min)
        if role(s) != "grid":
            self.outer = (*before, (s.loop_var, s.min, s.extent))
        new = super().visit_For(s)
        self.masked, self.outer = outer, before
        return new

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        array = self.placement.arrays.get(s.buffer)
        notes = {UPDATED: nodes.int_const(1)} if s.buffer in self.placement.reducers else {}
        return s if array is None else tirx.AllocBuffer(array, notes, s.span)

    def differs(self, e: Expr) -> bool:
        return self.names_threads and self.varying.expr(e)

    def fills_own(self, s: Stmt) -> bool:
        """Whether a loop fills arrays of each thread, in a program that names its threads."""
        filled = [x.buffer for x in collect(s, tirx.BufferStore)]
        own = (nodes.scope_of(b) == "local" and b not in self.placement.arrays for b in filled)
        return self.names_threads and bool(filled) and all(own)

    def require_uniform(self, s: Stmt, what: str) -> None:
        if self.masked:
            raise DivergentBarrier(what=what, where=nodes.where_of(s))

    def nest(self, s: Stmt) -> Stmt:
        if role(s) == "vectorized" and (self.masked or self.differs(s) or self.fills_own(s)):
            return replace_for(s, self.stmt(s.body), annotations={ROLE: "unroll"}, kind=tirx.ForKind.UNROLLED)
        self.require_uniform(s, "a data-parallel loop")
        if self.names_threads and varies(s, self.varying) and self.differs(s):
            raise DivergentBarrier(what="a data-parallel loop that names its threads", where=nodes.where_of(s))
        loops, body = nest_of(s)
        number = int(annotation(s, NEST, -1))
        nest = Nest(number, loops, _Plain(self).stmt(body), self.outer)
        for call in collect(body, ir.Call):
            if nodes.is_tile_call(call) and str(call.op.name)[5:] in _MEETING:
                raise DivergentBarrier(what=f"T.{str(call.op.name)[5:]}()", where=nodes.where_of(s))
        return calls.step(NestWriter(nest, self.nests.get(number), self.block, self.placement).write(s), s.span)


class _Plain(StmtRewriter):
    """Rewrite code of a nest or single thread: drop marks, serialize inner parallel loops."""

    def __init__(self, owner: _Distribute) -> None:
        self.owner = owner

    def expr(self, e: Expr) -> Expr:
        return self.owner.expr(e)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return self.owner.visit_AllocBuffer(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        return self.owner.stored(super().visit_BufferStore(s))

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self.stmt(s.body) if s.attr_key in (OP_MARK, STEP) else super().visit_AttrStmt(s)

    def visit_For(self, s: Stmt) -> Stmt:
        new = super().visit_For(s)
        if role(s) not in PARALLEL:
            return new
        return replace_for(new, new.body, kind=tirx.ForKind.SERIAL, annotations={ROLE: "serial"})


def _acts(s: Stmt) -> bool:
    """Whether a statement has an effect besides stores: prints, assertions, atomics."""
    for x in collect(s, tirx.Evaluate):
        if nodes.is_tile_call(x.value):
            name = str(x.value.op.name)[5:]
            if name in {"print", "device_assert", *PER_THREAD_OPS} or (name == "instruction" and _on_memory(x.value)):
                return True
    return False


def _on_memory(call: Any) -> bool:
    return any(nodes.scope_of(x.source) in ("global", "shared") for x in loads_of(call))


def _is_simple(s: Stmt) -> bool:
    """Whether a statement has no steps of its own."""
    return not any(x.attr_key == STEP for x in collect(s, tirx.AttrStmt)) and not any(
        nodes.is_tile_call(c, "sync_threads") for c in collect(s, ir.Call)
    )
