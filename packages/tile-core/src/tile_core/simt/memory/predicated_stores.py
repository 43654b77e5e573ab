"""Stores of a vector loop under conditions that differ between its iterations.

The loop keeps its conditions and computes into registers, with a flag for each element that it stores. A vector whose
flags are all set is stored by vector accesses, another one element by element::

    for v in 0 … 7: if mask[v]: y[v] = f(x[v]); stored[v] = 1
    if stored[0] and … and stored[7]: move(B[i, 8 * t], y, 16 bytes)
    else: for v in 0 … 7: if stored[v]: B[i, 8 * t + v] = y[v]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Key, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, bodies_of
from tile_core.simt.memory.vector_bodies import parts_of


def is_branching(s: Stmt) -> bool:
    """Whether a body consists of assignments and branches."""
    kinds = (tirx.BufferStore, tirx.Bind, tirx.IfThenElse)
    return all(
        isinstance(x, kinds) and (not isinstance(x, tirx.IfThenElse) or all(map(is_branching, bodies_of(x))))
        for x in parts_of(s)
    )


def assignments(s: Stmt, always: bool = True) -> Iterator[tuple[Stmt, bool]]:
    """Yield the assignments of a body in order, each with whether every iteration executes it.

    The condition of a branch is a statement that is evaluated.
    """
    for x in parts_of(s):
        if isinstance(x, tirx.IfThenElse):
            yield tirx.Evaluate(x.condition), always
            for branch in bodies_of(x):
                yield from assignments(branch, False)
        else:
            yield x, always


def always_stores(s: Stmt, key: Key, key_of: Callable[[Stmt], Key]) -> bool:
    """Whether every iteration stores an element."""

    def stores(x: Stmt) -> bool:
        if isinstance(x, tirx.IfThenElse):
            return x.else_case is not None and all(always_stores(b, key, key_of) for b in bodies_of(x))
        return isinstance(x, tirx.BufferStore) and key_of(x) == key

    return any(map(stores, parts_of(s)))


class Flags(StmtRewriter):
    """Set a flag beside each store of some elements.

    Parameters
    ----------
    iteration
        The loop's variable.
    trips
        Its trip count.
    keys
        The elements.
    key_of
        The element of a store.
    """

    def __init__(self, iteration: Var, trips: int, keys: set[Key], key_of: Callable[[Stmt], Key]) -> None:
        self.iteration, self.keys, self.key_of = iteration, keys, key_of
        self.arrays: dict[Key, BufferVar] = {
            k: tirx.decl_buffer([trips], "int32", "stored", scope="local", layout=None) for k in keys
        }

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Set the flag of a store."""
        k = self.key_of(s)
        return nodes.seq([s, self.set(k, 1)]) if k in self.keys else s

    def set(self, key: Key, value: int) -> Stmt:
        """Return the store of a flag."""
        return nodes.store(self.arrays[key], nodes.int_const(value), [self.iteration])

    def cleared(self) -> list[Stmt]:
        """Return the stores that begin an iteration."""
        return [self.set(k, 0) for k in self.arrays]

    def is_set(self, key: Key, at: Expr) -> Expr:
        """Return whether an iteration has stored an element."""
        return tirx.NE(nodes.load(self.arrays[key], [at]), nodes.int_const(0))
