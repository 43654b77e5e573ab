"""Removes barriers at the end of a kernel after which threads only do private work.

A pipelined loop ends with a barrier, so that later code may reuse its buffers. Often none does: the rest of the kernel
computes in registers and writes results that no thread has read.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect, loads_of, replace_for, role


def drop_redundant_barriers(body: Stmt) -> Any:
    """Return the body without the block's barriers after which no thread accesses memory that another one accessed.

    Parameters
    ----------
    body
        The per-thread program, with all barriers.
    """
    return _Tail(body).rest(body)


#: Calls that access no memory other than their loads.
_HARMLESS = frozenset({"move", "address", "shuffle", "vote"})


class _Tail:
    """Walks backwards from the end of the kernel until a statement may depend on other threads."""

    def __init__(self, body: Stmt) -> None:
        self.views = {v.buffer: x for v in collect(body, tirx.DeclBuffer) for x in collect(v.data, tirx.Var)}
        self.whole = self.accesses(body)
        #: Accesses of global memory that come after.
        self.after: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
        self.done = False

    def rest(self, s: Stmt) -> Stmt:
        """Return a statement after which only private work follows, without barriers at its end."""
        if self.done:
            return s
        if isinstance(s, tirx.SeqStmt):
            parts = [self.rest(part) for part in reversed(list(s.seq))][::-1]
            return s if all(a.same_as(b) for a, b in zip(parts, s.seq, strict=True)) else nodes.seq(parts)
        if isinstance(s, tirx.AttrStmt):
            inner = self.rest(s.body)
            return s if inner.same_as(s.body) else tirx.AttrStmt(s.node, s.attr_key, s.value, inner, s.span)
        if isinstance(s, tirx.For) and role(s) == "grid":
            inner = self.rest(s.body)
            return s if inner.same_as(s.body) else replace_for(s, inner)
        if isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value, "sync_threads"):
            self.done = not self.is_redundant()
            return s if self.done else nodes.seq([])
        self.look(s)
        return s

    def look(self, s: Stmt) -> None:
        """Record a statement's accesses of global memory; stop if it does anything else that is not private."""
        calls = [c for c in collect(s, ir.Call) if nodes.is_tile_call(c)]
        reads, writes = self.accesses(s)
        self.after[0].update(reads)
        self.after[1].update(writes)
        other = any(str(c.op.name)[5:] not in _HARMLESS and not _stays_outside(c) for c in calls)
        self.done = other or not all(map(_is_outside, (*reads, *writes)))

    def is_redundant(self) -> bool:
        """Whether no later access of global memory conflicts with an earlier one."""
        (reads, writes), (all_reads, all_writes) = self.after, self.whole
        alone = all(all_reads[b] + all_writes[b] == reads[b] + writes[b] for b in writes if _is_global(b))
        return alone and all(all_writes[b] == writes[b] for b in reads if _is_global(b))

    def accesses(self, s: Stmt) -> tuple[Counter[Any], Counter[Any]]:
        """Return how often each buffer is read and written in a statement."""
        moved = [c.args[0] for c in collect(s, ir.Call) if nodes.is_tile_call(c, "move")]
        writes = Counter(
            self.root(b) for b in (*(x.buffer for x in collect(s, tirx.BufferStore)), *(m.source for m in moved))
        )
        # Taking an element's address counts as any access an instruction may make there.
        addresses = [c.args[0] for c in collect(s, ir.Call) if nodes.is_tile_call(c, "address")]
        writes.update(self.root(a.source) for a in addresses)
        reads = Counter(self.root(x.source) for x in loads_of(s))
        reads.subtract(Counter(self.root(m.source) for m in moved))
        return +reads, writes

    def root(self, buffer: BufferVar) -> BufferVar:
        """Return the buffer that a view aliases."""
        while buffer in self.views:
            buffer = self.views[buffer]
        return buffer


def _stays_outside(call: Call) -> bool:
    """Whether an instruction is given addresses, and none of shared memory: an atomic update of a result, say."""
    places = [a.args[0].source for a in call.args if nodes.is_tile_call(a, "address")]
    return nodes.is_tile_call(call, "instruction") and bool(places) and all(map(_is_outside, places))


def _is_outside(buffer: BufferVar) -> bool:
    return nodes.scope_of(buffer) in (*PRIVATE, "global")


def _is_global(buffer: BufferVar) -> bool:
    return nodes.scope_of(buffer) == "global"
