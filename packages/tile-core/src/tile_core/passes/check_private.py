"""Refuse private memory that carries a value between, or out of, ``T.Parallel`` iterations.

Iterations are independent, and where there are threads each of them runs some. A variable or local array declared
outside the loop can hold a value only within one iteration: a running total in it would differ between threads. So an
iteration must write before it reads, and no code after the loop may read what the loop wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.paths import Paths
from tile_core.analysis.point import Point
from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.ops import ParallelRace
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.names import as_written
from tile_core.ir.visit import collect, role
from tile_core.ops.effects import effects

_FIX = "T.reduce_* of a tile, T.alloc_reducer or a T.serial loop combine iterations"
_BEFORE = "an iteration of T.Parallel reads {0} before it writes it, and what another one left there is not defined"
_BEHIND = (
    "{0} is read after the T.Parallel loop whose iterations write it: each thread has the value of another iteration"
)


def check_private(body: Stmt, reducers: frozenset[str] = frozenset()) -> None:
    """Raise `ParallelRace` where private memory carries a value between iterations, but for those of ``reducers``."""
    own = {a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) in PRIVATE}
    kept = {b for b in own if str(b.name) not in reducers}
    # The lanes of T.vectorized belong to one thread where threads have indices.
    independent = ("parallel",) if uses_threads(body) else ("parallel", "vectorized")
    if not kept or not any(role(s) in independent for s in collect(body, tirx.For)):
        return
    found = min(_Carried(Flow(body, effects), independent, kept).found(), key=lambda f: f[1].order, default=None)
    if found is not None:
        buffer, p, text = found
        where = nodes.where_of(p.stmt)
        raise ParallelRace(found=text.format(as_written(str(buffer.name), where)), fix=_FIX, where=where)


class _Carried:
    """Finds the reads of values from another iteration."""

    def __init__(self, flow: Flow, independent: tuple[str, ...], kept: set[BufferVar]) -> None:
        self.flow, self.paths = flow, Paths(flow)
        mine = [a for a in flow.accesses if a.buffer in kept]
        self.reads = [a for a in mine if not a.write]
        self.writes = [a for a in mine if a.write]
        loops = [p for p in flow.points if p.kind == "for" and role(p.stmt) in independent]
        loops = [p for p in loops if nodes.as_int(p.stmt.extent) not in (0, 1)]
        #: The outermost such loops, with the buffers that their iterations write and that live on.
        self.nests = {p: self.shared(p) for p in loops if not any(q.contains(p) and q is not p for q in loops)}

    def shared(self, nest: Point) -> set[BufferVar]:
        """Return the buffers from outside that the iterations of a loop write."""
        made = {p.stmt.buffer for p in self.flow.inside(nest) if isinstance(p.stmt, tirx.AllocBuffer)}
        return {a.buffer for a in self.writes if nest.contains(a.point)} - made

    def found(self) -> Iterator[tuple[BufferVar, Point, str]]:
        """Yield buffers, the points that read them, and why that is wrong."""
        for nest, shared in self.nests.items():
            for b in shared:
                inside = {a.point for a in self.writes if a.buffer.same_as(b)}
                outside = {p for p in inside if not any(q.contains(p) for q in self.nests)}
                begun = self.paths.reached(nest.parts[0][:1], inside, nest)
                left = self.paths.reached(self.paths.after(nest), outside)
                for a in self.reads:
                    if a.buffer.same_as(b) and a.point in begun:
                        yield b, a.point, _BEFORE
                    elif a.buffer.same_as(b) and a.point in left and not self.has_own(a):
                        yield b, a.point, _BEHIND

    def has_own(self, a: Access) -> bool:
        """Whether the iterations of the loop around a read write what it reads."""
        return any(q.contains(a.point) and a.buffer in shared for q, shared in self.nests.items())
