"""Pack operands of dot products into panels of 32-bit words: groups of elements along k.

A panel has one dimension. Missing elements of the last group are zeros, -0.0 in A: they change no total.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.packing import BLOCK, block_transpose, registers
from tile_core.cpu.tile2d import Tile2D, bits_of, loop, plus, ramp, sequence, splat, times, vector_dtype
from tile_core.numerics.build import cast

WORD = "uint32"


def panel(size: int, name: str) -> tuple[Stmt, BufferVar]:
    """Return the allocation of ``size`` words, and the buffer."""
    buffer = tirx.decl_buffer((size,), WORD, name, scope="global", layout=None)
    return tirx.AllocBuffer(buffer), buffer


def load_words(tile: Tile2D, i: Expr, p: Expr, lanes: int) -> Expr:
    """Return words ``p`` and following of row ``i``, whose elements are consecutive in memory."""
    group = 32 // bits_of(tile.dtype)
    where = tile.at(i, times(p, group))
    vector = tirx.BufferLoad(tile.buffer, [*where[:-1], ramp(where[-1], lanes * group)])
    return tirx.reinterpret(vector_dtype(WORD, lanes), vector)


def join_words(tile: Tile2D, i: Expr, p: Expr, lanes: int, count: int, pad: int = 0) -> Expr:
    """Return word ``p`` of rows ``i`` and following, from ``count`` vectors, each along the rows."""
    bits = bits_of(tile.dtype)
    whole = None
    for q in range(count):
        where = tile.at(i, plus(times(p, 32 // bits), q))
        part = tirx.BufferLoad(tile.buffer, [*where[:-1], ramp(where[-1], lanes)])
        part = cast(WORD, tirx.reinterpret(vector_dtype(f"uint{bits}", lanes), part))
        part = part if q == 0 else part << splat(tirx.IntImm(WORD, q * bits), lanes)
        whole = part if whole is None else whole | part
    filled = sum(pad << (q * bits) for q in range(count, 32 // bits))
    return whole | splat(tirx.IntImm(WORD, filled), lanes) if filled else whole


def zip_words(tile: Tile2D, i: Expr, p: Expr, lanes: int) -> tuple[list[Stmt], list[Expr]]:
    """Return word ``p`` of rows ``i`` and following as vectors, interleaved by shuffles.

    Parameters
    ----------
    lanes
        Words of each vector; there are as many vectors as a word has elements.
    """
    bits = bits_of(tile.dtype)
    group = 32 // bits
    steps: list[Stmt] = []

    def named(value: Expr, unit: int) -> Expr:
        var = tirx.Var("rows", vector_dtype(f"uint{unit}", lanes * 32 // unit))
        steps.append(tirx.Bind(var, tirx.reinterpret(var.ty, value)))
        return var

    def zipped(low: Expr, high: Expr, unit: int) -> list[Expr]:
        size = lanes * 32 // unit
        order = [v // 2 + v % 2 * size for v in range(2 * size)]
        return [named(tirx.Shuffle([low, high], half), unit) for half in (order[:size], order[size:])]

    found = []
    for q in range(group):
        where = tile.at(i, plus(times(p, group), q))
        row = tirx.BufferLoad(tile.buffer, [*where[:-1], ramp(where[-1], lanes * group)])
        found.append([named(row, bits)])
    while bits < 32:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [[v for x, y in zip(low, high, strict=True) for v in zipped(x, y, bits)] for low, high in pairs]
        bits *= 2
        found = [[named(v, bits) for v in vectors] for vectors in found]
    return steps, found[0]


def pack_rows(
    tile: Tile2D, rows: int, k: int, lanes: int, flip: int, pad: int, buffer: BufferVar, words: int
) -> list[Stmt]:
    """Return statements that fill a panel with the words of each row.

    Parameters
    ----------
    tile
        A matrix of ``rows`` x ``k`` elements.
    lanes
        Words of a vector register.
    flip
        Bits to invert in each word.
    pad
        The code of missing elements.
    buffer
        The panel: word ``p`` of row ``i`` at ``i * words + p``, or at ``p * rows + i`` if the tile is transposed.
    words
        Words of each row.
    """
    group = 32 // bits_of(tile.dtype)
    whole, rest = k // group, k % group

    def store(value: Expr, at: Expr, size: int) -> Stmt:
        value = value ^ splat(tirx.IntImm(WORD, flip), size) if flip else value
        return tirx.BufferStore(buffer, value, [ramp(at, size)])

    if tile.transposed:

        def word(p: Expr, count: int) -> Stmt:
            def vector(i: Expr, size: int) -> Stmt:
                return store(join_words(tile, i, p, size, count, pad), plus(times(p, rows), i), size)

            return cover(rows, lanes, vector)

        made = [loop("word", whole, lambda p: word(p, group))] if whole else []
        return [*made, word(whole, rest)] if rest else made

    def row(i: Expr) -> Stmt:
        def vector(p: Expr, size: int) -> Stmt:
            return store(load_words(tile, i, p, size), plus(times(i, words), p), size)

        steps = [cover(whole, lanes, vector)] if whole else []
        if rest:
            steps.append(store(join_words(tile, i, whole, 1, rest, pad), plus(times(i, words), whole), 1))
        return sequence(*steps)

    return [loop("row", rows, row)]


def pack_strip(
    tile: Tile2D, vectors: Sequence[tuple[int, int]], width: int, k: int, buffer: BufferVar,
    stride: int | None = None, count: int = 1, size: int = 0,
) -> list[Stmt]:  # fmt: skip
    """Return statements that fill a panel with the words of some columns.

    Parameters
    ----------
    tile
        The part of B with ``k`` rows and these columns.
    vectors, width
        Offsets and lanes of vectors that cover the columns, and how many columns.
    buffer
        The panel: word ``p`` of column ``j`` at ``p * stride + j``.
    stride
        The number of the strip's columns if not given.
    count, size
        Adjacent strips, and the words of each in the panel. A word of all of them is packed before the next: their rows
        are long runs of memory.
    """
    group = 32 // bits_of(tile.dtype)
    whole, rest = k // group, k % group
    columns = tile.flipped()
    stride = width if stride is None else stride

    def each(strip: Callable[[Expr, Expr], Stmt]) -> Stmt:
        return loop("jt", count, lambda t: strip(times(t, width), times(t, size)))

    def word(p: Expr, elements: int) -> Stmt:
        covered = [(j, 1) for j in range(width)] if tile.transposed else vectors

        def one(first: Expr, base: Expr, j: int, lanes: int) -> Stmt:
            value = join_words(columns, plus(first, j), p, lanes, elements)
            return tirx.BufferStore(buffer, value, [ramp(plus(plus(base, times(p, stride)), j), lanes)])

        return each(lambda first, base: sequence(*(one(first, base, j, lanes) for j, lanes in covered)))

    made: list[Stmt] = []
    side, lanes = BLOCK, vectors[0][1]
    while side > min(whole, width):
        side //= 2
    if whole and not tile.transposed and width % (lanes * group) == 0:
        zipped = functools.partial(_zipped, columns, width, lanes, buffer, stride)
        made.append(loop("word", whole, lambda p: each(lambda first, base: zipped(first, p, base))))
    elif whole and (not tile.transposed or side < 4):
        made.append(loop("word", whole, lambda p: word(p, group)))
    elif whole:
        made.append(each(lambda first, base: _transposed(columns, first, whole, width, side, buffer, stride, base)))
    if rest:
        made.append(word(whole, rest))
    return made


def least_magnitude(
    read: Callable[[Expr, Expr, int], Expr],
    rows: int,
    size: int,
    lanes: int,
    name: str,
    into: tuple[BufferVar, Expr] | None = None,
) -> tuple[list[Stmt], BufferVar]:
    """Return statements that find the least nonzero magnitude of bfloat16, and their result.

    Parameters
    ----------
    read
        From a row, the first of its words and their number to the vector of words.
    rows, size
        How many rows, and words of each.
    into
        A buffer for results and the position of this one; a buffer of its own if not given.

    Returns
    -------
    tuple
        The statements, and a buffer of one element: the code of the magnitude minus one, 65535 if all are zeros.
    """
    while lanes > size:
        lanes //= 2
    allocate, held = registers(2 * lanes, "uint16", f"{name}_lanes")
    allocate_least, least = registers(1, "uint16", name)
    least, position = (least, 0) if into is None else into
    most, slot = tirx.IntImm("uint16", 0xFFFF), [ramp(0, 2 * lanes)]

    def vector(row: Expr, at: Expr, count: int) -> Stmt:
        words = read(row, at, count) & splat(tirx.IntImm(WORD, 0x7FFF7FFF), count)
        codes = tirx.reinterpret(vector_dtype("uint16", 2 * count), words)
        below = codes + splat(most, 2 * count)
        return tirx.BufferStore(held, tirx.Min(tirx.BufferLoad(held, slot), below), slot)

    found = tirx.call_llvm_pure_intrin(
        "uint16", f"llvm.vector.reduce.umin.v{2 * lanes}i16", tirx.BufferLoad(held, slot)
    )
    return [
        allocate,
        *([allocate_least] if into is None else []),
        tirx.BufferStore(held, splat(most, 2 * lanes), slot),
        loop("row", rows, lambda row: cover(size, lanes, lambda at, count: vector(row, at, count))),
        tirx.BufferStore(least, found, [position]),
    ], least


def _zipped(
    columns: Tile2D, width: int, lanes: int, buffer: BufferVar, stride: int, j0: Expr, p: Expr, base: Expr
) -> Stmt:
    """Return statements that fill row ``p`` of a strip whose vectors are whole."""
    group = 32 // bits_of(columns.dtype)
    steps: list[Stmt] = []
    for j in range(0, width, lanes * group):
        bound, found = zip_words(columns, plus(j0, j), p, lanes)
        at = [ramp(plus(plus(base, times(p, stride)), j + v * lanes), lanes) for v in range(group)]
        steps += [*bound, *(tirx.BufferStore(buffer, x, [slot]) for x, slot in zip(found, at, strict=True))]
    return sequence(*steps)


def _transposed(
    columns: Tile2D, j0: Expr, words: int, width: int, size: int, buffer: BufferVar, stride: int, base: Expr
) -> Stmt:
    """Return statements that fill a strip from columns that are stored as rows."""

    def block(jb: Expr, pb: Expr) -> Stmt:
        j, p = _clamped(jb, size, width), _clamped(pb, size, words)

        def read(r: int, into: BufferVar) -> Stmt:
            row = load_words(columns, plus(plus(j0, j), r), p, size)
            return tirx.BufferStore(into, row, [ramp(r * size, size)])

        def write(r: int, row: Expr) -> Stmt:
            return tirx.BufferStore(buffer, row, [ramp(plus(plus(base, times(plus(p, r), stride)), j), size)])

        return block_transpose(read, write, size, WORD)

    blocks = -(-words // size)
    return loop("jb", -(-width // size), lambda jb: loop("pb", blocks, lambda pb: block(jb, pb)))


def cover(extent: int, lanes: int, vector: Callable[[Expr, int], Stmt]) -> Stmt:
    """Return vectors over ``range(extent)``; the last one overlaps its neighbour."""
    while lanes > extent:
        lanes //= 2
    whole = loop("v", extent // lanes, lambda v: vector(times(v, lanes), lanes))
    return sequence(whole, vector(extent - lanes, lanes)) if extent % lanes else whole


def _clamped(index: Expr, size: int, extent: int) -> Expr:
    start = times(index, size)
    if isinstance(start, int):
        return min(start, extent - size)
    return tirx.min(start, extent - size) if extent % size else start
