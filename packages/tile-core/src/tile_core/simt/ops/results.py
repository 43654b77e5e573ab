"""Stores of reduction results: to registers, to memory, or to other threads' registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import calls, nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.ops.base import View
from tile_core.simt.register_loops import Walk, bounds, kept, when

if TYPE_CHECKING:
    from tile_core.simt.variant import SimtCall


class Results:
    """Results in registers, and one of their destinations.

    Parameters
    ----------
    call
        The op.
    src
        Its first source, from whose dimensions that of the reduction is left out.
    dst
        The destination.
    dim
        The dimension.
    tile
        The layout of the source, or of the threads' shares of it.
    total
        One register per register of the layout without the dimension.
    stored
        What an element of the destination becomes, from its old value and a result.
    """

    def __init__(
        self, call: SimtCall, src: View, dst: View, dim: int, tile: FragmentLayout, total: BufferVar,
        stored: Callable[[Expr, Expr], Expr],
    ) -> None:  # fmt: skip
        self.call, self.src, self.dst, self.dim = call, src, dst, dim
        self.tile, self.total, self.stored = tile, total, stored
        self.thread = call.block.thread
        self.result = tile.project(dim)

    def finish(self) -> tuple[Stmt | None, Stmt]:
        """Return the allocation, and the statement that stores the results."""
        array = self.call.placement.arrays.get(self.dst.buffer)
        if array is None:
            return None, calls.step(self.to_memory(), self.call.span)
        known = self.call.placement.fragments[self.dst.buffer]
        expected = at_destination(self.tile, self.src, self.dst, self.dim)
        if expected is not None and covers(expected, known):
            return None, calls.step(self.to_registers(array), self.call.span)
        return self.through_scratch(array, known)

    def to_registers(self, array: BufferVar) -> Stmt:
        """Store the results that a thread's registers of the destination are."""
        walk = Walk(self.result, self.thread)
        at = walk.register()
        value = self.stored(array[at], self.total[at])
        return walk.wrap(nodes.store(array, value, [at], self.call.span))

    def indices(self, coordinates: list[Expr]) -> list[Expr]:
        """Return the index in the destination of a result, per dimension of its buffer."""
        dims = [d for d in range(len(self.src.extents)) if d != self.dim]
        wide = iter([c for c, d in zip(coordinates, dims, strict=False) if self.src.extents[d] != 1])
        return [next(wide, nodes.int_const(0)) if e != 1 else nodes.int_const(0) for e in self.dst.extents]

    def to_memory(self) -> Stmt:
        """Let the first of the threads that hold a result store it."""
        walk = Walk(self.result, self.thread)
        at = self.indices(walk.coordinates())
        value = self.stored(self.dst.load(at), self.total[walk.register()])
        store = when([*walk.inside(), *bounds(self.dst, at)], self.dst.store(value, at))
        return when(walk.dist.is_first(self.thread), walk.wrap(store))

    def through_scratch(self, array: BufferVar, known: FragmentLayout) -> tuple[Stmt, Stmt]:
        """Move the results to the threads that hold the destination."""
        extents = [e for d, e in enumerate(self.src.extents) if d != self.dim and e != 1]
        scratch, allocate = nodes.alloc([prod(extents)], nodes.element_type(self.total), "results", "shared")
        walk, to = Walk(self.result, self.thread), Walk(known, self.thread)
        dims = [d for d in range(len(self.src.extents)) if d != self.dim]
        wide = [c for c, d in zip(walk.coordinates(), dims, strict=False) if self.src.extents[d] != 1]
        store = when(walk.inside(), nodes.store(scratch, self.total[walk.register()], [linear(wide, extents)]))
        write = calls.step(when(walk.dist.is_first(self.thread), walk.wrap(store)))
        register = to.register()
        value = scratch[linear(kept(self.dst, to.coordinates()) if extents else [], extents)]
        update = nodes.store(array, self.stored(array[register], value), [register], self.call.span)
        read = calls.step(to.wrap(when(to.inside(), update)))
        return allocate, nodes.seq([write, read])


def at_destination(found: FragmentLayout, src: View, dst: View, dim: int) -> FragmentLayout | None:
    """Return the layout of a destination with elements in the registers of the results."""
    kept_dims = [e for d, e in enumerate(src.extents) if d != dim]
    projected = found.project(dim)
    shape = list(nodes.shape_of(dst.buffer))
    if list(dst.extents) != shape:
        return None
    if shape == (kept_dims or [1]):
        return projected
    if len(shape) == len(src.extents) and shape == [*kept_dims[:dim], 1, *kept_dims[dim:]]:
        return projected.insert(dim)
    return None


def covers(expected: FragmentLayout, known: FragmentLayout) -> bool:
    """Whether layout ``known`` has the elements of each thread in the registers of ``expected``."""
    if expected.shape != known.shape or expected.threads != known.threads:
        return False
    if not np.array_equal(expected.register_table, known.register_table):
        return False
    return all(np.isin(k, e).all() for e, k in zip(expected.thread_table, known.thread_table, strict=True))


def linear(indices: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """Return the row-major offset of an index."""
    total: Expr = nodes.int_const(0)
    for c, extent in zip(indices, extents, strict=True):
        total = total * nodes.int_const(extent) + c
    return total
