"""``cpu.fold.lanes``: reductions by a function, and places of extremes, with one state per vector lane."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.isa import Isa
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject, TargetCall, Variant
from tile_core.ops.copy import convert
from tile_core.ops.fold import Fold

if TYPE_CHECKING:
    from tile_core.context import Context

#: Vectors whose states are kept side by side, to hide the latency of a step.
_CHAINS = 4
#: What has vectors: no truth values, and no types of 4 bits.
_SOURCES = tuple(name for name, d in DTYPES.items() if name != "bool" and not d.is_packed)


class LaneFold(Variant):
    """Folds along the contiguous dimension; others already vectorise across their results."""

    name = "cpu.fold.lanes"
    op = "fold"
    priority = 10
    legality = Legality(operands=("src", "dst"), dtypes=frozenset(product(_SOURCES, _SOURCES)))

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: TargetCall, ctx: Context) -> Accept | Reject:
        """Accept rows of at least two vectors."""
        fold = Fold.of(call)
        if ctx.options is not None and ctx.options.generic:
            return Reject("the option generic requires plain loops")
        views = [s for s in fold.sources if s is not None]
        if any(s.extents[-1] != views[0].extents[fold.dim] for s in views) or fold.dim != len(views[0].extents) - 1:
            return Reject("the dimension is not the contiguous one")
        others = [d for d in (*(s.dtype for s in views), *fold.dtypes) if d not in _SOURCES]
        if others:
            return Reject(f"{others[0]} has no vector form")
        lanes = self.lanes(fold)
        if views[0].extents[-1] < 2 * lanes:
            return Reject(f"rows of {views[0].extents[-1]} elements are shorter than two vectors of {lanes}")
        return Accept(note=f"{lanes} lanes")

    def lanes(self, fold: Fold) -> int:
        """Return the elements per vector."""
        types = [*fold.dtypes, *(s.dtype for s in fold.sources if s is not None)]
        return max(2, self.isa.vector_bits // max(DTYPES[d].bits for d in types))

    def lower(self, call: TargetCall, ctx: Context) -> Stmt:
        """Fold by lane, then combine the lanes pairwise."""
        fold = Fold.of(call)
        src = fold.sources[0]
        assert src is not None
        lanes, extent = self.lanes(fold), src.extents[-1]
        chains = min(_CHAINS, max(1, extent // lanes))
        while chains & (chains - 1):
            chains -= 1
        row = _Row(call, fold, lanes, lanes * chains)
        outer = [d for d, e in enumerate(src.extents[:-1]) if e != 1]
        return nodes.nest([src.extents[d] for d in outer] or [1], row.lower, "serial", span=call.span)


class _Row:
    def __init__(self, call: TargetCall, fold: Fold, lanes: int, width: int) -> None:
        self.call, self.fold, self.lanes, self.width = call, fold, lanes, width
        self.several = any(e != 1 for e in fold.sources[0].extents[:-1])  # type: ignore[union-attr]

    def lower(self, *indices: Expr) -> Stmt:
        """Return the statements of one row."""
        fold, width = self.fold, self.width
        partial, allocations = fold.allocate(width, "partial")
        extent = int(fold.sources[0].extents[-1])  # type: ignore[union-attr]
        rows = indices if self.several else ()

        def state(k: Expr) -> list[Expr]:
            values = [None if s is None else nodes.load(s.buffer, s.spread([*rows, k])) for s in fold.sources]
            return fold.lifted(values, k)

        def step(base: Expr) -> Callable[[Expr], Stmt]:
            return lambda lane: fold.step(partial, lane, state(base + lane), after=True)

        o: Var = nodes.fresh("o")
        parts = [*allocations, *self.across(width, lambda lane: fold.assign(partial, lane, state(lane)))]
        loop = nodes.seq(self.across(width, step((o + 1) * width)))
        parts.append(nodes.for_loop(o, extent // width - 1, loop, span=self.call.span))
        rest = extent % width
        parts += self.across(rest, step(nodes.int_const(extent - rest))) if rest else []
        half = width // 2
        while half >= 1:
            parts += self.across(half, lambda lane, h=half: self.merged(partial, lane, lane + h))
            half //= 2
        for out, total in zip(fold.outs, partial, strict=True):
            if out is not None:
                to = out.spread(indices)
                parts.append(nodes.store(out.buffer, convert(total[0], out.dtype), to, self.call.span))
        return nodes.seq(parts)

    def merged(self, partial: list[BufferVar], lane: Expr, other: Expr) -> Stmt:
        """Combine the states of two lanes."""
        return self.fold.step(partial, lane, [p[other] for p in partial])

    def across(self, count: int, body: Callable[..., Stmt]) -> list[Stmt]:
        """One statement per chain, each over the lanes of a vector."""
        starts = range(0, count, self.lanes)
        return [nodes.nest([min(self.lanes, count - c)], lambda lane, c=c: body(lane + c), "parallel") for c in starts]
