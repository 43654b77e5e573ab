"""Pack operands of tile products: A into tiles, B into strips.

A tile has 16 rows of 16 words, a strip the columns of two tiles. A tile of A is contiguous, so that its rows never fall
into the same sets of a cache, as rows of a matrix may. Missing elements are zeros.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.packing import BLOCK, block_transpose
from tile_core.cpu.tile2d import Tile2D, bits_of, loop, plus, ramp, sequence, splat, times
from tile_core.cpu.words import WORD, join_words, load_words, pack_strip
from tile_core.records import dataclass

#: Rows of a tile, and the words of each row.
SIDE = 16
#: Columns of a strip: those of two tiles.
WIDTH = 2 * SIDE
#: The least side of a block that is transposed in registers.
_LEAST_BLOCK = 4


def tiles_over(extent: int) -> int:
    """Return the number of tiles that cover an extent."""
    return -(-extent // SIDE)


def index_of(tile: Expr, row: Expr, step: Expr, word: Expr, steps: int) -> Expr:
    """Return the index of a word of A's panel, which has ``steps`` tiles along k."""
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
    tiles = _Tiles(tile, k, group, buffer)
    made = _zeros(rows, -(-k // group), buffer)
    if rows >= SIDE:
        made.append(loop("tile", rows // SIDE, lambda t: tiles.filled(t, SIDE)))
    return [*made, tiles.filled(rows // SIDE, rows % SIDE)] if rows % SIDE else made


def pack_columns(tile: Tile2D, count: int, width: int, k: int, buffer: BufferVar) -> list[Stmt]:
    """Return statements that fill a panel with adjacent strips of B.

    Parameters
    ----------
    tile
        B, with ``k`` rows.
    count, width
        The number of strips, and the columns of each.
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
    return [*made, *pack_strip(tile, vectors, width, k, buffer, WIDTH, count, padded * WIDTH)]


def parts_of(extent: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """Return offsets and lanes of disjoint vectors that cover an extent."""
    whole = tuple((at, lanes) for at in range(0, extent - lanes + 1, lanes))
    return (*whole, *_left(extent, lanes))


def _left(extent: int, most: int) -> list[tuple[int, int]]:
    """Return shorter vectors for the rest of an extent, each aligned to its size."""
    found, at = [], extent // most * most
    while at < extent:
        size = 1 << ((extent - at).bit_length() - 1)
        found.append((at, size))
        at += size
    return found


def _zeros(rows: int, words: int, buffer: BufferVar) -> list[Stmt]:
    """Return the statements that clear the last tiles along both axes if incomplete."""
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


@dataclass(frozen=True)
class _Tiles:
    """The tiles of A's panel.

    Arguments of methods are a tile, rows of it, and words counted from a step along k.
    """

    tile: Tile2D
    k: int
    group: int
    buffer: BufferVar

    def filled(self, t: Expr, rows: int) -> Stmt:
        """Return the statement that fills the tiles of up to 16 rows."""
        whole, rest = self.k // self.group, self.k % self.group
        parts = []
        if whole >= SIDE:
            parts.append(loop("step", whole // SIDE, lambda s: self.words(t, rows, 0, s, SIDE)))
        parts += [self.words(t, rows, p, 0, lanes) for p, lanes in _left(whole, SIDE)]
        if rest:
            parts.append(loop("row", rows, lambda r: self.single(t, r, whole, 0, rest)))
        return sequence(*parts)

    def words(self, t: Expr, rows: int, p: int, s: Expr, lanes: int) -> Stmt:
        """Return the statement that fills some words of each row."""
        if not self.tile.transposed:
            return loop("row", rows, lambda r: self.copied(t, r, p, s, lanes))
        if min(lanes, rows) < _LEAST_BLOCK:
            ones = [p + q for q in range(lanes)]
            return loop("row", rows, lambda r: sequence(*(self.single(t, r, q, s, self.group) for q in ones)))
        parts: list[Stmt] = []
        if lanes == rows == SIDE:
            count = SIDE // BLOCK

            def block(r: Expr, q: Expr) -> Stmt:
                return self.exchanged(t, times(r, BLOCK), times(q, BLOCK), s, BLOCK)

            return loop("row", count, lambda r: loop("word", count, lambda q: block(r, q)))
        for row, size in parts_of(rows, min(lanes, BLOCK)):
            if size < _LEAST_BLOCK:
                cells = [(row + r, p + q) for r in range(size) for q in range(lanes)]
                parts += [self.single(t, r, q, s, self.group) for r, q in cells]
            else:
                parts += [self.exchanged(t, row, p + q, s, size) for q in range(0, lanes, size)]
        return sequence(*parts)

    def copied(self, t: Expr, r: Expr, p: int, s: Expr, lanes: int) -> Stmt:
        """Return the copy of adjacent words of a row."""
        return self.store(t, r, p, s, lanes, load_words(self.tile, *_coordinates(t, r, s, p), lanes))

    def single(self, t: Expr, r: Expr, p: int, s: Expr, elements: int) -> Stmt:
        """Return the copy of one word, which may lack elements."""
        return self.store(t, r, p, s, 1, join_words(self.tile, *_coordinates(t, r, s, p), 1, elements))

    def exchanged(self, t: Expr, r: Expr, p: Expr, s: Expr, size: int) -> Stmt:
        """Return the copy of a block of words that is transposed in registers."""
        i, q = _coordinates(t, r, s, p)

        def read(n: int, into: BufferVar) -> Stmt:
            words = join_words(self.tile, i, plus(q, n), size, self.group)
            return tirx.BufferStore(into, words, [ramp(n * size, size)])

        return block_transpose(read, lambda n, row: self.store(t, plus(r, n), p, s, size, row), size, WORD)

    def store(self, t: Expr, r: Expr, p: Expr, s: Expr, lanes: int, value: Expr) -> Stmt:
        """Return the statement that stores adjacent words of a row."""
        steps = tiles_over(-(-self.k // self.group))
        step, word = divmod(p, SIDE) if isinstance(p, int) else (0, p)
        at = index_of(t, r, plus(s, step), word, steps)
        return tirx.BufferStore(self.buffer, value, [ramp(at, lanes)])


def _coordinates(t: Expr, r: Expr, s: Expr, p: Expr) -> tuple[Expr, Expr]:
    """Return the row and the word in A."""
    return plus(times(t, SIDE), r), plus(times(s, SIDE), p)
