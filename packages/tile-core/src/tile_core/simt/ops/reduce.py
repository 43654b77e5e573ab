"""``reduce`` on threads: each combines its registers, then lanes shuffle, then groups go through shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.layout.fragment import FragmentLayout, spread
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, combiner, element, neutral
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, bounds, choose, kept, load, when

if TYPE_CHECKING:
    from tile_core.context import Context

#: The widest access of any target.
_VECTOR_BYTES = 16


class ReduceByShuffles(ByShuffles):
    """Reductions along any dimension of a tile of any size, on any number of threads.

    Notes
    -----
    All threads that hold elements of a row hold its result: ``layouts`` demands this of a destination without a
    layout. A destination with another layout gets its elements through shared scratch.
    """

    op = "reduce"

    def layouts(self, call: Any, ctx: Context) -> Mapping[int, Any]:
        """Demand that a destination without a layout has that of the results."""
        src, dst = call.args
        known = call.places.fragments
        found = known.get(src.buffer)
        if found is None or dst.buffer in known:
            return {}
        target = at_destination(found, src, dst, int(call.attrs["dim"]))
        return {} if target is None else {1: target}

    def lower(self, call: Any, ctx: Context) -> Stmt:
        """Combine registers, then lanes, then groups; then store."""
        return _Reduce(call, self.lanes(ctx)).lower()


def at_destination(found: FragmentLayout, src: View, dst: View, dim: int) -> FragmentLayout | None:
    """Return the layout of a whole destination whose elements are where the results are."""
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


class _Reduce:
    """One reduction: its source's registers (or the share of each thread in memory) and its accumulators."""

    def __init__(self, call: Any, width: int) -> None:
        self.call, self.width = call, width
        self.src, self.dst = call.args
        self.kind, self.dim = str(call.attrs["kind"]), int(call.attrs["dim"])
        self.acc = accumulator(self.dst.dtype)
        self.combine = combiner(self.kind, self.acc, bool(call.attrs["nan_propagate"]))
        self.thread = call.block.thread
        held = call.places.fragments.get(self.src.buffer)
        self.held = held is not None
        self.tile = held if held is not None else shares(self.src, self.dim, call.block.count)
        self.walk = Walk(self.tile, self.thread)
        self.result = self.tile.project(self.dim)
        self.rows = [d for d in range(len(self.tile.dims)) if d != self.dim]
        self.total, self.allocate = nodes.alloc([self.result.registers], self.acc, "acc", "local")

    def lower(self) -> Stmt:
        digits = [d for d in self.tile.dims[self.dim] if d.axis == "thread" and d.extent > 1]
        start = neutral(self.kind, self.acc)
        scratch, near, far = combine_threads(
            self.result, self.thread, digits, self.width, self.total, start, self.combine
        )
        before, last = self.finish()
        first = calls.step(nodes.seq([self.gather(), near]), self.call.span)
        return nodes.seq([self.allocate, scratch, before, first, far, last])

    def gather(self) -> Stmt:
        """Combine the thread's own elements, or its share of memory."""
        walk = self.walk
        at = walk.register(self.result.dims, self.rows) if self.rows else nodes.int_const(0)
        coordinates = walk.coordinates()
        if self.held:
            value = nodes.load(self.call.places.arrays[self.src.buffer], [walk.register()])
        else:
            value = load(self.src, coordinates, self.call.places.safe_values)
        start = neutral(self.kind, self.acc)
        x = choose(walk.inside(), element(self.kind, value, self.acc), start, not self.held)
        step = nodes.store(self.total, self.combine(self.total[at], x), [at], self.call.span)
        row = nodes.seq([nodes.store(self.total, start, [at]), walk.wrap(step, [self.dim])])
        return walk.wrap(row, self.rows)

    def finish(self) -> tuple[Any, Any]:
        """Return the allocation, and the statement that stores the results."""
        array = self.call.places.arrays.get(self.dst.buffer)
        if array is None:
            return None, calls.step(self.to_memory(), self.call.span)
        known = self.call.places.fragments[self.dst.buffer]
        expected = at_destination(self.tile, self.src, self.dst, self.dim)
        if expected is not None and covers(expected, known):
            return None, calls.step(self.to_registers(array), self.call.span)
        return self.through_scratch(array, known)

    def result_at(self, old: Expr, value: Expr) -> Expr:
        """Return the value to store, from the destination's old value and the reduced elements."""
        if not self.call.attrs["clear"]:
            value = self.combine(convert(old, self.acc), value)
        return convert(value, self.dst.dtype)

    def to_registers(self, array: BufferVar) -> Stmt:
        walk = Walk(self.result, self.thread)
        at = walk.register()
        value = self.result_at(array[at], self.total[at])
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
        value = self.result_at(self.dst.load(at), self.total[walk.register()])
        store = when([*walk.inside(), *bounds(self.dst, at)], self.dst.store(value, at))
        return when(walk.dist.is_first(self.thread), walk.wrap(store))

    def through_scratch(self, array: BufferVar, known: FragmentLayout) -> tuple[Any, Any]:
        """Move the results to the threads that hold the destination."""
        extents = [e for d, e in enumerate(self.src.extents) if d != self.dim and e != 1]
        scratch, allocate = nodes.alloc([prod(extents)], self.acc, "results", "shared")
        walk, to = Walk(self.result, self.thread), Walk(known, self.thread)
        dims = [d for d in range(len(self.src.extents)) if d != self.dim]
        wide = [c for c, d in zip(walk.coordinates(), dims, strict=False) if self.src.extents[d] != 1]
        store = when(walk.inside(), nodes.store(scratch, self.total[walk.register()], [_linear(wide, extents)]))
        write = calls.step(when(walk.dist.is_first(self.thread), walk.wrap(store)))
        register = to.register()
        value = scratch[_linear(kept(self.dst, to.coordinates()) if extents else [], extents)]
        update = nodes.store(array, self.result_at(array[register], value), [register], self.call.span)
        read = calls.step(to.wrap(when(to.inside(), update)))
        return allocate, nodes.seq([write, read])


def shares(src: View, dim: int, threads: int) -> FragmentLayout:
    """Return which thread reads which elements of a tile in memory: vectors along its rows if they divide evenly."""
    extents = tuple(src.extents)
    vector = _VECTOR_BYTES * 8 // DTYPES[src.dtype].bits
    first = nodes.as_int(src.mins[-1])
    while vector > 1 and dim == len(extents) - 1:
        found = spread(extents, threads, vector)
        aligned = not isinstance(first, int) or first % vector == 0
        if aligned and extents[-1] % vector == 0 and prod(extents) >= threads * vector and found.padded == extents:
            return found
        vector //= 2
    return spread(extents, threads)


def covers(expected: FragmentLayout, known: FragmentLayout) -> bool:
    """Whether each thread that holds an element under ``known`` has it in the same register under ``expected``."""
    if expected.shape != known.shape or expected.threads != known.threads:
        return False
    if not np.array_equal(expected.register_table, known.register_table):
        return False
    return all(np.isin(k, e).all() for e, k in zip(expected.thread_table, known.thread_table, strict=True))


def _linear(indices: list[Expr], extents: list[int]) -> Expr:
    total: Any = nodes.int_const(0)
    for c, extent in zip(indices, extents, strict=True):
        total = total * nodes.int_const(extent) + c
    return total
