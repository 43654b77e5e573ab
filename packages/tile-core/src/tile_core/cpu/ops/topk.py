"""``cpu.topk.lanes``: the largest elements of contiguous rows, looked for with vectors."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.isa import Isa
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject, TargetCall, Variant
from tile_core.numerics.order_keys import key_type
from tile_core.ops import topk

if TYPE_CHECKING:
    from tile_core.context import Context

#: What has vectors: no truth values, and no types of 4 bits.
_SOURCES = tuple(name for name, d in DTYPES.items() if name != "bool" and not d.is_packed)
_INDICES = ("int32", "int64", "uint32", "uint64")
#: Vectors that are looked at side by side.
_CHAINS = 4


class LaneTopK(Variant):
    """Rows of at least two vectors: keys are computed once, then searched for each result."""

    name = "cpu.topk.lanes"
    op = "topk"
    priority = 10
    legality = Legality(
        operands=("src", "values", "indices"), dtypes=frozenset((s, s, i) for s, i in product(_SOURCES, _INDICES))
    )

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: TargetCall, ctx: Context) -> Accept | Reject:
        """Accept the last dimension, if rows are long enough."""
        src, dim = call.args[0], int(call.attrs[attributes.DIMS][0])
        if ctx.options is not None and ctx.options.generic:
            return Reject("the option generic requires plain loops")
        if dim != len(src.extents) - 1:
            return Reject("the dimension is not the contiguous one")
        if src.dtype not in _SOURCES:
            return Reject(f"{src.dtype} has no vector form")
        if src.extents[-1] < 2 * self.lanes(src.dtype):
            return Reject(f"rows of {src.extents[-1]} elements are shorter than two vectors of {self.lanes(src.dtype)}")
        return Accept(note=f"{self.lanes(src.dtype)} lanes")

    def lanes(self, dtype: str) -> int:
        """Return the elements per vector."""
        return max(2, self.isa.vector_bits // max(DTYPES[dtype].bits, DTYPES[key_type(dtype)].bits))

    def lower(self, call: TargetCall, ctx: Context) -> Stmt:
        """Compute keys, then take the best ``k`` times."""
        lanes = self.lanes(call.args[0].dtype)
        extents = [call.args[0].extents[d] for d in topk.outer_of(call)]
        return nodes.nest(extents or [1], lambda *i: _row(call, lanes, i if extents else ()), "serial", span=call.span)


def _row(call: TargetCall, lanes: int, others: tuple[Expr, ...]) -> Stmt:
    src, dim, largest = call.args[0], int(call.attrs[attributes.DIMS][0]), bool(call.attrs[attributes.LARGEST])
    extent, results = int(src.extents[dim]), int(call.args[1].extents[int(call.attrs[attributes.DIMS][1])])
    kind = key_type(src.dtype)
    chains = _CHAINS
    while chains > 1 and lanes * chains > extent:
        chains //= 2
    width = lanes * chains
    keys, make_keys = nodes.alloc([extent], kind, "keys", "local")
    best = [nodes.alloc([width], d, "best", "local") for d in (kind, "int32")]
    last = [nodes.alloc([1], d, "last", "local") for d in (kind, "int32")]
    bests, lasts = [b for b, _ in best], [b for b, _ in last]
    result = nodes.fresh("turn")
    names = [nodes.fresh("key", kind), nodes.fresh("index")]

    def each(count: int, body: object) -> list[Stmt]:
        return [
            nodes.nest([min(lanes, count - c)], lambda lane, c=c: body(lane + c), "parallel")  # type: ignore[operator]
            for c in range(0, count, lanes)
        ]

    def through(body: object) -> list[Stmt]:
        """Statements for all elements, ``width`` at a time; ``body`` gets a lane and an index."""
        o = nodes.fresh("o")
        loop = nodes.seq(each(width, lambda lane: body(lane, o * width + lane)))  # type: ignore[operator]
        parts = [nodes.for_loop(o, extent // width, loop)]
        start = extent // width * width
        return parts + each(extent - start, lambda lane: body(lane, lane + start))  # type: ignore[operator]

    def fill(lane: Expr, k: Expr) -> Stmt:
        value = nodes.load(src.buffer, src.at(topk.index_of(src, dim, others, k)))
        return nodes.store(keys, topk.key(value, src.dtype, largest), [k])

    def look(lane: Expr, k: Expr) -> Stmt:
        return topk.offer(bests, names, lane, [keys[k], k])

    def begin(lane: Expr) -> Stmt:
        return nodes.seq([nodes.store(b, x, [lane]) for b, x in zip(bests, topk.none(src.dtype), strict=True)])

    parts = [*(tirx.Bind(n, b[0]) for n, b in zip(names, lasts, strict=True)), *each(width, begin), *through(look)]
    half = width // 2
    while half >= 1:
        parts += each(half, lambda lane, h=half: topk.offer(bests, names, lane, [b[lane + h] for b in bests]))
        half //= 2
    parts += [nodes.store(a, b[0], [0]) for a, b in zip(lasts, bests, strict=True)]
    parts.append(topk.store_found(call, others, result if results > 1 else nodes.int_const(0), lasts[1][0]))
    start = [nodes.store(b, x, [0]) for b, x in zip(lasts, topk.first(src.dtype), strict=True)]
    loop = nodes.for_loop(result, results, nodes.seq(parts), span=call.span)
    return nodes.seq([make_keys, *(s for _, s in (*best, *last)), *through(fill), *start, loop])
