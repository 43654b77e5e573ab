"""Pack operands of products of tiles: A by tiles of 16 rows x 16 words, B by strips of 32 columns.

A tile of A is contiguous, so that its rows never fall into the same sets of a cache, as rows of a matrix may. Missing
elements are zeros.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.packing import BLOCK, block_transpose
from tile_core.cpu.tile2d import Tile2D, bits_of, loop, plus, ramp, sequence, splat, times
from tile_core.cpu.words import WORD, join_words, load_words, pack_strip

#: Rows of a tile, and the words of each row.
SIDE = 16
#: Columns of a strip: those of two tiles.
WIDTH = 2 * SIDE
#: The least side of a block that is transposed in registers.
_LEAST_BLOCK = 4


def tiles_over(extent: int) -> int:
    """Return the number of tiles that cover an extent."""
    return -(-extent // SIDE)


def place_of(tile: Expr, row: Expr, step: Expr, word: Expr, steps: int) -> Expr:
    """Return where a word of a tile of A is in its panel, with ``steps`` tiles along k."""
    return plus(times(plus(times(tile, steps), step), SIDE * SIDE), plus(times(row, SIDE), word))


def pack_tiles(tile: Tile2D, rows: int, k: int, buffer: BufferVar) -> list[Stmt]:
    """Return statements that fill a panel with the tiles of A.

    Parameters
    ----------
    tile
        A matrix of ``rows`` x ``k`` elements.
    buffer
        The panel.
    """
    group = 32 // bits_of(tile.dtype)
    whole, rest = k // group, k % group
    steps = tiles_over(whole + (rest > 0))

    def store(t: Expr, r: Expr, p: int, s: Expr, lanes: int, value: Expr) -> Stmt:
        """Store words from the ``p``-th of step ``s``, or of the steps from there."""
        place = place_of(t, r, plus(s, p // SIDE), p % SIDE, steps)
        return tirx.BufferStore(buffer, value, [ramp(place, lanes)])

    def single(t: Expr, r: Expr, p: int, s: Expr, count: int) -> Stmt:
        word = join_words(tile, plus(times(t, SIDE), r), plus(times(s, SIDE), p), 1, count)
        return store(t, r, p, s, 1, word)

    def copied(t: Expr, r: Expr, p: int, s: Expr, lanes: int) -> Stmt:
        return store(t, r, p, s, lanes, load_words(tile, plus(times(t, SIDE), r), plus(times(s, SIDE), p), lanes))

    def exchanged(t: Expr, r: int, p: int, s: Expr, size: int) -> Stmt:
        i, q = plus(times(t, SIDE), r), plus(times(s, SIDE), p)

        def read(n: int, into: BufferVar) -> Stmt:
            return tirx.BufferStore(into, join_words(tile, i, plus(q, n), size, group), [ramp(n * size, size)])

        return block_transpose(read, lambda n, row: store(t, plus(r, n), p, s, size, row), size, WORD)

    def each_row(t: Expr, count: int, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        return loop("row", count, lambda r: body(t, r))

    def words(t: Expr, count: int, p: int, s: Expr, lanes: int) -> Stmt:
        """Fill some words of some rows of a tile."""
        if not tile.transposed:
            return each_row(t, count, lambda t, r: copied(t, r, p, s, lanes))
        if lanes < _LEAST_BLOCK or count < _LEAST_BLOCK:
            return each_row(t, count, lambda t, r: sequence(*(single(t, r, p + q, s, group) for q in range(lanes))))
        parts = []
        for row, size in parts_of(count, min(lanes, BLOCK)):
            if size < _LEAST_BLOCK:
                parts += [single(t, row + r, p + q, s, group) for r in range(size) for q in range(lanes)]
            else:
                parts += [exchanged(t, row, p + q, s, size) for q in range(0, lanes, size)]
        return sequence(*parts)

    def filled(t: Expr, count: int) -> Stmt:
        parts = []
        if whole >= SIDE:
            parts.append(loop("step", whole // SIDE, lambda s: words(t, count, 0, s, SIDE)))
        parts += [words(t, count, p, 0, lanes) for p, lanes in _left(whole, SIDE)]
        if rest:
            parts.append(each_row(t, count, lambda t, r: single(t, r, whole, 0, rest)))
        return sequence(*parts)

    made = _zeros(rows, whole + (rest > 0), buffer)
    if rows >= SIDE:
        made.append(loop("tile", rows // SIDE, lambda t: filled(t, SIDE)))
    return [*made, filled(rows // SIDE, rows % SIDE)] if rows % SIDE else made


def pack_columns(tile: Tile2D, j0: int, count: int, width: int, k: int, buffer: BufferVar) -> list[Stmt]:
    """Return statements that fill a panel with adjacent strips of B.

    Parameters
    ----------
    tile
        B, with ``k`` rows.
    j0, count, width
        The first column, the number of strips, and the columns of each.
    buffer
        The panel: in each strip, word ``p`` of column ``j`` at ``p * WIDTH + j``.
    """
    group = 32 // bits_of(tile.dtype)
    words = -(-k // group)
    padded = tiles_over(words) * SIDE
    zeros = splat(tirx.IntImm(WORD, 0), SIDE)
    first = 0 if width < WIDTH else words
    made: list[Stmt] = []
    if first < padded:

        def clear(t: Expr, v: Expr) -> Stmt:
            at = plus(times(t, padded * WIDTH), plus(times(v, SIDE), first * WIDTH))
            return tirx.BufferStore(buffer, zeros, [ramp(at, SIDE)])

        made.append(loop("jt", count, lambda t: loop("word", (padded - first) * 2, lambda v: clear(t, v))))
    vectors = parts_of(width, WIDTH // group if width == WIDTH else SIDE)
    return [*made, *pack_strip(tile, j0, vectors, width, k, buffer, WIDTH, count, padded * WIDTH)]


def parts_of(extent: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """Return offsets and lanes of vectors that cover an extent, none of which overlap."""
    whole = tuple((at, lanes) for at in range(0, extent - lanes + 1, lanes))
    return (*whole, *_left(extent, lanes))


def _left(extent: int, most: int) -> list[tuple[int, int]]:
    """Return vectors for the rest of an extent beyond whole vectors, each aligned to its size."""
    found, at = [], extent // most * most
    while at < extent:
        size = 1 << ((extent - at).bit_length() - 1)
        found.append((at, size))
        at += size
    return found


def _zeros(rows: int, words: int, buffer: BufferVar) -> list[Stmt]:
    """Return the statements that clear the last tiles along both axes where they have missing elements."""
    steps, high = tiles_over(words), tiles_over(rows)
    zeros = splat(tirx.IntImm(WORD, 0), SIDE)

    def cleared(tile: Expr) -> Stmt:
        def row(r: Expr) -> Stmt:
            return tirx.BufferStore(buffer, zeros, [ramp(plus(times(tile, SIDE * SIDE), times(r, SIDE)), SIDE)])

        return loop("row", SIDE, row)

    made = [loop("step", steps, lambda s: cleared(plus(s, (high - 1) * steps)))] if rows % SIDE else []
    if words % SIDE:
        made.append(loop("tile", high, lambda t: cleared(plus(times(t, steps), steps - 1))))
    return made
