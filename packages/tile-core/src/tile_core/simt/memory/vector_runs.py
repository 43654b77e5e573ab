"""Runs: accesses to adjacent elements by the iterations of a loop, which go through registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Key, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, substitute
from tile_core.records import dataclass
from tile_core.simt.memory.vector_bodies import key

#: Iterations that share an element, such as the numbers of 4 bits of a byte or a word, beside all of a loop.
SHARED = (2, 4, 8)


@dataclass(frozen=True)
class VectorRun:
    """VectorAccesses to adjacent elements by the iterations of a loop.

    Attributes
    ----------
    buffer
        The buffer.
    start
        Indices of the first iteration.
    width
        Elements per vector access.
    array
        The registers between the accesses and the loop.
    per
        Successive iterations that access the same element.
    """

    buffer: BufferVar
    start: tuple[Expr, ...]
    width: int
    array: BufferVar
    per: int = 1

    @property
    def key(self) -> Key:
        """The key shared by accesses of the same elements."""
        return key(self.buffer, self.start)


class VectorAccesses(Protocol):
    """Facts about the accesses of a loop."""

    def key_at(self, buffer: BufferVar, indices: Sequence[Expr], iteration: Var) -> Key:
        """Return the key of an access."""

    def per(self, last: Expr, start: Expr, iteration: Var, trips: int, shared: bool) -> int:
        """Return how many successive iterations access the same element; 0 without a period."""


class UseRegisters(StmtRewriter):
    """Rewrites a loop's body to use registers.

    Parameters
    ----------
    owner
        The keys and periods of accesses.
    at, trips
        The loop's variable and its trip count.
    loads, stores
        The runs by key.
    """

    def __init__(
        self, owner: VectorAccesses, at: Var, trips: int, loads: Mapping[Key, VectorRun],
        stores: Mapping[Key, VectorRun],
    ) -> None:  # fmt: skip
        self.owner, self.iteration, self.trips, self.loads, self.stores = owner, at, trips, loads, stores

    def expr(self, e: Expr) -> Expr:
        """Replace the loads of runs."""
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        """Return the register of a load."""
        run = self.loads.get(self.owner.key_at(e.source, list(e.indices), self.iteration)) if len(e.indices) else None
        if run is None or self.per_of(e.indices) != run.per:
            return e
        iteration = self.iteration if run.per == 1 else tirx.floordiv(self.iteration, nodes.int_const(run.per))
        return nodes.load(run.array, [nodes.int_const(0) if run.per == self.trips else iteration], e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Store to the register of a run."""
        new = super().visit_BufferStore(s)
        run = self.stores.get(self.owner.key_at(s.buffer, list(s.indices), self.iteration)) if len(s.indices) else None
        return new if run is None else tirx.BufferStore(run.array, new.value, [self.iteration], s.span)

    def per_of(self, indices: Sequence[Expr]) -> int:
        """Return how far an access advances with the loop."""
        last = indices[-1]
        base = substitute(last, {self.iteration: nodes.int_const(0, nodes.dtype_of(self.iteration))})
        return self.owner.per(last, base, self.iteration, self.trips, True)


def accesses_of(s: Stmt) -> int:
    """Return the number of vector accesses of memory: two for a move that copies."""
    moves = [c for c in collect(s, ir.Call) if nodes.is_tile_call(c, "move")]
    return sum(nodes.scope_of(x.source) in ("global", "shared") for c in moves for x in c.args)
