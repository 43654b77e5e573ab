"""``cpu.reduce.lanes``: reductions with one accumulator per vector lane."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.cpu.ops.lane_rows import LaneRows
from tile_core.cpu.tile2d import ramp
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import DecodedCall
from tile_core.ops.copy import convert
from tile_core.ops.reduce import absorber, accumulator, before, combiner, element, neutral

if TYPE_CHECKING:
    from tile_core.context import Context

#: Vectors that are accumulated side by side, to hide the latency of an addition.
_CHAINS = 4
#: What has vectors: no truth values, and no integers of 4 bits to add up in.
_SOURCES = tuple(name for name in DTYPES if name != "bool")
_RESULTS = tuple(name for name in _SOURCES if not (DTYPES[name].is_integer and DTYPES[name].is_packed))


class LaneReduce(LaneRows):
    """Reductions along the contiguous dimension; others already vectorise across their results."""

    name = "cpu.reduce.lanes"
    op = "reduce"
    legality = Legality(operands=("src", "dst"), dtypes=frozenset(product(_SOURCES, _RESULTS)))

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Accumulate by lane, then combine the lanes pairwise."""
        src, dst = call.args
        lanes = self.lanes(src, dst)
        chains = min(_CHAINS, max(1, src.extents[-1] // lanes))
        while chains & (chains - 1):
            chains -= 1
        width = lanes * chains
        outer = [d for d, e in enumerate(src.extents[:-1]) if e != 1]
        return nodes.nest(
            [src.extents[d] for d in outer] or [1],
            lambda *i: _row(call, width, lanes, dict(zip(outer, i, strict=False)), i),
            "serial",
            span=call.span,
        )


def _row(call: DecodedCall, width: int, lanes: int, position: dict[int, Var], indices: tuple[Expr, ...]) -> Stmt:
    src, dst = call.args
    kind = str(call.attrs[attributes.KIND])
    acc = accumulator(dst.dtype)
    combine = combiner(kind, acc, bool(call.attrs[attributes.NAN_PROPAGATE]))
    absorb = combine if call.attrs[attributes.NAN_PROPAGATE] else absorber(kind, acc) or combine
    partial, allocate = nodes.alloc([width], acc, "partial", "local")
    extent = src.extents[-1]

    def at(k: Expr) -> list[Expr]:
        return [*(position.get(d, nodes.int_const(0)) for d in range(len(src.extents) - 1)), k]

    def across(count: int, body: Callable[..., Stmt]) -> list[Stmt]:
        """One statement per chain, each over the lanes of a vector."""
        starts = range(0, count, lanes)
        return [nodes.nest([min(lanes, count - c)], lambda lane, c=c: body(lane + c), "parallel") for c in starts]

    def absorbed(lane: Expr, value: Expr) -> Stmt:
        return nodes.store(partial, absorb(partial[lane], value), [lane])

    def step(base: Expr) -> Callable[..., Stmt]:
        return lambda lane: absorbed(lane, element(kind, src.load(at(base + lane)), acc))

    o = nodes.fresh("o")
    parts = [allocate, *across(width, lambda lane: nodes.store(partial, neutral(kind, acc), [lane]))]
    parts.append(nodes.for_loop(o, extent // width, nodes.seq(across(width, step(o * width))), span=call.span))
    rest = extent % width
    parts += across(rest, step(extent - rest)) if rest else []
    half = width // 2
    while half >= lanes:
        parts += across(half, lambda lane, h=half: absorbed(lane, partial[lane + h]))
        half //= 2
    while half >= 1:
        # Whole vectors and shuffles stay in registers; halves of them would be taken apart lane by lane. Each step has
        # its store, since TVM's simplifier would put a bound expression into the next one, as often as it is used.
        vector = tirx.BufferLoad(partial, [ramp(0, lanes)])
        other = tirx.Shuffle([vector], [lane ^ half for lane in range(lanes)])
        parts.append(tirx.BufferStore(partial, absorb(vector, other), [ramp(0, lanes)]))
        half //= 2
    total = partial[0]
    to = dst.spread(indices)
    if not call.attrs[attributes.CLEAR]:
        total = combine(before(kind, nodes.load(dst.buffer, to), acc), total)
    parts.append(nodes.store(dst.buffer, convert(total, dst.dtype), to, call.span))
    return nodes.seq(parts)
