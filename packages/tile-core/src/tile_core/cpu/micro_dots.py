"""The block product of narrow elements by dot-product instructions.

A is packed once into words of elements along k, B a strip of columns at a time; missing elements of the last word are
zeros. A register tile then adds up words as ``micro_gemm`` does numbers.

Instructions that flush subnormal numbers multiply what cannot become one: a product of bfloat16 whose factors have
exponents that add up to at least -112 is a multiple of 2**-126, and so are all totals of such products. Strips with
smaller elements are multiplied in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.dots import OFFSET, dot_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import Strips, columns, in_order, most_rows, multiply_add, rows_at_once
from tile_core.cpu.packing import bfloat16_codes, registers
from tile_core.cpu.row_dots import Call, row_dots
from tile_core.cpu.share_packing import packing
from tile_core.cpu.tile2d import Tile2D, bits_of, cast, loop, plus, ramp, sequence, splat, times, zero
from tile_core.cpu.words import WORD, least_magnitude, load_words, pack_rows, pack_strip, panel
from tile_core.records import dataclass

__all__ = ["RegisterTile", "chosen", "depth_of", "is_safe", "micro_dots"]

#: Words of k that are multiplied at a time, so that a strip of B stays in the first-level cache.
DEPTH = 128
#: The same along the rows of a B that is stored transposed, and the most rows of A for which B is not transposed.
LONG_DEPTH, MOST_ROWS = 512, 64
#: The least vectors of words along k for that: adding up the lanes of accumulators costs as much as a few of them.
LEAST_VECTORS = 8
#: The code of -0.0, and the sum of two exponents (each with its bias of 127) whose products are never subnormal.
_MINUS_ZERO, _SAFE_EXPONENTS = 0x8000, 2 * 127 - 112
#: The code of the least normal number.
_NORMAL = 0x80


#: From the first element along k, the call, the bits to invert, and the panel to the statements that fill it with the
#: words of A, row by row.
Pack = Callable[[Expr, Call, int, BufferVar], list[Stmt]]


def micro_dots(
    a: Tile2D, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, clear: Expr = False, flush: bool = False,
    pack: Pack | None = None,
) -> Stmt:  # fmt: skip
    """Return the statement ``C = (clear ? 0 : C) + A @ B``.

    Parameters
    ----------
    a, b, c, m, n, k, isa, clear
        As in ``micro_gemm``; the processor has an instruction for the types (``dot_of``).
    flush
        Whether subnormal numbers may count as zero.
    pack
        How A's words are made, if its elements are not read as they are; C is not transposed then.
    """
    if c.transposed:
        a, b, c, m, n = b.flipped(), a.flipped(), c.flipped(), n, m
    products = dot_of(isa, a.dtype, b.dtype, c.dtype, flush=flush)
    if products is None:
        raise AssertionError((a.dtype, b.dtype, c.dtype))
    acc = products.dot.types[2]
    depth = depth_of(m, b.transposed and not a.transposed) * products.dot.group
    split = depth if k > depth and bits_of(c.dtype) == bits_of(acc) else k

    def part(start: Expr, size: int, first: Expr) -> Stmt:
        left = a.window(0, start) if pack is None else a
        call = Call(left, b.window(start, 0), c, m, n, size, products, acc, isa, first)
        return _block(call, None if pack is None else functools.partial(pack, start))

    return in_order(k, split, clear, part)


def depth_of(m: int, along_rows: bool) -> int:
    """Return the words of k that are multiplied at a time.

    Parameters
    ----------
    m
        Rows of A.
    along_rows
        Whether both operands are stored with elements along k side by side.
    """
    return LONG_DEPTH if along_rows and m <= MOST_ROWS else DEPTH


def _block(call: Call, pack: Callable[[Call, int, BufferVar], list[Stmt]] | None) -> Stmt:
    lanes = call.isa.lanes(32)
    allocate, left = panel(call.m * call.words, "a_words")
    flip = OFFSET if call.products.offset else 0
    pad = _MINUS_ZERO if call.acc == "float32" else 0
    if pack is not None:
        packed = pack(call, flip, left)
    else:
        packed, a = bfloat16_codes(call.a, call.m, call.k, call.isa, "a_codes")
        packed += pack_rows(a, call.m, call.k, lanes, flip, pad, left, call.words)
    steps, least = [allocate], None
    if call.products.checked:
        read: Callable[..., Expr] = lambda _, at, n: _vector(left, at, n)  # noqa: E731
        (held, allocate, *made), least = least_magnitude(read, 1, call.m * call.words, lanes, "a_least")
        steps.append(allocate)
        packed += [held, *made]
    steps.append(packing(*packed))
    along = call.b.transposed and not call.a.transposed and call.k % call.products.dot.group == 0
    if along and call.m <= MOST_ROWS and call.words >= LEAST_VECTORS * lanes:
        made, b = bfloat16_codes(call.b, call.k, call.n, call.isa, "b_codes")
        steps, call = [*steps, *made], replace(call, b=b)
        return sequence(*steps, row_dots(call, left, lambda j0, width, rows: _columns(call, least, j0, width, rows)))
    return sequence(
        *steps, *(_strips(call, strips, left, least) for strips in columns(call.m, call.n, call.acc, call.isa))
    )


def _vector(buffer: BufferVar, at: Expr, lanes: int) -> Expr:
    return tirx.BufferLoad(buffer, [ramp(at, lanes)])


def _columns(
    call: Call, least: BufferVar | None, j0: Expr, width: int, rows: Callable[[Callable[..., Expr]], Stmt]
) -> Stmt:
    """Return the products with columns that are not packed."""
    stored = call.b.window(0, j0).flipped()
    return chosen(call, least, lambda j, at, n: load_words(stored, j, at, n), width, call.words, rows)


def chosen(
    call: Call, least: BufferVar | None, read: Callable[[Expr, Expr, int], Expr], columns: int, size: int,
    products: Callable[[Callable[..., Expr]], Stmt],
) -> Stmt:  # fmt: skip
    """Return products by the instruction, or in float32 if elements are tiny."""
    if least is None:
        return products(call.products.add)
    made, other = least_magnitude(read, columns, size, call.isa.lanes(32), "b_least")
    fast, slow = products(call.products.add), products(call.products.dot.exactly)
    return sequence(*made, tirx.IfThenElse(is_safe(least[0], other[0]), fast, slow))


def is_safe(one: Expr, other: Expr) -> Expr:
    """Return whether no product or total is subnormal, from the least magnitudes of both operands."""
    exponents = [tirx.Cast("int32", x) >> 7 for x in (one, other)]
    normal = [tirx.Cast("int32", x) >= _NORMAL for x in (one, other)]
    return tirx.all(exponents[0] + exponents[1] >= _SAFE_EXPONENTS, *normal)


def _strips(call: Call, strips: Strips, left: BufferVar, least: BufferVar | None) -> Stmt:
    width = strips.width
    size = call.words * width
    allocate, right = panel(size, "b_words")

    def strip(index: Expr) -> Stmt:
        j0 = plus(times(index, width), strips.start)
        packed, b = bfloat16_codes(call.b.window(0, j0), call.k, width, call.isa, "b_codes")
        packed += pack_strip(b, strips.vectors, width, call.k, right)
        corrections, steps = None, []
        if call.products.offset:
            (allocate, *made), corrections = _corrections(call, strips, right)
            steps.append(allocate)
            packed += made
        steps.append(packing(*packed))
        tile = RegisterTile(call, strips, left, right, corrections)
        rows = functools.partial(tile.rows, j0)
        return sequence(*steps, chosen(call, least, lambda _, at, n: _vector(right, at, n), 1, size, rows))

    return sequence(allocate, loop("jt", strips.count, strip))


def _corrections(call: Call, strips: Strips, right: BufferVar) -> tuple[list[Stmt], BufferVar]:
    """Return statements that add up 128 times each column of a strip, and the totals."""
    slots = _slots(strips, 1)
    allocate, totals = registers(len(slots) * slots[0][2], "int32", "corrections")

    def step(p: Expr) -> Stmt:
        stores = []
        for _, offset, lanes, slot in slots:
            y = tirx.BufferLoad(right, [ramp(plus(times(p, strips.width), offset), lanes)])
            x = splat(tirx.IntImm(WORD, OFFSET), lanes)
            stores.append(tirx.BufferStore(totals, call.products.add(tirx.BufferLoad(totals, slot), x, y), slot))
        return sequence(*stores)

    first = [tirx.BufferStore(totals, splat(zero("int32"), lanes), slot) for _, _, lanes, slot in slots]
    return [allocate, *first, loop("p", call.words, step)], totals


def _slots(strips: Strips, rows: int) -> list[tuple[int, int, int, list[Expr]]]:
    """Return row, offset, lanes and position of each vector of accumulators."""
    found, position = [], 0
    for r in range(rows):
        for offset, lanes in strips.vectors:
            found.append((r, offset, lanes, [ramp(position, lanes)]))
            position += lanes
    return found


@dataclass(frozen=True)
class RegisterTile:
    """Products of rows with a strip of columns, accumulated in registers."""

    call: Call
    strips: Strips
    left: BufferVar
    right: BufferVar
    corrections: BufferVar | None

    def rows(self, j0: Expr, add: Callable[[Expr, Expr, Expr], Expr]) -> Stmt:
        """Return the products of all rows with a strip."""
        m = self.call.m
        rows = rows_at_once(m, most_rows(self.call.isa, len(self.strips.vectors)))
        tiles = [loop("it", m // rows, lambda i: self.register_tile(times(i, rows), j0, rows, add))]
        if m % rows:
            tiles.append(self.register_tile(m - m % rows, j0, m % rows, add))
        return sequence(*tiles)

    def words_of(self, row: Expr, p: Expr, offset: int, lanes: int) -> tuple[Expr, Expr]:
        """Return a word of A's row in each lane, and the columns' words of B."""
        call = self.call
        at = plus(times(p, call.m), row) if call.a.transposed else plus(times(row, call.words), p)
        y = tirx.BufferLoad(self.right, [ramp(plus(times(p, self.strips.width), offset), lanes)])
        return splat(tirx.BufferLoad(self.left, [at]), lanes), y

    def register_tile(self, i0: Expr, j0: Expr, rows: int, add: Callable[[Expr, Expr, Expr], Expr]) -> Stmt:
        """Return C's tile of some rows and a strip's columns, over all words."""
        call = self.call
        cells = _slots(self.strips, rows)
        allocate, tile = registers(rows * sum(lanes for _, lanes in self.strips.vectors), call.acc, "acc")

        def multiply(p: Expr) -> Stmt:
            stores = []
            for r, offset, lanes, slot in cells:
                x, y = self.words_of(plus(i0, r), p, offset, lanes)
                stores.append(tirx.BufferStore(tile, add(tirx.BufferLoad(tile, slot), x, y), slot))
            return sequence(*stores)

        def at(r: int, offset: int, lanes: int) -> list[Expr]:
            where = call.c.at(plus(i0, r), plus(j0, offset))
            return [*where[:-1], ramp(where[-1], lanes)]

        def held(r: int, offset: int, lanes: int) -> Expr:
            empty = splat(zero(call.acc), lanes)
            if call.clear is True:
                return empty
            found = tirx.BufferLoad(call.c.buffer, at(r, offset, lanes))
            found = cast(found, call.c.dtype, call.acc, lanes)
            return found if call.clear is False else tirx.Select(splat(call.clear, lanes), empty, found)

        def begin(r: int, offset: int, lanes: int, v: int) -> Expr:
            if call.acc == "float32":
                # Adding -0.0 changes no number. C itself may be subnormal, which the instruction flushes.
                return splat(tirx.FloatImm("float32", 0.0 if call.clear is True else -0.0), lanes)
            start = held(r, offset, lanes)
            if self.corrections is None:
                return start
            total = tirx.BufferLoad(self.corrections, [ramp(v * lanes, lanes)])
            return multiply_add(start, total, splat(tirx.IntImm("int32", -1), lanes), "int32", lanes)

        def end(r: int, offset: int, lanes: int, slot: list[Expr]) -> Stmt:
            total = cast(tirx.BufferLoad(tile, slot), call.acc, call.c.dtype, lanes)
            return tirx.BufferStore(call.c.buffer, total, at(r, offset, lanes))

        each = len(self.strips.vectors)
        first = [tirx.BufferStore(tile, begin(*cell[:3], v % each), cell[3]) for v, cell in enumerate(cells)]
        last: list[Stmt] = []
        if call.acc == "float32" and call.clear is not True:
            # All of C is read before any is written: vectors overlap.
            last += [
                tirx.BufferStore(tile, held(*cell[:3]) + tirx.BufferLoad(tile, cell[3]), cell[3]) for cell in cells
            ]
        last += [end(*cell) for cell in cells]
        return sequence(allocate, *first, loop("p", call.words, multiply), *last)
