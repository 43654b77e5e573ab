"""``reduce`` on threads: in registers, by shuffles, then through shared memory between groups."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import renamed
from tile_core.layout.fragment import FragmentLayout, spread
from tile_core.numerics.build import bits_of
from tile_core.numerics.extremes import loose_extreme
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, before, combined_as, element, neutral
from tile_core.simt.ops.combination import Combination, Lanes
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.results import Results, at_destination
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, choose, load

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

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

    def layouts(self, call: SimtCall, ctx: Context) -> dict[int, FragmentLayout]:
        """Demand that a destination without a layout has that of the results."""
        src, dst = call.args
        known = call.placement.fragments
        found = known.get(src.buffer)
        if found is None or dst.buffer in known:
            return {}
        target = at_destination(found, src, dst, int(call.attrs[attributes.DIM]))
        return {} if target is None else {1: target}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Combine registers, then lanes, then groups; then store."""
        return _Reduce(call, self.lanes(call, ctx), ctx.capabilities.loose_extremes).lower()


class _Reduce:
    """One reduction: a thread's registers or elements in memory, and its accumulators."""

    def __init__(self, call: SimtCall, lanes: Lanes, is_loose: bool) -> None:
        self.call, self.lanes = call, lanes
        self.src, self.dst = call.args
        self.kind, self.dim = str(call.attrs[attributes.KIND]), int(call.attrs[attributes.DIM])
        self.acc = accumulator(self.dst.dtype)
        propagates = bool(call.attrs[attributes.NAN_PROPAGATE])
        self.combine = Combination(combined_as(self.kind), self.acc, propagates)
        self.is_loose = is_loose and self.acc == "float32" and self.combine.kind in ("max", "min") and not propagates
        self.thread = call.block.thread
        held = call.placement.fragments.get(self.src.buffer)
        self.held = held is not None
        self.tile = held if held is not None else shares(self.src, self.dim, call.block.count)
        self.walk = Walk(self.tile, self.thread)
        self.result = self.tile.project(self.dim)
        self.rows = [d for d in range(len(self.tile.dims)) if d != self.dim]
        self.total, self.allocate = nodes.alloc([self.result.registers], self.acc, "acc", "local")

    def lower(self) -> Stmt:
        digits = [d for d in self.tile.dims[self.dim] if d.axis == "thread" and d.extent > 1]
        # Where the results go to memory, one of the threads that have them stores them.
        readers = [] if self.dst.buffer in self.call.placement.arrays else self.result.is_first(self.thread)
        scratch, near, far = combine_threads(
            self.result, self.thread, digits, self.lanes, [self.total], self.combine, readers
        )
        results = Results(self.call, self.src, self.dst, self.dim, self.tile, self.total, self.result_at)
        allocation, last = results.finish()
        first = calls.step(nodes.seq([self.gather(), near]), self.call.span)
        return nodes.seq([self.allocate, scratch, allocation, first, far, last])

    def gather(self) -> Stmt:
        """Combine the thread's own elements, or its share of memory."""
        walk = self.walk
        at = walk.register(self.result.dims, self.rows) if self.rows else nodes.int_const(0)
        coordinates = walk.coordinates()
        if self.held:
            value = nodes.load(self.call.placement.arrays[self.src.buffer], [walk.register()])
        else:
            value = load(self.src, coordinates, self.call.placement.safe_values)
        start = neutral(self.kind, self.acc)
        x = choose(walk.inside(), element(self.kind, value, self.acc), start, not self.held)

        def fold(combine: BinaryNode) -> Stmt:
            step = nodes.store(self.total, combine(self.total[at], x), [at], self.call.span)
            return nodes.seq([nodes.store(self.total, start, [at]), walk.wrap(step, [self.dim])])

        if not self.is_loose:
            return walk.wrap(fold(self.combine), self.rows)
        # The machine's own instruction is right unless zeros or subnormal numbers are the largest: then once more.
        loose = fold(lambda a, b: loose_extreme(self.combine.kind, a, b))
        tiny = tirx.EQ(bits_of(self.total[at]) & nodes.const(0x7F800000, "uint32"), nodes.zero("uint32"))
        again = tirx.IfThenElse(tiny, renamed(fold(self.combine)), None)
        return walk.wrap(nodes.seq([loose, again]), self.rows)

    def result_at(self, old: Expr, value: Expr) -> Expr:
        """Return the value to store, from the destination's old value and the reduced elements."""
        if not self.call.attrs[attributes.CLEAR]:
            value = self.combine(before(self.kind, old, self.acc), value)
        return convert(value, self.dst.dtype)


def shares(src: View, dim: int, threads: int) -> FragmentLayout:
    """Return the distribution of a tile in memory over threads.

    Threads read vectors along rows if these divide evenly.
    """
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
