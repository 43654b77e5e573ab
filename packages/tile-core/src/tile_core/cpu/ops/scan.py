"""``cpu.scan.lanes``: scans of a vector at a time.

A vector of 2^n lanes is scanned in n steps, each with the lanes moved by a power of two (Kogge and Stone, 1973). The
last lane of the vector before it is combined with all of its lanes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, BufferVar, Expr, Stmt, Var
from tile_core.cpu.ops.lane_rows import LaneRows
from tile_core.cpu.tile2d import ramp
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import DecodedCall
from tile_core.ops.copy import convert
from tile_core.ops.reduce import absorber, accumulator, combiner, neutral

if TYPE_CHECKING:
    from tile_core.context import Context

_TYPES = tuple(name for name, d in DTYPES.items() if name != "bool" and not d.is_packed)


class LaneScan(LaneRows):
    """Scans along the contiguous dimension; others already vectorise across their lines."""

    name = "cpu.scan.lanes"
    op = "scan"
    legality = Legality(operands=("src", "dst"), dtypes=frozenset(product(_TYPES, _TYPES)))

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Scan vector by vector, then the elements that are left."""
        src, dst = call.args
        row = _ScannedRow(call, self.lanes(src, dst))
        outer = [d for d, e in enumerate(src.extents[:-1]) if e != 1]
        return nodes.nest(
            [src.extents[d] for d in outer] or [1],
            lambda *i: row.lower(dict(zip(outer, i, strict=False))),
            "serial",
            span=call.span,
        )


class _ScannedRow:
    def __init__(self, call: DecodedCall, lanes: int) -> None:
        self.src, self.dst = call.args
        self.lanes = lanes
        self.extent = self.src.extents[-1]
        self.reverse = bool(call.attrs[attributes.REVERSE])
        kind, nan = str(call.attrs[attributes.KIND]), bool(call.attrs[attributes.NAN_PROPAGATE])
        self.acc = accumulator(self.dst.dtype)
        combine = combiner(kind, self.acc, nan)
        self.combine: BinaryNode = combine if nan else absorber(kind, self.acc) or combine
        self.neutral = neutral(kind, self.acc)

    def lower(self, position: dict[int, Var]) -> Stmt:
        """Return the statements of one row."""
        lanes, o = self.lanes, nodes.fresh("o")
        part, allocate_part = nodes.alloc([lanes], self.acc, "part", "local")
        carry, allocate_carry = nodes.alloc([lanes], self.acc, "carry", "local")
        whole, rest = self.extent // lanes, self.extent % lanes
        base = self.extent - (o + 1) * lanes if self.reverse else o * lanes
        step = nodes.seq([
            self.each(lambda lane: nodes.store(part, self.first(position, base + lane), [lane])),
            *self.vectors(part, carry),
            self.each(lambda lane: self.stored(position, base + lane, part[lane])),
        ])  # fmt: skip
        parts = [
            allocate_part,
            allocate_carry,
            self.each(lambda lane: nodes.store(carry, self.neutral, [lane])),
            nodes.for_loop(o, whole, step),
        ]
        if rest:
            k = nodes.fresh("k")
            at = rest - 1 - k if self.reverse else whole * lanes + k
            value = self.combine(carry[0], self.first(position, at))
            parts.append(
                nodes.for_loop(
                    k, rest, nodes.seq([nodes.store(carry, value, [0]), self.stored(position, at, carry[0])])
                )
            )
        return nodes.seq(parts)

    def vectors(self, part: BufferVar, carry: BufferVar) -> list[Stmt]:
        """Return the scan of a vector, which begins with the carry and updates it."""
        lanes = self.lanes
        every = [ramp(0, lanes)]
        vector, found = tirx.BufferLoad(part, every), list[Stmt]()
        distance = 1
        while distance < lanes:
            moved = [lane + distance if self.reverse else lane - distance for lane in range(lanes)]
            other = tirx.Shuffle([vector], [m % lanes for m in moved])
            first = tirx.Broadcast(tirx.IntImm("int32", lanes - distance if self.reverse else distance), lanes)
            lane = ramp(0, lanes)
            reached = tirx.LT(lane, first) if self.reverse else tirx.GE(lane, first)
            value = tirx.Select(reached, self.combine(other, vector), vector)
            found.append(tirx.BufferStore(part, value, every))
            distance *= 2
        found.append(tirx.BufferStore(part, self.combine(tirx.BufferLoad(carry, every), vector), every))
        last = 0 if self.reverse else lanes - 1
        return [*found, tirx.BufferStore(carry, tirx.Shuffle([vector], [last] * lanes), every)]

    def first(self, position: dict[int, Var], k: Expr) -> Expr:
        """Return an element as the result of a scan of it alone."""
        return self.combine(self.neutral, convert(self.src.load(self.at(position, k)), self.acc))

    def stored(self, position: dict[int, Var], k: Expr, value: Expr) -> Stmt:
        indices = self.at(position, k)
        kept = [indices[d] for d, e in enumerate(self.src.extents) if e != 1]
        return nodes.store(self.dst.buffer, convert(value, self.dst.dtype), self.dst.spread(kept))

    def at(self, position: dict[int, Var], k: Expr) -> list[Expr]:
        return [*(position.get(d, nodes.int_const(0)) for d in range(len(self.src.extents) - 1)), k]

    def each(self, body: Callable[..., Stmt]) -> Stmt:
        return nodes.nest([self.lanes], body, "parallel")
