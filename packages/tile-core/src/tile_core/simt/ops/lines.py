"""Lines of a tile along one dimension, in memory or from registers through scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import calls, nodes
from tile_core.ops.base import View
from tile_core.simt.ops.reduce import shares
from tile_core.simt.ops.results import linear
from tile_core.simt.register_loops import Walk, bounds, kept, load, when

if TYPE_CHECKING:
    from tile_core.simt.variant import SimtCall

#: From an element to what is kept of it, and back.
Convert = Callable[[Expr], Expr]


class Lines:
    """The lines of a view along a dimension, numbered row-major by the other dimensions.

    Attributes
    ----------
    length, count
        Elements of a line, and lines.
    """

    def __init__(self, call: SimtCall, view: View, dim: int) -> None:
        self.call, self.view, self.dim, self.thread = call, view, dim, call.block.thread
        self.extents = [int(e) for e in view.extents]
        self.others = [d for d, e in enumerate(self.extents) if d != dim and e != 1]
        self.length, self.count = self.extents[dim], prod(self.extents[d] for d in self.others)

    @property
    def is_held(self) -> bool:
        """Whether the tile is a fragment: each thread can only read its own elements."""
        return self.view.buffer in self.call.placement.fragments

    def index(self, line: Expr, k: Expr) -> list[Expr]:
        """Return the index, per dimension of the buffer, of a position on a line."""
        found: list[Expr] = [nodes.int_const(0)] * len(self.extents)
        for n, d in reversed(list(enumerate(self.others))):
            found[d] = line if n == 0 else tirx.floormod(line, nodes.int_const(self.extents[d]))
            line = tirx.floordiv(line, nodes.int_const(self.extents[d]))
        found[self.dim] = k if self.length > 1 else nodes.int_const(0)
        return found

    def load(self, line: Expr, k: Expr) -> Expr:
        """Load an element of a tile in memory; the safe value outside of the buffer."""
        return load(self.view, self.index(line, k), self.call.placement.safe_values)

    def store(self, value: Expr, line: Expr, k: Expr) -> Stmt:
        """Store to a tile in memory, if the position is inside the buffer."""
        at = self.index(line, k)
        return when(bounds(self.view, at), nodes.store(self.view.buffer, value, self.view.at(at), self.call.span))

    def load_at(self, coordinates: Sequence[Expr]) -> Expr:
        """Return an element of a tile in memory by its index in the view."""
        return load(self.view, coordinates, self.call.placement.safe_values)

    def collect(self, scratch: BufferVar, convert: Convert, pitch: int) -> Stmt:
        """Store all elements of a fragment to scratch, in lines at a distance of ``pitch``."""
        walk = Walk(self.call.placement.fragments[self.view.buffer], self.thread)
        line, k = self._line_and_position(walk.coordinates())
        value = convert(self.call.placement.arrays[self.view.buffer][walk.register()])
        store = when(walk.inside(), nodes.store(scratch, value, [line * nodes.int_const(pitch) + k]))
        return calls.step(when(walk.dist.is_first(self.thread), walk.wrap(store)), self.call.span)

    def fill(self, value: Callable[[Expr, Expr], Expr]) -> Stmt:
        """Store an element at every coordinate, given as a line and a position on it."""
        held = self.call.placement.fragments.get(self.view.buffer)
        walk = Walk(held if held is not None else shares(self.view, self.dim, self.call.block.count), self.thread)
        line, k = self._line_and_position(walk.coordinates())
        if held is None:
            store = when(walk.inside(), self.store(value(line, k), line, k))
            return calls.step(when(walk.dist.is_first(self.thread), walk.wrap(store)), self.call.span)
        array = self.call.placement.arrays[self.view.buffer]
        store = nodes.store(array, value(line, k), [walk.register()], self.call.span)
        return calls.step(walk.wrap(when(walk.inside(), store)), self.call.span)

    def _line_and_position(self, coordinates: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Return the line and the position on it for an index in the view."""
        wide = [d for d, e in enumerate(self.extents) if e != 1]
        found = dict(zip(wide, kept(self.view, coordinates), strict=False))
        line = linear([found[d] for d in self.others], [self.extents[d] for d in self.others])
        return line, found.get(self.dim, nodes.int_const(0))
