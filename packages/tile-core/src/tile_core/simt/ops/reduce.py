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
from tile_core.numerics.ordered import from_ordered, ordered
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, before, combined_as, element, neutral
from tile_core.simt.ops.combination import Combination, Lanes
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.results import Results, at_destination
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, choose, each, load, registers

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

#: The widest access of any target.
_VECTOR_BYTES = 16
#: Bits of the exponent of a float32.
_EXPONENT = 0x7F800000


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
        kind = combined_as(self.kind)
        self.is_loose = is_loose and self.acc == "float32" and kind in ("max", "min") and not propagates
        self.combine = Combination(kind, self.acc, propagates)
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
        # Integers are combined by one instruction where an exact extreme of floats takes several; none is NaN here.
        by_keys = self.is_loose and bool(digits)
        combine = Combination(self.combine.kind, "int32") if by_keys else self.combine
        keys, new_keys = self.total, None
        if by_keys:
            keys, new_keys = nodes.alloc([self.result.registers], "int32", "keys", "local")
        scratch, near, far = combine_threads(self.result, self.thread, digits, self.lanes, [keys], combine, readers)
        results = Results(self.call, self.src, self.dst, self.dim, self.tile, self.total, self.result_at)
        allocation, last = results.finish()
        parts, back = [self.gather(), near], []
        if by_keys:
            count = registers(keys)
            parts.insert(1, each(count, lambda r: nodes.store(keys, ordered(self.total[r]), [r])))
            back = [each(count, lambda r: nodes.store(self.total, from_ordered(keys[r]), [r]))]
        first = calls.step(nodes.seq(parts), self.call.span)
        return nodes.seq([self.allocate, new_keys, scratch, allocation, first, far, *back, last])

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
        tiny = tirx.EQ(bits_of(self.total[at]) & nodes.const(_EXPONENT, "uint32"), nodes.zero("uint32"))
        again = tirx.IfThenElse(tiny, renamed(self._tiny(at, x, start)), None)
        return walk.wrap(nodes.seq([loose, again]), self.rows)

    def _tiny(self, at: Expr, x: Expr, start: Expr) -> Stmt:
        """Return the statement that finds an extreme without exponent, by the order of integers.

        With one more in the exponent, positive candidates are above all others: infinities and NaN change their sign.
        The least integer is the negative number of the least size. A minimum is the maximum with other signs.
        """
        sign, one = nodes.const(1 << 31, "uint32"), 1 << 23

        def turned(bits: Expr) -> Expr:
            return bits if self.combine.kind == "max" else bits ^ sign

        (above, new_above), (below, new_below) = (nodes.alloc([1], "int32", n, "local") for n in ("above", "below"))

        def store(value: Expr, high: BinaryNode, low: BinaryNode) -> Stmt:
            bits = turned(bits_of(value))
            raised, whole = (tirx.reinterpret("int32", b) for b in (bits + nodes.const(one, "uint32"), bits))
            return nodes.seq([
                nodes.store(above, high(above[0], raised), [0]), nodes.store(below, low(below[0], whole), [0]),
            ])  # fmt: skip

        begin = store(start, lambda old, new: new, lambda old, new: new)
        steps = self.walk.wrap(store(x, tirx.Max, tirx.Min), [self.dim])
        found = tirx.Select(above[0] >= one, above[0] - one, below[0])
        value = tirx.reinterpret("float32", turned(tirx.reinterpret("uint32", found)))
        end = nodes.store(self.total, value, [at], self.call.span)
        return nodes.seq([new_above, new_below, begin, steps, end])

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
