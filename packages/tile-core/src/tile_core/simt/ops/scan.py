"""``scan`` on threads: in registers, one thread per line, or shuffles per line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, UnaryNode, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, combiner, neutral
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, bounds, choose, load, when

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ops.base import View
    from tile_core.simt.variant import SimtCall

Get = Callable[[list[Any]], Any]
Put = Callable[[list[Any], Any], Any]


class ScanByShuffles(ByShuffles):
    """Prefix sum and maximum along any dimension, for every tile size and block size.

    Notes
    -----
    A fragment whose lines lie inside threads is scanned in registers. Other fragments go through shared scratch.
    Long lines in memory are scanned by a group of lanes each, many short ones by a thread each.
    """

    op = "scan"

    def layouts(self, call: SimtCall, ctx: Context) -> dict[int, FragmentLayout]:
        """Require the source's layout for a destination without one, if threads hold whole lines."""
        src, dst = call.args
        known = call.placement.fragments
        found = known.get(src.buffer)
        if found is None or dst.buffer in known or nodes.shape_of(dst.buffer) != list(found.shape):
            return {}
        return {1: found} if _in_threads(found, int(call.attrs[attributes.DIM])) else {}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Scan in registers, or in memory."""
        return _Scan(call, self.lanes(call, ctx).width).lower()


class _Scan:
    def __init__(self, call: SimtCall, width: int) -> None:
        self.call, self.width = call, width
        self.src, self.dst = call.args
        self.dim, self.reverse = int(call.attrs[attributes.DIM]), bool(call.attrs[attributes.REVERSE])
        kind = str(call.attrs[attributes.KIND])
        self.acc = accumulator(self.dst.dtype)
        self.neutral = neutral(kind, self.acc)
        self.combine = combiner(kind, self.acc, bool(call.attrs[attributes.NAN_PROPAGATE]))
        self.thread, self.count = call.block.thread, call.block.count
        self.extents = list(self.src.extents)
        self.size = self.extents[self.dim]
        self.others = [d for d in range(len(self.extents)) if d != self.dim]
        self.lines = prod(self.extents[d] for d in self.others)

    def lower(self) -> Stmt:
        held = [self.call.placement.fragments.get(v.buffer) for v in (self.src, self.dst)]
        first, second = held
        if first is not None and second is not None and first.same_as(second) and _in_threads(first, self.dim):
            return self.in_registers(first)
        if first is None and second is None:
            return self.in_memory(self.get_memory, self.put_memory)
        scratch, allocate = nodes.alloc([prod(self.extents)], self.acc, "lines", "shared")

        def get(at: list[Expr]) -> Expr:
            return scratch[_linear(at, self.extents)]

        def put(at: list[Expr], value: Expr) -> Stmt:
            return nodes.store(scratch, value, [_linear(at, self.extents)], self.call.span)

        before = None if first is None else self.from_registers(first, put)
        after = None if second is None else self.to_registers(second, get)
        middle = self.in_memory(self.get_memory if first is None else get, self.put_memory if second is None else put)
        return nodes.seq([allocate, before, middle, after])

    # Registers

    def in_registers(self, dist: FragmentLayout) -> Stmt:
        """Scan lines that lie inside threads."""
        walk = Walk(dist, self.thread)
        source, target = (self.call.placement.arrays[v.buffer] for v in (self.src, self.dst))
        total, allocate = nodes.alloc([1], self.acc, "acc", "local")
        if self.reverse:
            mine = dist.dims[self.dim]
            at = [
                v if g.extent == 1 else nodes.int_const(g.extent - 1) - v
                for v, g in zip(walk.values[self.dim], mine, strict=True)
            ]
        else:
            at = walk.values[self.dim]
        position = Walk(dist, self.thread)
        position.values = [at if d == self.dim else walk.values[d] for d in range(len(dist.dims))]
        register = position.register()
        value = choose(position.inside([self.dim]), convert(source[register], self.acc), self.neutral, False)
        step = nodes.seq([
            nodes.store(total, self.combine(total[0], value), [0]),
            nodes.store(target, convert(total[0], self.dst.dtype), [register], self.call.span),
        ])  # fmt: skip
        line = nodes.seq([nodes.store(total, self.neutral, [0]), walk.wrap(step, [self.dim])])
        return nodes.seq([allocate, calls.step(walk.wrap(line, self.others), self.call.span)])

    def from_registers(self, dist: FragmentLayout, put: Put) -> Stmt:
        """Store a fragment's elements to scratch."""
        walk = Walk(dist, self.thread)
        value = convert(self.call.placement.arrays[self.src.buffer][walk.register()], self.acc)
        store = when(walk.inside(), put(self.wide(walk.coordinates(), self.src), value))
        return calls.step(when(dist.is_first(self.thread), walk.wrap(store)))

    def to_registers(self, dist: FragmentLayout, get: Get) -> Stmt:
        """Load a fragment's elements from scratch."""
        walk = Walk(dist, self.thread)
        array = self.call.placement.arrays[self.dst.buffer]
        value = convert(get(self.wide(walk.coordinates(), self.dst)), self.dst.dtype)
        store = when(walk.inside(), nodes.store(array, value, [walk.register()], self.call.span))
        return calls.step(walk.wrap(store))

    def wide(self, at: Sequence[Expr], view: View) -> list[Expr]:
        """Return an index of a view as one of the source."""
        found = iter([i for i, e in zip(at, view.extents, strict=True) if e != 1])
        return [next(found) if e != 1 else nodes.int_const(0) for e in self.extents]

    # Memory

    def get_memory(self, at: list[Expr]) -> Expr:
        return convert(load(self.src, at, self.call.placement.safe_values), self.acc)

    def put_memory(self, at: list[Expr], value: Expr) -> Stmt:
        found = iter([i for i, e in zip(at, self.extents, strict=True) if e != 1])
        to = [next(found) if e != 1 else nodes.int_const(0) for e in self.dst.extents]
        return when(bounds(self.dst, to), self.dst.store(convert(value, self.dst.dtype), to))

    def in_memory(self, get: Get, put: Put) -> Stmt:
        last = max((d for d, e in enumerate(self.extents) if e != 1), default=self.dim)
        long = self.dim == last and self.size >= self.width // 2
        few = self.lines < self.count and self.size > 4
        return self.by_groups(get, put) if self.width > 1 and (long or few) else self.by_threads(get, put)

    def index(self, line: Expr, position: Expr) -> list[Expr]:
        """Return the source's index of a position on a line."""
        found: list[Expr] = [nodes.int_const(0)] * len(self.extents)
        rest = line
        for d in reversed(self.others):
            if self.extents[d] != 1:
                found[d] = tirx.floormod(rest, nodes.int_const(self.extents[d]))
                rest = tirx.floordiv(rest, nodes.int_const(self.extents[d]))
        found[self.dim] = position if self.size > 1 else nodes.int_const(0)
        return found

    def position(self, k: Expr) -> Expr:
        return nodes.int_const(self.size - 1) - k if self.reverse else k

    def by_threads(self, get: Get, put: Put) -> Stmt:
        """Scan with one thread per line."""
        total, allocate = nodes.alloc([1], self.acc, "acc", "local")
        iteration, k = nodes.fresh("turn"), nodes.fresh("k")
        line = iteration * nodes.int_const(self.count) + self.thread
        at = self.index(line, self.position(k))
        step = nodes.seq([
            nodes.store(total, self.combine(total[0], get(at)), [0]), put(at, total[0]),
        ])  # fmt: skip
        body = nodes.seq([nodes.store(total, self.neutral, [0]), nodes.for_loop(k, self.size, step)])
        trips = -(-self.lines // self.count)
        limit = [line < self.lines] if self.lines % self.count else []
        loop = nodes.for_loop(iteration, trips, when(limit, body), span=self.call.span)
        return nodes.seq([allocate, calls.step(loop, self.call.span)])

    def by_groups(self, get: Get, put: Put) -> Stmt:
        """Scan with one group of lanes per line; all lanes run all iterations for shuffles."""
        size = min(self.width, 1 << (self.count.bit_length() - 1))
        groups = self.count // size
        lane = tirx.floormod(self.thread, nodes.int_const(size))
        iteration, chunk = nodes.fresh("turn"), nodes.fresh("chunk")
        line = iteration * nodes.int_const(groups) + tirx.floordiv(self.thread, nodes.int_const(size))
        k = chunk * nodes.int_const(size) + lane
        limits = [k < self.size] if self.size % size else []
        limits += [line < self.lines] if self.lines % groups else []
        limits += [self.thread < groups * size] if self.count % size else []
        at = self.index(line, self.position(k))
        x, make_x = nodes.alloc([1], self.acc, "x", "local")
        carry, make_carry = nodes.alloc([1], self.acc, "carry", "local")
        parts = [nodes.store(x, self.combine(self.neutral, choose(limits, get(at), self.neutral, True)), [0])]
        distance = 1
        while distance < size:
            parts += self.shuffled(x, "shfl_up", distance, size, self.adder(x, lane, distance))
            distance *= 2
        parts += [nodes.store(x, self.combine(carry[0], x[0]), [0]), when(limits, put(at, x[0]))]
        parts += self.shuffled(x, "shfl_sync", size - 1, size, lambda other: nodes.store(carry, other, [0]))
        chunks = nodes.for_loop(chunk, -(-self.size // size), nodes.seq(parts))
        body = nodes.seq([nodes.store(carry, self.neutral, [0]), chunks])
        loop = nodes.for_loop(iteration, -(-self.lines // groups), body, span=self.call.span)
        return nodes.seq([make_x, make_carry, calls.step(loop, self.call.span)])

    def adder(self, x: BufferVar, lane: Expr, distance: int) -> UnaryNode:
        """Return the combination of a lane's value with the lane ``distance`` below, if it exists."""

        def add(other: Var) -> Stmt:
            return nodes.store(x, tirx.Select(lane >= distance, self.combine(other, x[0]), x[0]), [0])

        return add

    def shuffled(self, x: BufferVar, name: str, lane: int, size: int, use: Callable[[Expr], Stmt]) -> list[Stmt]:
        """Return a shuffle from another lane, and the statement that uses its value."""
        other = nodes.fresh("other", self.acc)
        value = nodes.tile_call(name, [x[0], nodes.int_const(lane), nodes.int_const(size)], ret=self.acc)
        return [tirx.Bind(other, value), use(other)]


def _in_threads(dist: FragmentLayout, dim: int) -> bool:
    """Whether every line along a dimension lies inside one thread."""
    return all(g.axis == "register" or g.extent == 1 for g in dist.dims[dim])


def _linear(at: Sequence[Expr], extents: Sequence[int]) -> Expr:
    total: Expr = nodes.int_const(0)
    for i, e in zip(at, extents, strict=True):
        if e != 1:
            total = total * nodes.int_const(e) + i
    return total
