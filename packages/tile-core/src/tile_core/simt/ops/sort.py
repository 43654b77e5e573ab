"""``sort`` on threads: a bitonic network in registers, by shuffles, and in shared memory.

A *chunk* consists of the keys that the lanes of a group hold. Each lane holds adjacent keys, since keys near each other
are exchanged most often. Runs of keys are merged in pairs, first each key with its mirror image, then at half
distances, so that all exchanges put the smaller key first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.numerics.order_keys import key_type, sort_key, sorted_value, wide_type
from tile_core.ops.copy import convert
from tile_core.simt.ops.lines import Lines
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import choose, each, unrolled, when

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

#: Bits of keys that a thread holds.
_HELD_BITS = 256

Get = Callable[[Expr, Expr], Expr]
Put = Callable[[Expr, Expr, Expr], Stmt]


class SortByShuffles(ByShuffles):
    """Sort lines of any length and number, in fragments or memory, on any block."""

    op = "sort"

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept lines of at least two elements."""
        if int(call.args[0].extents[int(call.attrs[attributes.DIM])]) == 1:
            return Reject("lines of one element are copied")
        return super().accepts(call, ctx)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Sort chunks in registers, then merge them through shared memory."""
        return _Sort(call, self.lanes(call, ctx).width).lower()


class _Sort:
    """One sort: lines of ``2**steps`` keys in chunks of ``2**chunk_bits``.

    A thread holds ``2**own_bits`` of the keys.
    """

    def __init__(self, call: SimtCall, width: int) -> None:
        src, dst = call.args
        self.call, self.descending, self.dtype = call, bool(call.attrs[attributes.DESCENDING]), src.dtype
        self.source, self.target = (Lines(call, v, int(call.attrs[attributes.DIM])) for v in (src, dst))
        self.kind, self.length = key_type(src.dtype), self.source.length
        self.steps = (self.length - 1).bit_length()
        most = (_HELD_BITS // DTYPES[self.kind].bits).bit_length() - 1
        self.lane_bits = min(width.bit_length() - 1, call.block.count.bit_length() - 1, self.steps)
        self.own_bits = min(most, self.steps - self.lane_bits)
        self.chunk_bits = self.own_bits + self.lane_bits
        self.keys, self.allocate = nodes.alloc([1 << self.own_bits], self.kind, "keys", "local")
        self.theirs, self.allocate_theirs = nodes.alloc([1 << self.own_bits], self.kind, "theirs", "local")
        self.lane = tirx.floormod(call.block.thread, nodes.int_const(1 << self.lane_bits))

    def lower(self) -> Stmt:
        pitch = 1 << self.steps
        scratch, allocate = nodes.alloc([self.source.count * pitch], self.kind, "lines", "shared")

        def stored(line: Expr, k: Expr) -> Expr:
            return scratch[line * nodes.int_const(pitch) + k]

        def store(line: Expr, k: Expr, key: Expr) -> Stmt:
            return nodes.store(scratch, key, [line * nodes.int_const(pitch) + k])

        def read(line: Expr, k: Expr) -> Expr:
            return self.key(self.source.load(line, k))

        def write(line: Expr, k: Expr, key: Expr) -> Stmt:
            return self.target.store(self.value(key), line, k)

        collected, spread = self.source.is_held, self.target.is_held
        get, last = stored if collected else read, store if spread else write
        parts = [self.allocate, self.allocate_theirs]
        if collected or spread or self.chunk_bits < self.steps:
            parts.append(allocate)
        if collected:
            parts.append(self.source.collect(scratch, self.key, pitch))
        if self.chunk_bits == self.steps:
            apart = not collected and spread
            parts.append(self.chunks(get, last, self.sort_chunk, self.length, apart=apart))
        else:
            parts.append(self.chunks(get, store, self.sort_chunk, pitch, apart=not collected))
            parts += self.merged(scratch, pitch, stored, store, last)
        if spread:
            parts.append(self.target.fill(lambda line, k: self.value(stored(line, k))))
        return nodes.seq(parts)

    def key(self, element: Expr) -> Expr:
        return sort_key(convert(element, wide_type(self.dtype)), self.dtype, self.descending)

    def value(self, key: Expr) -> Expr:
        return convert(sorted_value(key, self.dtype, self.descending), self.dtype)

    # Chunks: a group of lanes for each

    def chunks(
        self, get: Get, put: Put, network: Callable[[], list[Stmt]], stored: int, *, apart: bool = False
    ) -> Stmt:
        """Return the step that loads, orders and stores all chunks.

        Parameters
        ----------
        get, put
            A key of a place on a line, and the statement that stores it there.
        stored
            How many keys of a line are stored.
        apart
            No key is stored where another is loaded from: then lanes load adjacent keys, in any order.
        """
        thread, threads = self.call.block.thread, self.call.block.count
        own, lanes = 1 << self.own_bits, 1 << self.lane_bits
        groups, chunks = threads // lanes, 1 << (self.steps - self.chunk_bits)
        units = self.source.count * chunks
        iteration = nodes.fresh("turn")
        unit = iteration * nodes.int_const(groups) + tirx.floordiv(thread, nodes.int_const(lanes))
        line = tirx.floordiv(unit, nodes.int_const(chunks))
        start = tirx.floormod(unit, nodes.int_const(chunks)) * nodes.int_const(1 << self.chunk_bits)
        limits = [unit < units] if units % groups else []
        limits += [thread < groups * lanes] if threads % lanes else []

        def load(r: Expr) -> Stmt:
            k = start + (r * nodes.int_const(lanes) + self.lane if apart else self.lane * nodes.int_const(own) + r)
            inside = [*limits, *([k < self.length] if self.length < 1 << self.steps else [])]
            greatest = nodes.const(2 ** (DTYPES[self.kind].bits - 1) - 1, self.kind)
            return nodes.store(self.keys, choose(inside, get(line, k), greatest, True), [r])

        def store(r: Expr) -> Stmt:
            k = start + self.lane * nodes.int_const(own) + r
            inside = [*limits, *([k < stored] if stored < 1 << self.steps else [])]
            return when(inside, put(line, k, self.keys[r]))

        body = nodes.seq([_adjacent(own, load), *network(), _adjacent(own, store)])
        return calls.step(nodes.for_loop(iteration, -(-units // groups), body, span=self.call.span), self.call.span)

    def sort_chunk(self) -> list[Stmt]:
        """Return the whole network of a chunk."""
        parts = []
        for size in range(self.chunk_bits):
            parts += [self.exchange(size, mirrored=True), *(self.exchange(d) for d in reversed(range(size)))]
        return parts

    def merge_chunk(self) -> list[Stmt]:
        """Return the exchanges at all distances inside of a chunk."""
        return [self.exchange(d) for d in reversed(range(self.chunk_bits))]

    def exchange(self, level: int, *, mirrored: bool = False) -> Stmt:
        """Exchange keys at distance ``2**level``, or with mirror images in ``2**(level + 1)`` keys."""
        if level < self.own_bits:
            return self.in_thread(1 << level, mirrored)
        own = 1 << self.own_bits
        bit = 1 << (level - self.own_bits)
        mask, is_low = 2 * bit - 1 if mirrored else bit, tirx.EQ(tirx.bitwise_and(self.lane, nodes.int_const(bit)), 0)

        def ask(r: Expr) -> Stmt:
            mine = self.keys[nodes.int_const(own - 1) - r if mirrored else r]
            arguments = [mine, nodes.int_const(mask), nodes.int_const(1 << self.lane_bits)]
            return nodes.store(self.theirs, nodes.tile_call("shfl_xor", arguments, ret=self.kind), [r])

        def take(r: Expr) -> Stmt:
            a, b = self.keys[r], self.theirs[r]
            return nodes.store(self.keys, tirx.Select(is_low, tirx.Min(a, b), tirx.Max(a, b)), [r])

        return nodes.seq([each(own, ask), each(own, take)])

    def in_thread(self, step: int, mirrored: bool) -> Stmt:
        def pair(run: Expr, at: Expr) -> Stmt:
            base = run * nodes.int_const(2 * step)
            low = base + at
            high = base + nodes.int_const(2 * step - 1) - at if mirrored else low + nodes.int_const(step)
            return _ordered(self.keys, low, high)

        runs = (1 << self.own_bits) // (2 * step)
        return unrolled("run", runs, lambda run: unrolled("at", step, lambda at: pair(run, at)))

    # Lines of several chunks

    def merged(self, scratch: BufferVar, pitch: int, get: Get, put: Put, last: Put) -> list[Stmt]:
        """Return steps that merge sorted chunks in shared memory."""
        parts = []
        for size in range(self.chunk_bits, self.steps):
            parts.append(self.in_memory(scratch, pitch, 1 << size, mirrored=True))
            parts += [self.in_memory(scratch, pitch, 1 << d) for d in reversed(range(self.chunk_bits, size))]
            is_last = size == self.steps - 1
            end, stored = (last, self.length) if is_last else (put, pitch)
            parts.append(self.chunks(get, end, self.merge_chunk, stored, apart=False))
        return parts

    def in_memory(self, scratch: BufferVar, pitch: int, step: int, *, mirrored: bool = False) -> Stmt:
        """Return the step that exchanges all pairs of keys at a distance."""
        threads, pairs = self.call.block.count, self.source.count * pitch // 2
        iteration, number = nodes.fresh("turn"), nodes.fresh("pair")
        base = tirx.floordiv(number, nodes.int_const(step)) * nodes.int_const(2 * step)
        at = tirx.floormod(number, nodes.int_const(step))
        high = base + nodes.int_const(2 * step - 1) - at if mirrored else base + at + nodes.int_const(step)
        body = _ordered(scratch, base + at, high)
        limits = [number < pairs] if pairs % threads else []
        bound = tirx.Bind(number, iteration * nodes.int_const(threads) + self.call.block.thread)
        loop = nodes.for_loop(
            iteration, -(-pairs // threads), nodes.seq([bound, when(limits, body)]), span=self.call.span
        )
        return calls.step(loop, self.call.span)


def _adjacent(count: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Return a loop over the positions of a thread, for vector accesses if possible."""
    r = nodes.fresh("r")
    return nodes.for_loop(r, count, body(r), "unroll", annotations={attributes.VECTOR: nodes.int_const(count)})


def _ordered(keys: BufferVar, low: Expr, high: Expr) -> Stmt:
    """Return the statements after which two keys are in order."""
    kind = nodes.element_type(keys)
    a, b = nodes.fresh("a", kind), nodes.fresh("b", kind)
    return nodes.seq([
        tirx.Bind(a, keys[low]), tirx.Bind(b, keys[high]),
        nodes.store(keys, tirx.Min(a, b), [low]), nodes.store(keys, tirx.Max(a, b), [high]),
    ])  # fmt: skip
