"""``fold`` on threads: reduction in registers, by shuffles, then through shared memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import calls, nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.fold import Fold
from tile_core.simt.ops.combination import Lanes
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.reduce import shares
from tile_core.simt.ops.results import Results, at_destination, linear
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, kept, load, when

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall


class FoldByShuffles(ByShuffles):
    """Reductions by a function, and arg-reductions, along any dimension and tile size.

    Notes
    -----
    The first source's layout decides who combines what. Other sources that are fragments of its shape get its layout,
    or go through shared scratch. Destinations without a layout get that of the results.
    """

    op = "fold"

    def layouts(self, call: SimtCall, ctx: Context) -> dict[int, FragmentLayout]:
        """Demand the first source's layout of other sources, and that of the results of destinations."""
        fold, known = Fold.of(call), call.placement.fragments
        src = fold.sources[0]
        found = None if src is None else known.get(src.buffer)
        if src is None or found is None:
            return {}
        wanted: dict[int, FragmentLayout] = {}
        for n, (source, out) in enumerate(zip(fold.sources, fold.outs, strict=True)):
            if source is not None and source.buffer not in known and _whole(source) == list(found.shape):
                wanted[2 * n] = found
            if out is not None and out.buffer not in known:
                target = at_destination(found, src, out, fold.dim)
                wanted.update({} if target is None else {2 * n + 1: target})
        return wanted

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Combine registers, then lanes, then groups; then store."""
        return _Fold(call, self.lanes(call, ctx)).lower()


class _Fold:
    """One fold: the elements of each thread, and its states."""

    def __init__(self, call: SimtCall, lanes: Lanes) -> None:
        self.call, self.lanes, self.fold = call, lanes, Fold.of(call)
        src = self.fold.sources[0]
        assert src is not None
        self.src: View = src
        self.dim, self.thread = self.fold.dim, call.block.thread
        held = call.placement.fragments.get(src.buffer)
        self.tile = held if held is not None else shares(src, self.dim, call.block.count)
        self.walk = Walk(self.tile, self.thread)
        self.result = self.tile.project(self.dim)
        self.rows = [d for d in range(len(self.tile.dims)) if d != self.dim]
        self.totals, self.allocations = self.fold.allocate(self.result.registers)
        self.before: list[Stmt] = []

    def lower(self) -> Stmt:
        digits = [d for d in self.tile.dims[self.dim] if d.axis == "thread" and d.extent > 1]
        gathered = self.gather()
        scratch, near, far = combine_threads(self.result, self.thread, digits, self.lanes, self.totals, self.fold)
        first = calls.step(nodes.seq([gathered, near]), self.call.span)
        ends = []
        for out, total in zip(self.fold.outs, self.totals, strict=True):
            if out is not None:
                stored = _stored(out.dtype)
                results = Results(self.call, self.src, out, self.dim, self.tile, total, stored)
                ends += list(results.finish())
        return nodes.seq([*self.allocations, *self.before, scratch, first, far, *ends])

    def gather(self) -> Stmt:
        """Combine the thread's own elements, or its share of memory."""
        walk = self.walk
        at = walk.register(self.result.dims, self.rows) if self.rows else nodes.int_const(0)
        coordinates = walk.coordinates()
        values = [None if s is None else self.value(s, coordinates) for s in self.fold.sources]
        state = self.fold.lifted(values, coordinates[self.dim])
        step = when(walk.inside(), self.fold.step(self.totals, at, state))
        return walk.wrap(nodes.seq([self.fold.start(self.totals, at), walk.wrap(step, [self.dim])]), self.rows)

    def value(self, source: View, coordinates: list[Expr]) -> Expr:
        """Return a source's element at coordinates of the first source."""
        held = self.call.placement.fragments.get(source.buffer)
        compact = kept(self.src, coordinates)
        if held is None:
            found = iter(compact)
            zero = nodes.int_const(0)
            at = coordinates if source is self.src else [next(found) if e != 1 else zero for e in source.extents]
            return load(source, at, self.call.placement.safe_values)
        array = self.call.placement.arrays[source.buffer]
        if source is self.src or (held.same_as(self.tile) and held.shape == self.tile.shape):
            return nodes.load(array, [self.walk.register()])
        return self.through_scratch(source, held, array, compact)

    def through_scratch(self, source: View, held: FragmentLayout, array: BufferVar, compact: list[Expr]) -> Expr:
        """Move a fragment of another layout to the threads that need it."""
        extents = [e for e in source.extents if e != 1] or [1]
        scratch, allocate = nodes.alloc([prod(extents)], source.dtype, "moved", "shared")
        walk = Walk(held, self.thread)
        position = linear(kept(source, walk.coordinates()), extents)
        store = when(walk.inside(), nodes.store(scratch, array[walk.register()], [position]))
        self.before += [allocate, calls.step(when(held.is_first(self.thread), walk.wrap(store)))]
        last = [tirx.min(c, nodes.int_const(e - 1)) for c, e in zip(compact, extents, strict=True)]
        return scratch[linear(last, extents)]


def _stored(dtype: str) -> Callable[[Expr, Expr], Expr]:
    return lambda old, value: convert(value, dtype)


def _whole(view: View) -> list[Expr]:
    """Return a buffer's shape if a view is all of it."""
    shape = list(nodes.shape_of(view.buffer))
    return shape if list(view.extents) == shape else []
