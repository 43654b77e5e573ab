"""Refuse private memory that carries a value between iterations of ``T.Parallel``, or out of the loop.

Iterations are independent, and where there are threads each of them runs some. A variable or local array declared
outside the loop can hold a value only within one iteration: a running total in it would differ between threads. So an
iteration must write before it reads, and no code after the loop may read what the loop wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.errors.ops import ParallelRace
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.names import as_written
from tile_core.ir.visit import collect, role, statements
from tile_core.ops.base import is_op
from tile_core.ops.effects import effects

_FIX = "T.reduce_* of a tile, T.alloc_reducer or a T.serial loop combine iterations"


def check_private(body: Stmt, reducers: frozenset[str] = frozenset()) -> None:
    """Raise `ParallelRace` where private memory carries a value between iterations, but for those of ``reducers``."""
    # The lanes of T.vectorized belong to one thread where threads have indices.
    independent = ("parallel",) if uses_threads(body) else ("parallel", "vectorized")
    _PrivateFlow(independent, reducers).stmt(body)


class _PrivateFlow:
    """Walks a program in order.

    ``left`` holds the private buffers that a loop's iterations wrote, by the loop. Within a loop, ``fresh`` holds those
    that this iteration has written already, and ``shared`` those that iterations write.
    """

    def __init__(self, independent: tuple[str, ...], reducers: frozenset[str]) -> None:
        self.independent, self.reducers = independent, reducers
        self.left: dict[Any, Any] = {}
        self.nest: Stmt | None = None
        self.fresh: set[BufferVar] = set()
        self.shared: set[BufferVar] = set()

    def stmt(self, s: Stmt) -> None:
        for part in statements(s):
            if isinstance(part, tirx.For):
                self.loop(part)
            elif isinstance(part, tirx.While):
                self.reads(part.condition, part)
                self.twice(part.body)
            elif isinstance(part, tirx.IfThenElse):
                self.branch(part)
            elif isinstance(part, tirx.AttrStmt):
                self.stmt(part.body)
            else:
                self.simple(part)

    def loop(self, s: Stmt) -> None:
        self.reads(s.extent, s)
        if self.nest is not None or role(s) not in self.independent or nodes.as_int(s.extent) in (0, 1):
            self.twice(s.body)
            return
        own = {a.buffer for a in collect(s.body, tirx.AllocBuffer)}
        self.shared = {b for b in _written(s.body) if self.counts(b)} - own
        self.nest, self.fresh = s, set()
        self.stmt(s.body)
        self.nest = None
        self.left.update(dict.fromkeys(self.shared, s))

    def twice(self, body: Stmt) -> None:
        """Walk the body of a loop again, starting in the state at its end."""
        self.stmt(body)
        if self.nest is None:
            self.stmt(body)

    def branch(self, s: Stmt) -> None:
        self.reads(s.condition, s)
        fresh, left = self.fresh, self.left
        ends = []
        for side in (s.then_case, s.else_case):
            self.fresh, self.left = set(fresh), dict(left)
            if side is not None:
                self.stmt(side)
            ends.append((self.fresh, self.left))
        self.fresh, self.left = ends[0][0] & ends[1][0], {**ends[0][1], **ends[1][1]}

    def simple(self, s: Stmt) -> None:
        if is_op(s):
            read, write = effects(s)
            self.touch((v.buffer for v in read), s)
            self.wrote(v.buffer for v in write)
            return
        for e in (getattr(s, "value", None), *getattr(s, "indices", ())):
            if e is not None:
                self.reads(e, s)
        if isinstance(s, tirx.BufferStore):
            self.wrote([s.buffer])

    def reads(self, e: Expr, s: Stmt) -> None:
        self.touch((x.source for x in collect(e, ir.TensorLoad)), s)

    def touch(self, buffers: Iterable[BufferVar], s: Stmt) -> None:
        for b in buffers:
            if self.nest is not None and b in self.shared:
                if b not in self.fresh:
                    raise _race(b, self.nest, s, "an iteration of T.Parallel reads {0} before it writes it, and what"
                                " another one left there is not defined")  # fmt: skip
            elif b in self.left:
                raise _race(b, self.left[b], s, "{0} is read after the T.Parallel loop whose iterations write it: each"
                            " thread has the value of another iteration")  # fmt: skip

    def wrote(self, buffers: Iterable[BufferVar]) -> None:
        for b in buffers:
            self.fresh.add(b)
            if self.nest is None:
                self.left.pop(b, None)

    def counts(self, b: BufferVar) -> bool:
        return nodes.scope_of(b) in PRIVATE and str(b.name) not in self.reducers


def _written(body: Stmt) -> set[BufferVar]:
    found = {s.buffer for s in collect(body, tirx.BufferStore)}
    for s in collect(body, tirx.Evaluate):
        if is_op(s):
            found |= {v.buffer for v in effects(s)[1]}
    return found


def _race(buffer: BufferVar, loop: Stmt, s: Stmt, text: str) -> ParallelRace:
    where = nodes.where_of(s) or nodes.where_of(loop)
    return ParallelRace(found=text.format(as_written(str(buffer.name), where)), fix=_FIX, where=where)
