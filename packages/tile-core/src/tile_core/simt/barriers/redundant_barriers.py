"""Removes barriers at the end of a kernel after which threads only do private work.

A pipelined loop ends with a barrier, so that later code may reuse its buffers. Often none does: the rest of the kernel
computes in registers and writes results that no thread has read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect


def drop_redundant_barriers(body: Stmt) -> Any:
    """Return the body without block barriers after which no thread depends on another one.

    Parameters
    ----------
    body
        The per-thread program, with all barriers.
    """
    tail = _Tail(body)
    return tail.flow.replaced(dict.fromkeys(tail.found))


#: Calls that access no memory other than their loads.
_HARMLESS = frozenset({"move", "address", "shuffle", "vote", "group_reduce"})


class _Tail:
    """Search backwards from the kernel's end for a statement that depends on other threads."""

    def __init__(self, body: Stmt) -> None:
        self.flow = Flow(body)
        #: Accesses of global memory that come after.
        self.after: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
        self.done = False
        #: The barriers after which only private work follows.
        self.found: list[Point] = []
        self.back(self.flow.top)

    @cached_property
    def whole(self) -> tuple[Counter[Any], Counter[Any]]:
        """How often each buffer is read and written in the whole program."""
        return self.accesses(self.flow.points)

    def back(self, points: Sequence[Point]) -> None:
        for p in reversed(points):
            if self.done:
                return
            if p.kind == "mark" or is_grid(p):
                self.back(p.parts[0])
            elif isinstance(p.stmt, tirx.Evaluate) and nodes.is_tile_call(p.stmt.value, "sync_threads"):
                self.done = not self.is_redundant()
                if not self.done:
                    self.found.append(p)
            else:
                self.look(p)

    def look(self, p: Point) -> None:
        """Record a statement's accesses of global memory; stop at other accesses that are not private."""
        calls = [c for c in collect(p.stmt, ir.Call) if nodes.is_tile_call(c)]
        reads, writes = self.accesses((p, *self.flow.inside(p)))
        self.after[0].update(reads)
        self.after[1].update(writes)
        other = any(str(c.op.name)[5:] not in _HARMLESS and not _stays_outside(c) for c in calls)
        self.done = other or not all(map(_is_outside, (*reads, *writes)))

    def is_redundant(self) -> bool:
        """Whether no later access of global memory conflicts with an earlier one."""
        (reads, writes), (all_reads, all_writes) = self.after, self.whole
        alone = all(all_reads[b] + all_writes[b] == reads[b] + writes[b] for b in writes if _is_global(b))
        return alone and all(all_writes[b] == writes[b] for b in reads if _is_global(b))

    def accesses(self, points: Iterable[Point]) -> tuple[Counter[Any], Counter[Any]]:
        """Return how often each buffer is read and written at some points."""
        found = [(self.flow.root(a.buffer), a) for p in points for a in self.flow.accesses_at(p)]
        # Taking an element's address counts as any access an instruction may make there.
        reads = _counted([b for b, a in found if not a.write or a.how == "address"])
        return reads, _counted([b for b, a in found if a.write or a.how == "address"])


def _counted(buffers: Sequence[BufferVar]) -> Counter[Any]:
    """Count buffers, by their identities first: comparing them is slow."""
    objects = {identity(b): b for b in buffers}
    return Counter({objects[key]: n for key, n in Counter(map(identity, buffers)).items()})


def _stays_outside(call: Call) -> bool:
    """Whether an instruction takes addresses, but none of shared memory (such as an atomic)."""
    addresses = [a.args[0].source for a in call.args if nodes.is_tile_call(a, "address")]
    return nodes.is_tile_call(call, "instruction") and bool(addresses) and all(map(_is_outside, addresses))


def _is_outside(buffer: BufferVar) -> bool:
    return nodes.scope_of(buffer) in (*PRIVATE, "global")


def _is_global(buffer: BufferVar) -> bool:
    return nodes.scope_of(buffer) == "global"
