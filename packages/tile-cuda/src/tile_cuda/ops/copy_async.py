"""Copies from global to shared memory by ``cp.async``: without registers, complete at a later wait.

A row is cut into chunks of 16, 8 or 4 bytes; neighbouring threads take neighbouring chunks. The part of a chunk
beyond the source becomes zero (by the operand that gives the number of bytes to read); a tile that lies wholly inside
the source takes instructions without that operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import loads_of
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View
from tile_core.ops.gather import row_number
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.memory.alignment import WIDEST, Aligned, contiguous_width, factor, strides_of
from tile_core.simt.ops.gather_scatter import height_of, row_index
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import ASYNC_BYTES, ASYNC_WHOLE, REASON
from tile_cuda.target import GATHER4

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.layout.base import LayoutMap


#: A copy that the program waits for itself, by the attribute ``async``.
EXPLICIT = "explicit"

_SIZES = (16, 8, 4)
#: Iterations of a thread that are unrolled.
_UNROLLED = 32


def can_copy(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Decide whether a copy can use cp.async; ``Accept`` has the chunk size as ``async_bytes``.

    Parameters
    ----------
    call
        A copy from global to shared memory.
    aligned
        Guarantees of the launch about addresses and symbols.
    """
    src, dst = call.args
    if not ctx.capabilities.has_async_copy("cp.async"):
        return Reject("the target has no cp.async")
    if attributes.VARIANT in call.attrs:
        return Reject(f"it requests {call.attrs[attributes.VARIANT]}")
    if src.dtype != dst.dtype or call.attrs.get(attributes.ROUND) is not None:
        return Reject(f"it converts {src.dtype} to {dst.dtype}")
    if DTYPES[src.dtype].bits % 8:
        return Reject(f"elements of {src.dtype} have {DTYPES[src.dtype].bits} bits")
    if not all(isinstance(n, int) for v in (src, dst) for n in v.extents):
        return Reject("its extents are not known")
    found = _global_bytes(src, dst, aligned)
    size = DTYPES[src.dtype].bits // 8
    if found < 4:
        return Reject(
            f"rows of {src.name} are aligned to {found} bytes in segments of {_row(src, dst) * size}; cp.async needs 4"
        )
    columns = nodes.int_const(0) + src.buffer.shape[-1]
    return Accept(facts={ASYNC_BYTES: found, ASYNC_WHOLE: int(factor(columns, aligned.divisors) * size % found == 0)})


def can_gather(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Decide like `can_copy` whether a gather can use cp.async.

    Its operands are the source, the tile and the row numbers.
    """
    src, dst, rows = call.args
    if attributes.MULTICAST in call.attrs:
        return Reject("only boxes reach other blocks")
    if rows.scope not in ("shared", "global"):
        return Reject(f"its row numbers, {rows.name}, are in registers")
    if ctx.options.tma == "always" and ctx.capabilities.fact(GATHER4):
        return Reject('the option tma is "always"')
    # Each row begins where its number says, so one row alone is aligned like any other.
    tile = View(src.buffer, src.mins, (max(2, rows.shape[0]), *src.extents[1:]))
    return can_copy(replace(call, args=(tile, dst)), ctx, aligned)


class AsyncCopy(SimtVariant):
    """A copy that the pipeliner, or the program, made asynchronous."""

    name = "cuda.copy.cp_async"
    op = "copy"
    priority = 100
    legality = Legality(
        operands=("src", "dst"),
        dtypes=frozenset((name, name) for name, d in DTYPES.items() if d.bits % 8 == 0),
        scopes={"src": ("global",), "dst": ("shared",)},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_copy`` has looked at."""
        if attributes.ASYNC not in call.attrs:
            return Reject(str(call.attrs.get(REASON, "the copy completes where it stands")))
        if ASYNC_BYTES not in call.attrs:
            return Reject("its addresses are unknown")
        return Accept(f"chunks of {int(call.attrs[ASYNC_BYTES])} bytes")

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the chunks of a thread."""
        tile = _ChunkedTile.of(call)
        body = tile.chunks(guarded=tile.rows is not None)
        outside = contiguity.conditions(tile.src, call.ranges) if tile.rows is None and tile.width >= _SIZES[-1] else []
        if outside:
            body = tirx.IfThenElse(tirx.all(*outside), body, tile.chunks(guarded=True), call.span)
        return calls.step(nodes.seq([*tile.before, body]), call.span)


class AsyncGather(AsyncCopy):
    """A gather that the pipeliner made asynchronous.

    Rows outside of the source are filled with zeros.
    """

    name = "cuda.gather.cp_async"
    op = "gather"
    legality = Legality(
        operands=("src", "rows", "dst"),
        scopes={"src": ("global",), "rows": ("shared", "global"), "dst": ("shared",)},
    )


@dataclass(frozen=True)
class _ChunkedTile:
    """A tile in chunks.

    Attributes
    ----------
    call
        The copy or gather.
    src, dst, rows
        Its operands; ``rows`` is ``None`` for a copy.
    elements
        Of a chunk: 1 where a layout separates elements below 4 bytes, which then go through registers.
    before
        Bindings for the corner of the source.
    """

    call: SimtCall
    src: View
    dst: View
    rows: View | None
    elements: int
    before: tuple[Stmt, ...]

    @classmethod
    def of(cls, call: SimtCall) -> _ChunkedTile:
        """Return the chunks of an asynchronous call."""
        given, *rows, dst = call.args
        src, before = _settled(given, call.span)
        size = DTYPES[src.dtype].bits // 8
        elements = _shared_elements(dst, call.placement.layouts.get(dst.buffer), int(call.attrs[ASYNC_BYTES]) // size)
        while elements > 1 and _row(src, dst) % elements:
            elements //= 2
        elements = elements if elements * size >= _SIZES[-1] else 1
        return cls(call, src, dst, rows[0] if rows else None, elements, tuple(before))

    @property
    def bounded(self) -> View:
        """The source, with more rows than any buffer where their number is unknown."""
        rows, *columns = self.src.extents
        return View(self.src.buffer, self.src.mins, (rows if isinstance(rows, int) else 2**31, *columns))

    @property
    def width(self) -> int:
        """Bytes of a chunk."""
        return self.elements * DTYPES[self.src.dtype].bits // 8

    def chunks(self, guarded: bool) -> Stmt:
        """Return the copies of a thread, with or without bounds checks on the source."""
        shape = self.dst.shape
        counts = (*shape[:-1], shape[-1] // self.elements)

        def copy(at: Sequence[Expr]) -> Stmt:
            last = at[-1] * self.elements if self.elements > 1 else at[-1]
            indices = [*at[:-1], last]
            named, source, exists = self.source(indices)
            to = self.dst.spread(indices)
            if self.width < _SIZES[-1]:
                return nodes.seq([*named, self.element(source, to, exists)])
            return nodes.seq([*named, self.instruction(source, to, guarded, exists)])

        return dealt(self.call, counts, copy)

    def source(self, at: list[Expr]) -> tuple[list[Stmt], list[Expr], list[Expr]]:
        """Return bindings, the source's index for one in the tile, and conditions on its row."""
        if self.rows is None:
            return [], self.src.spread(at), []
        row, columns = nodes.fresh("row", "int64"), sum(e != 1 for e in self.src.extents[1:])
        i = at[0] if len(at) > columns else nodes.int_const(0)
        index = row_index(self.src, row, at[len(at) - columns :])
        number = row_number(self.rows, i)
        inside = contiguity.inside(self.rows, self.rows.spread([i]), self.call.ranges)
        if inside:
            number = tirx.if_then_else(tirx.all(*inside), number, nodes.zero("int64"))
        return [tirx.Bind(row, number)], index, [row >= 0, row < height_of(self.src)]

    def instruction(self, source: list[Expr], to: list[Expr], guarded: bool, exists: list[Expr]) -> Stmt:
        """Return the copy of one chunk."""
        name = f"cp_async_{'cg' if self.width == WIDEST else 'ca'}_shared_global_{self.width}"
        ranges = self.call.ranges
        source = [ranges.simplify(nodes.int_const(0) + i) for i in source]
        to = [ranges.simplify(nodes.int_const(0) + i) for i in to]
        until = calls.UNTIL_GROUP if str(self.call.attrs[attributes.ASYNC]) == EXPLICIT else ""
        shared = calls.address(self.dst.buffer, to, "w", until=until, chunk=self.width)
        operands = [shared, calls.address(self.src.buffer, source, "r")]
        valid = self.valid(source, exists) if guarded else None
        if valid is None:
            return calls.execute(name, operands, self.call.span)
        return calls.execute(f"{name}_zfill", [*operands, valid], self.call.span)

    def valid(self, at: list[Expr], exists: list[Expr]) -> Expr:
        """Return how many bytes of a chunk lie in the source; ``None`` if all do."""
        conditions = exists + contiguity.inside(self.bounded, at, self.call.ranges)
        if not conditions:
            return None
        valid: Expr = nodes.int_const(self.width)
        if self.elements > 1 and not int(self.call.attrs[ASYNC_WHOLE]):
            # Chunks begin at multiples of their size, so none begins before the row and ends in it.
            columns, start = nodes.int_const(0) + self.src.buffer.shape[-1], nodes.cast(at[-1], "int64")
            left = tirx.min(nodes.cast(columns, "int64") - start, nodes.int_const(self.elements, "int64"))
            valid = nodes.cast(left * (self.width // self.elements), "int32")
        return tirx.Select(tirx.all(*conditions), valid, nodes.int_const(0))

    def element(self, source: list[Expr], to: list[Expr], exists: list[Expr]) -> Stmt:
        """Return the copy of an element through a register."""
        value = nodes.load(self.src.buffer, source)
        conditions = exists + contiguity.inside(self.bounded, source, self.call.ranges)
        if conditions:
            value = tirx.if_then_else(tirx.all(*conditions), value, nodes.zero(self.src.dtype))
        return nodes.store(self.dst.buffer, value, to, self.call.span)


def _settled(src: View, span: Any) -> tuple[View, list[Stmt]]:
    """Return a source with a corner that reads no memory, and the bindings before it."""
    before, mins = [], []
    for low in src.mins:
        if not isinstance(low, int) and loads_of(low):
            var = nodes.fresh("corner", nodes.dtype_of(low))
            before.append(tirx.Bind(var, low, span))
            low = var
        mins.append(low)
    return View(src.buffer, tuple(mins), src.extents), before


def dealt(call: SimtCall, counts: Sequence[int], copy: Callable[[Sequence[Expr]], Stmt]) -> Stmt:
    """Return the chunks of a tile that a thread copies, in rounds of the block."""
    total, threads = prod(counts), call.block.count
    thread = call.block.thread if threads > 1 else nodes.int_const(0)

    def part(number: Expr) -> Stmt:
        at: list[Expr] = []
        rest = number
        for dim, count in reversed(list(enumerate(counts))):
            last = dim == 0
            at.insert(0, call.ranges.simplify(rest if last else tirx.floormod(rest, count)))
            rest = tirx.floordiv(rest, count)
        return copy(at)

    whole, left = divmod(total, threads)
    parts = []
    if whole == 1:
        parts.append(part(thread))
    elif whole:
        iteration = nodes.fresh("turn")
        call.ranges.bind(iteration, ir.Range.from_min_extent(0, whole))
        role = "unroll" if whole <= _UNROLLED else "serial"
        parts.append(nodes.for_loop(iteration, whole, part(iteration * threads + thread), role, span=call.span))
    if left:
        parts.append(tirx.IfThenElse(thread < left, part(thread + whole * threads), None, call.span))
    return nodes.seq(parts)


def _row(src: View, dst: View) -> int:
    """Return the contiguous elements of a row, or 1 unless both sides are contiguous."""
    last = src.extents[-1]
    return int(last) if last == dst.extents[-1] and last == src.shape[-1] and last != 1 else 1


def _global_bytes(src: View, dst: View, aligned: Aligned) -> int:
    """Return the bytes of a chunk that the program allows."""
    size = DTYPES[src.dtype].bits // 8
    strides = strides_of(src.buffer)
    neighbours = _row(src, dst) if nodes.as_int(strides[-1]) == 1 else 1
    start = aligned.of(src.buffer, [nodes.int_const(0) + m for m in src.mins])
    for extent, stride in list(zip(src.extents, strides, strict=True))[: -1 if neighbours > 1 else None]:
        if extent != 1:
            start = gcd(start, factor(stride, aligned.divisors) * size)
    pitch = neighbours * size
    if neighbours > 1:
        pitch = gcd(pitch, (nodes.shape_of(dst.buffer)[-1] if len(dst.shape) > 1 else neighbours) * size)
        pitch = gcd(pitch, int(dst.mins[-1]) * size)
    return max((n for n in _SIZES if start % n == 0 and pitch % n == 0), default=gcd(start, pitch))


def _shared_elements(dst: View, layout: LayoutMap | None, most: int) -> int:
    """Return how many of a chunk's elements are contiguous and aligned in shared memory."""
    low = nodes.as_int(dst.mins[-1])
    aligned_to = gcd(most, low) if isinstance(low, int) else 1
    if layout is not None:
        return contiguous_width(layout, aligned_to)
    row = nodes.shape_of(dst.buffer)[-1]
    return gcd(aligned_to, row)
