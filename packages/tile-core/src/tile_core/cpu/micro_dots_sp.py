"""The block product of a 2:4 sparse A with a dense B by dot-product instructions.

An instruction multiplies a word of two kept values with the two rows of B that metadata names. Words of all six pairs
of rows in a group are made in advance, for a strip of columns and a part of k that stay in the first-level cache: an
instruction reads one of them from memory, and half the instructions of the dense product remain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.dots import Products, dot_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import RegisterTile, chosen, micro_dots
from tile_core.cpu.micro_gemm import Strips, columns, in_order
from tile_core.cpu.micro_gemm_sp import Sparse
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.cpu.packing import bfloat16_codes
from tile_core.cpu.row_dots import Call
from tile_core.cpu.share_packing import packing
from tile_core.cpu.tile2d import Tile2D, loop, plus, prefetch, ramp, sequence, splat, times, vector_dtype
from tile_core.cpu.words import WORD, least_magnitude, pack_rows, pack_strip, panel
from tile_core.ir import nodes
from tile_core.ir.attributes import GROUP
from tile_core.lowering.variant import DecodedCall
from tile_core.records import dataclass

__all__ = ["fours_of", "micro_dots_expanded", "micro_dots_sp", "pairs_of"]

#: Words of a group in a panel, in this order: rows 0 and 1, 0 and 2, 0 and 3, 1 and 2, 1 and 3, 2 and 3.
PAIRS = 6
#: Groups of k that are multiplied at a time: with 64 columns their words take three quarters of 32 KiB.
GROUPS = 16
_MINUS_ZERO = 0x8000
#: Words of a line of memory.
_LINE_WORDS = 16


def micro_dots_sp(
    a: Sparse, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, products: Products, clear: Expr = False
) -> Stmt:
    """Return the product of a compressed ``a`` with ``b``, added as in ``micro_gemm``.

    Parameters
    ----------
    a, b, c, m, n, k, isa, clear
        As in ``micro_gemm_sp``.
    products
        The instruction.
    """
    groups, acc = k // a.group, products.dot.types[2]
    whole = Call(a.values, b, c, m, n, 2 * groups, products, acc, isa, clear)
    allocate, left = panel(m * groups, "a_words")
    pairs = tirx.decl_buffer((m, groups), "int32", "a_pairs", scope="global", layout=None)
    steps = [allocate, tirx.AllocBuffer(pairs)]
    packed, values = bfloat16_codes(a.values, m, 2 * groups, isa, "a_codes")
    packed += pack_rows(values, m, 2 * groups, isa.lanes(32), 0, _MINUS_ZERO, left, groups)
    packed.append(_pairs(a, m, pairs))
    least = None
    if products.checked:

        def vector(_: Expr, at: Expr, lanes: int) -> Expr:
            return tirx.BufferLoad(left, [ramp(at, lanes)])

        (held, allocate, *made), least = least_magnitude(vector, 1, m * groups, isa.lanes(32), "a_least")
        steps.append(allocate)
        packed += [held, *made]
    made, b = bfloat16_codes(b, k, n, isa, "b_codes")
    steps += [packing(*packed), *made]

    def part(start: Expr, size: int, first: Expr) -> Stmt:
        call = replace(whole, b=b.window(times(start, a.group), 0), k=2 * size, clear=first)
        return sequence(*(_strips(call, s, _Left(left, pairs, groups, start), least) for s in columns(m, n, acc, isa)))

    split = GROUPS if groups > GROUPS and c.dtype == acc else groups
    return sequence(*steps, in_order(groups, split, clear, part))


def micro_dots_expanded(
    a: Sparse, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, clear: Expr = False
) -> Stmt:
    """Return the same product of integers by the dense kernel, zeros included.

    Of instructions for four products none multiplies the kept ones of two groups: their rows of B would have to be
    exchanged for each row of A, by as many instructions as that saves.

    Parameters
    ----------
    a, b, c, m, n, k, isa, clear
        As in ``micro_gemm_sp``.
    """
    values = replace(a.values, transposed=False)  # its words are row by row
    return micro_dots(values, b, c, m, n, k, isa=isa, clear=clear, pack=functools.partial(_expanded, a))


def fours_of(isa: Isa, call: DecodedCall) -> Products | None:
    """Return the instruction for the four integers of a group; ``None`` without one."""
    a, _, b, c = call.args[:4]
    m, n = c.extents[-2:]
    if int(call.attrs[GROUP]) != 4 or m <= FEW_ROWS or n < isa.lanes(32):
        return None
    found = dot_of(isa, a.dtype, b.dtype, c.dtype)
    return found if found is not None and found.dot.group == 4 else None


def pairs_of(isa: Isa, call: DecodedCall, *, flush: bool = False) -> Products | None:
    """Return the instruction that multiplies pairs of kept values; ``None`` without one."""
    a, _, b, c = call.args[:4]
    m, n = c.extents[-2:]
    if int(call.attrs[GROUP]) != 4 or m <= FEW_ROWS or n < isa.lanes(32):
        return None
    found = dot_of(isa, a.dtype, b.dtype, c.dtype, flush=flush)
    return found if found is not None and found.dot.group == 2 else None


@dataclass(frozen=True)
class _Left:
    """A's words and their numbers of pairs, from a group on."""

    words: BufferVar
    pairs: BufferVar
    groups: int
    start: Expr


def _expanded(a: Sparse, start: Expr, call: Call, flip: int, words: BufferVar) -> list[Stmt]:
    """Return the statements that fill a panel with words of groups, from an element on."""
    each = a.nibbles * a.group
    first = start // each if isinstance(start, int) else tirx.floordiv(start, tirx.IntImm("int32", each))

    def word(i: Expr, w: Expr) -> Stmt:
        meta, at = tirx.Var("meta", "int32"), plus(first, w)

        def one(v: Var) -> Stmt:
            indices = a.kept(tirx.bitwise_and(tirx.shift_right(meta, v * 4), tirx.IntImm("int32", 15)))
            group = plus(times(at, a.nibbles), v)
            found: Expr = tirx.IntImm(WORD, flip)
            for number, index in enumerate(indices):
                element = tirx.reinterpret("uint8", a.values.read(i, plus(times(group, 2), number)))
                found = found ^ (tirx.Cast(WORD, element) << tirx.Cast(WORD, index * 8))
            return tirx.BufferStore(words, found, [plus(times(i, call.words), plus(times(w, a.nibbles), v))])

        read = tirx.Bind(meta, tirx.Cast("int32", a.metadata.read(i, at)))
        return sequence(read, loop("v", a.nibbles, one, tirx.ForKind.VECTORIZED))

    return [loop("i", call.m, lambda i: loop("w", call.k // each, lambda w: word(i, w)))]


def _pairs(a: Sparse, m: int, numbers: BufferVar) -> Stmt:
    """Return the statement that finds the number of each group's pair of rows."""

    def word(i: Expr, w: Expr) -> Stmt:
        meta = tirx.Var("meta", "int32")

        def one(v: Var) -> Stmt:
            low, high = a.kept(tirx.bitwise_and(tirx.shift_right(meta, v * 4), tirx.IntImm("int32", 15)))
            # Increasing indices; a nibble of zeros, whose kept values are zeros, stands for the first pair.
            after = tirx.Select(low == 0, high - 1, tirx.Select(low == 1, high + 1, high + 2))
            number = tirx.min(tirx.max(after, 0), PAIRS - 1)
            return tirx.BufferStore(numbers, number, [i, plus(times(w, a.nibbles), v)])

        read = tirx.Bind(meta, tirx.Cast("int32", a.metadata.read(i, w)))
        return sequence(read, loop("v", a.nibbles, one, tirx.ForKind.VECTORIZED))

    return loop("i", m, lambda i: loop("w", a.words, lambda w: word(i, w)))


def _strips(call: Call, strips: Strips, left: _Left, least: BufferVar | None) -> Stmt:
    """Return the products with strips of some columns."""
    width, groups = strips.width, call.words
    size = 2 * groups * width
    allocate_words, words = panel(size, "b_words")
    allocate, right = panel(PAIRS * groups * width, "b_pairs")

    def read(_: Expr, at: Expr, lanes: int) -> Expr:
        return tirx.BufferLoad(words, [ramp(at, lanes)])

    def strip(index: Expr) -> Stmt:
        j0 = plus(times(index, width), strips.start)
        packed = packing(*pack_strip(call.b.window(0, j0), strips.vectors, width, 2 * call.k, words))
        made = loop("g", groups, lambda g: _paired(words, right, g, strips))
        tile = _SparseTile(call, strips, left.words, right, None, left, words)
        return sequence(packed, made, chosen(call, least, read, 1, size, functools.partial(tile.rows, j0)))

    return sequence(allocate_words, allocate, loop("jt", strips.count, strip))


def _paired(words: BufferVar, right: BufferVar, g: Expr, strips: Strips) -> Stmt:
    """Return the statement that makes words of all pairs of a group's rows."""
    stores: list[Stmt] = []
    for offset, lanes in strips.vectors:

        def at(row: Expr, offset: int = offset, lanes: int = lanes) -> list[Expr]:
            return [ramp(plus(times(row, strips.width), offset), lanes)]

        def bits(value: int, lanes: int = lanes) -> Expr:
            return splat(tirx.IntImm(WORD, value), lanes)

        first, last = (tirx.Var(name, vector_dtype(WORD, lanes)) for name in ("first", "last"))
        for row, var in enumerate((first, last)):
            stores.append(tirx.Bind(var, tirx.BufferLoad(words, at(plus(times(g, 2), row)))))
        row0, row1 = first & bits(0xFFFF), first >> bits(16)
        row2, row3 = last << bits(16), last & bits(0xFFFF0000)
        pairs = first, row0 | row2, row0 | row3, row1 | row2, row1 | row3, last
        stores += [tirx.BufferStore(right, x, at(plus(times(g, PAIRS), pair))) for pair, x in enumerate(pairs)]
    return sequence(*stores)


@dataclass(frozen=True)
class _SparseTile(RegisterTile):
    """A register tile whose rows multiply words of B that metadata names."""

    sparse: _Left
    b_words: BufferVar

    def register_tile(
        self, i0: Expr, j0: Expr, rows: int, add: Callable[[Expr, Expr, Expr], Expr]
    ) -> Stmt:  # fmt: skip
        """Return the products of some rows, and prefetches of the next panel."""
        size = int(nodes.shape_of(self.b_words)[0])
        each = -(-size // (_LINE_WORDS * self.call.m))
        lines = [plus(times(i0, each * _LINE_WORDS), size + at * _LINE_WORDS) for at in range(rows * each)]
        fetched = [prefetch(self.b_words, [at], near=False) for at in lines]
        return sequence(*fetched, super().register_tile(i0, j0, rows, add))

    def words_of(self, row: Expr, p: Expr, offset: int, lanes: int) -> tuple[Expr, Expr]:
        """Return the words of A and of B that word ``p`` of a row multiplies."""
        width, left = self.strips.width, self.sparse
        g = plus(p, left.start)
        where = plus(times(g, self.call.m), row) if self.call.a.transposed else plus(times(row, left.groups), g)
        x = tirx.BufferLoad(left.words, [where])
        pair = tirx.BufferLoad(left.pairs, [row, g])
        at = plus(plus(times(p, PAIRS * width), offset), pair * width)
        return splat(x, lanes), tirx.BufferLoad(self.right, [ramp(at, lanes)])
