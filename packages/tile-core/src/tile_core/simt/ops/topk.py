"""``topk`` on threads: ``k`` rounds of a cooperative search for the best element.

In each round a thread searches the keys that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.numerics.order_keys import key_type
from tile_core.ops.copy import convert
from tile_core.ops.topk import first, key, none, precedes
from tile_core.simt.ops.combination import Lanes
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.lines import Lines
from tile_core.simt.ops.reduce import shares
from tile_core.simt.ops.results import linear
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import Walk, choose, when

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

#: Bits of keys that a thread keeps; of larger tiles they are computed each time.
_HELD_BITS = 64 * 32


class TopKByShuffles(ByShuffles):
    """Top-k along any dimension, in fragments or memory, on any number of threads."""

    op = "topk"

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept lines of at least two elements."""
        dim = int(call.attrs[attributes.DIMS][0])
        if int(call.args[0].extents[dim]) == 1:
            return Reject("lines of one element are copied")
        return self.collective(call, dim)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Keep keys, find the best one ``k`` times, then store all that were found."""
        return _TopK(call, self.lanes(call, ctx)).lower()


class _Best:
    """Search states: a key, an index along the dimension, and possibly an element.

    The element is part of the state where it cannot be loaded again.
    """

    def __init__(self, dtype: str, is_held: bool) -> None:
        self.dtypes = (key_type(dtype), "int32", *([dtype] if is_held else []))
        self.neutral = (*none(dtype), *([nodes.zero(dtype)] if is_held else []))

    def step(self, totals: Sequence[BufferVar], at: Expr, other: Sequence[Expr]) -> Stmt:
        """Take another state if it comes first, see ``Joining``."""
        return self.offer(totals, at, other, None)

    def start(self, totals: Sequence[BufferVar], at: Expr) -> Stmt:
        """Make a state one that comes after all others, see ``Joining``."""
        return nodes.seq([nodes.store(t, x, [at]) for t, x in zip(totals, self.neutral, strict=True)])

    def offer(self, totals: Sequence[BufferVar], at: Expr, other: Sequence[Expr], last: Sequence[Expr] | None) -> Stmt:
        """Replace the state by a better one that comes after ``last``."""
        names = [nodes.fresh(n, d) for n, d in zip(("key", "index", "element"), self.dtypes, strict=False)]
        binds = [tirx.Bind(v, x) for v, x in zip(names, other, strict=True)]
        better = precedes(names, [totals[0][at], totals[1][at]])
        better = better if last is None else tirx.And(precedes(last, names), better)
        is_better = nodes.fresh("better", "bool")
        stores = [nodes.store(t, tirx.Select(is_better, v, t[at]), [at]) for t, v in zip(totals, names, strict=True)]
        return nodes.seq([*binds, tirx.Bind(is_better, better), *stores])

    def allocate(self, count: int, name: str, parts: int = 3) -> tuple[list[BufferVar], list[Stmt]]:
        """Return arrays for ``count`` states, or for their first parts, and their allocations."""
        made = [nodes.alloc([count], d, name, "local") for d in self.dtypes[:parts]]
        return [b for b, _ in made], [s for _, s in made]


class _TopK:
    """One search: each thread's keys, the best states of its lines, and the results."""

    def __init__(self, call: SimtCall, lanes: Lanes) -> None:
        self.call, self.lanes, self.thread = call, lanes, call.block.thread
        src, values, _ = call.args
        self.dims, self.largest = [int(d) for d in call.attrs[attributes.DIMS]], bool(call.attrs[attributes.LARGEST])
        self.source = Lines(call, src, self.dims[0])
        self.rounds = int(values.extents[self.dims[1]])
        self.dtype, self.dim = src.dtype, self.dims[0]
        held = call.placement.fragments.get(src.buffer)
        self.tile = held if held is not None else shares(src, self.dim, call.block.count)
        self.walk = Walk(self.tile, self.thread)
        self.result = self.tile.project(self.dim)
        self.rows = [d for d in range(len(self.tile.dims)) if d != self.dim]
        self.order = _Best(self.dtype, self.source.is_held)
        self.best, self.allocate = self.order.allocate(self.result.registers, "best")
        self.last, allocations = self.order.allocate(self.result.registers, "last", 2)
        self.allocate += allocations
        kind = key_type(self.dtype)
        self.keeps = self.tile.registers * DTYPES[kind].bits <= _HELD_BITS
        self.keys, keys = nodes.alloc([self.tile.registers], kind, "keys", "local")
        self.allocate += [keys] if self.keeps else []

    def lower(self) -> Stmt:
        count = self.source.count * self.rounds
        found, make_found = nodes.alloc([count], "int32", "found", "shared")
        elements, make_elements = nodes.alloc([count], self.dtype, "elements", "shared")
        keeps = [found, elements] if self.source.is_held else [found]
        made = [make_found, *([make_elements] if self.source.is_held else [])]
        digits = [d for d in self.tile.dims[self.dim] if d.axis == "thread" and d.extent > 1]
        scratch, near, far = combine_threads(self.result, self.thread, digits, self.lanes, self.best, self.order)
        iteration = nodes.fresh("turn")
        look = calls.step(nodes.seq([self.look(), near]), self.call.span)
        end = calls.step(self.note(keeps, iteration), self.call.span)
        loop = nodes.for_loop(iteration, self.rounds, nodes.seq([look, far, end]), span=self.call.span)
        parts = [*self.allocate, *made, scratch, calls.step(self.begin(), self.call.span), loop]
        return nodes.seq([*parts, self.store(1, found, keeps[-1]), self.store(2, found, found)])

    def begin(self) -> Stmt:
        """Compute keys; nothing was found yet."""
        walk = Walk(self.result, self.thread)
        start = [nodes.store(t, x, [walk.register()]) for t, x in zip(self.last, first(self.dtype), strict=True)]
        parts = [walk.wrap(nodes.seq(start))]
        if self.keeps:
            own = Walk(self.tile, self.thread)
            parts.append(own.wrap(nodes.store(self.keys, self.key(own), [own.register()])))
        return nodes.seq(parts)

    def key(self, walk: Walk) -> Expr:
        """Return the key of a thread's element; the last key in order for padding."""
        value = key(self.element(walk), self.dtype, self.largest)
        return choose(walk.inside(), value, none(self.dtype)[0], not self.source.is_held)

    def element(self, walk: Walk) -> Expr:
        if self.source.is_held:
            return nodes.load(self.call.placement.arrays[self.source.view.buffer], [walk.register()])
        return self.source.load_at(walk.coordinates())

    def look(self) -> Stmt:
        """Find the best of the thread's own elements that come after the last one found."""
        walk = self.walk
        at = walk.register(self.result.dims, self.rows) if self.rows else nodes.int_const(0)
        value = self.keys[walk.register()] if self.keeps else self.key(walk)
        position = choose(walk.inside(), walk.coordinate(self.dim), none(self.dtype)[1], False)
        state = [value, position, *([self.element(walk)] if self.source.is_held else [])]
        step = self.order.offer(self.best, at, state, [b[at] for b in self.last])
        return walk.wrap(nodes.seq([self.order.start(self.best, at), walk.wrap(step, [self.dim])]), self.rows)

    def note(self, keeps: Sequence[BufferVar], iteration: Expr) -> Stmt:
        """Store the round's result from its first owner, and continue from it."""
        own, walk = Walk(self.result, self.thread), Walk(self.result, self.thread)
        at = own.register()
        go_on = nodes.seq([nodes.store(a, b[at], [at]) for a, b in zip(self.last, self.best, strict=False)])
        at = walk.register()
        coordinates = walk.coordinates()
        shape = [e for d, e in enumerate(self.source.extents) if d != self.dim]
        wide = [(c, e) for c, e in zip(coordinates, shape, strict=False) if e != 1]
        line = linear([c for c, _ in wide], [e for _, e in wide])
        position = line * nodes.int_const(self.rounds) + iteration
        values = [self.best[1][at], *(b[at] for b in self.best[2:])]
        stores = [nodes.store(k, v, [position]) for k, v in zip(keeps, values, strict=True)]
        return nodes.seq([
            own.wrap(go_on),
            when([*walk.dist.holds(self.thread), *walk.dist.is_first(self.thread)],
                 walk.wrap(when(walk.inside(), nodes.seq(stores)))),
        ])  # fmt: skip

    def store(self, operand: int, found: BufferVar, kept: BufferVar) -> Stmt:
        """Return the step that stores the results to a destination: elements, or indices."""
        out = Lines(self.call, self.call.args[operand], self.dims[operand])

        def value(line: Expr, iteration: Expr) -> Expr:
            position = line * nodes.int_const(self.rounds) + iteration
            if operand == 1 and not self.source.is_held:
                return self.source.load(line, found[position])
            return convert(kept[position], out.view.dtype)

        return out.fill(value)
