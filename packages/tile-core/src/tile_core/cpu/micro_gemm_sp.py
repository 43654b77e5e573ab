"""The block product of a 2:4 sparse A with a dense B.

Row by row: the accumulators of a row stay in registers while its stored values go by. Each value is broadcast and
multiplied by the row of B that its metadata names, which is an operand in memory: half the multiplications of the dense
product, each with a load of its own. All other work is done in advance, for all columns at once: values are converted,
metadata becomes offsets of rows, and B is laid out in strips as wide as the accumulators, so that the multiplied data
stays in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import multiply_add
from tile_core.cpu.packing import converted, converted_read, needs_conversion, registers, transposed
from tile_core.cpu.tile2d import Tile2D, bits_of, cast, loop, plus, ramp, sequence, splat, times, zero
from tile_core.ops.gemm import accumulator
from tile_core.records import dataclass

#: Accumulators of a row that are kept in registers at a time.
VECTORS = 8
#: Bytes of a strip of B that is multiplied at a time.
STRIP_BYTES = 32 * 1024


@dataclass(frozen=True)
class Sparse:
    """The sparse operand.

    Attributes
    ----------
    values, metadata
        Kept values (M x K/2) and metadata (M x words) as matrices.
    words
        Elements of metadata in a row.
    nibbles
        Groups that one element of metadata describes.
    kept
        From a nibble (an ``int32`` expression) to the kept indices within its group.
    group
        Elements of K in a group.
    """

    values: Tile2D
    metadata: Tile2D
    words: int
    nibbles: int
    kept: Callable[[Expr], list[Stmt]]
    group: int


def micro_gemm_sp(a: Sparse, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, clear: bool = False) -> Stmt:
    """Return the product of a compressed ``a`` with ``b``, added as in ``micro_gemm``."""
    acc = accumulator(c.dtype)
    strips = _strips(n, isa, acc)
    width = max(sum(lanes for _, lanes in vectors) for vectors in strips)
    per_word = a.nibbles * len(a.kept(tirx.IntImm("int32", 0)))
    values = a.values
    prepared: list[Stmt] = []
    if needs_conversion(values, acc):
        prepared, values = converted(values, m, a.words * per_word, acc, isa, "a_panel")
    made, offsets = _offsets(a, m, per_word, width)
    packed, panel = _packed(b, k, strips, width, acc, isa)
    operands = _Operands(values, offsets, panel, c, acc)
    depth = _words(a.words, k // a.words * width * bits_of(acc) // 8) if c.dtype == acc else a.words

    def part(start: Expr, words: int, first: Expr) -> Stmt:
        stored = times(start, per_word)

        def rows(s: int) -> Stmt:
            return loop("i", m, lambda i: _row(operands, i, s, strips[s], stored, words * per_word, first))

        return sequence(*(rows(s) for s in range(len(strips))))

    def whole(index: Expr) -> Stmt:
        first = clear
        if clear is not False and not isinstance(index, int):
            first = index == 0 if clear is True else tirx.And(index == 0, clear)
        return part(times(index, depth), depth, first)

    products = [loop("kb", a.words // depth, whole)]
    if a.words % depth:
        products.append(part(a.words - a.words % depth, a.words % depth, False))
    return sequence(*prepared, *made, *packed, *products)


@dataclass(frozen=True)
class _Operands:
    """Operands of the product: stored values, offsets into a strip of B, strips, and C."""

    values: Tile2D
    offsets: BufferVar
    panel: BufferVar
    c: Tile2D
    acc: str


def _strips(n: int, isa: Isa, acc: str) -> list[list[tuple[int, int]]]:
    """Return the columns as strips of (start, lanes).

    The last vector overlaps its neighbour in the same strip.
    """
    lanes = isa.lanes(bits_of(acc))
    while lanes > n:
        lanes //= 2
    starts = [min(s, n - lanes) for s in range(0, n, lanes)]
    each = -(-len(starts) // -(-len(starts) // VECTORS))
    strips = [[(s, lanes) for s in starts[at : at + each]] for at in range(0, len(starts), each)]
    if len(strips) > 1 and len(strips[-1]) == 1:
        # Columns shared by two strips would accumulate their products twice.
        strips[-1].insert(0, strips[-2].pop())
    return strips


def _words(words: int, word_bytes: int) -> int:
    """Return how many metadata elements of a row are processed at a time, a divisor."""
    most = max(1, STRIP_BYTES // word_bytes)
    if words <= most:
        return words
    return next((w for w in range(most, most // 2, -1) if words % w == 0), most)


def _offsets(a: Sparse, m: int, per_word: int, width: int) -> tuple[list[Stmt], BufferVar]:
    """Return statements that decode metadata to row offsets in a strip, and their buffer."""
    buffer = tirx.decl_buffer((m, a.words * per_word), "int32", "offsets", scope="global", layout=None)
    each = per_word // a.nibbles

    def word(i: Expr, w: Expr) -> Stmt:
        meta = tirx.Var("meta", "int32")

        def one(v: Var) -> Stmt:
            position = v // each
            code = tirx.bitwise_and(tirx.shift_right(meta, position * 4), tirx.IntImm("int32", 15))
            indices = a.kept(code)
            index = indices[0] if each == 1 else tirx.Select(tirx.EQ(v % 2, 0), *indices)
            row = plus(times(plus(times(w, a.nibbles), position), a.group), index)
            return tirx.BufferStore(buffer, times(row, width), [i, plus(times(w, per_word), v)])

        read = tirx.Bind(meta, tirx.Cast("int32", a.metadata.read(i, w)))
        return sequence(read, loop("v", per_word, one, tirx.ForKind.VECTORIZED))

    fill = loop("i", m, lambda i: loop("w", a.words, lambda w: word(i, w)))
    return [tirx.AllocBuffer(buffer), fill], buffer


def _packed(
    b: Tile2D, k: int, strips: list[list[tuple[int, int]]], width: int, acc: str, isa: Isa
) -> tuple[list[Stmt], BufferVar]:
    """Return statements that convert B into strips, and their buffer, one strip per row."""
    statements: list[Stmt] = []
    n = strips[-1][-1][0] + strips[-1][-1][1]
    if b.transposed and n > 1:
        statements, b = transposed(b, k, n, acc, isa, "b_rows")
    buffer = tirx.decl_buffer((len(strips), k * width), acc, "b_panel", scope="global", layout=None)

    def vector(row: Var, s: int, start: int, lanes: int, position: int) -> Stmt:
        def one(v: Var) -> Stmt:
            at = plus(times(row, width), plus(v, position))
            return tirx.BufferStore(buffer, converted_read(b, row, plus(v, start), acc), [s, at])

        return loop("v", lanes, one, tirx.ForKind.VECTORIZED)

    def strip(s: int) -> Stmt:
        positions = [(start, lanes, at * lanes) for at, (start, lanes) in enumerate(strips[s])]
        return loop("row", k, lambda row: sequence(*(vector(row, s, *position) for position in positions)))

    return [*statements, tirx.AllocBuffer(buffer), *(strip(s) for s in range(len(strips)))], buffer


def _row(
    operands: _Operands, i: Expr, s: int, vectors: list[tuple[int, int]], stored: int, count: int, clear: bool
) -> Stmt:
    """Add the products of ``count`` stored values of row ``i`` to strip ``s``.

    ``stored`` is the first of them.
    """
    c, acc = operands.c, operands.acc
    allocation, tile = registers(sum(lanes for _, lanes in vectors), acc, "row")
    cells = [(start, lanes, [ramp(slot * lanes, lanes)]) for slot, (start, lanes) in enumerate(vectors)]

    def held(start: int, lanes: int) -> list[Expr]:
        where = c.at(i, start)
        return [*where[:-1], ramp(where[-1], lanes)]

    def begin(start: int, lanes: int) -> Expr:
        empty = splat(zero(acc), lanes)
        if clear is True:
            return empty
        before = cast(tirx.BufferLoad(c.buffer, held(start, lanes)), c.dtype, acc, lanes)
        return before if clear is False else tirx.Select(splat(clear, lanes), empty, before)

    def multiply(t: Var) -> Stmt:
        value, row = tirx.Var("value", acc), tirx.Var("at", "int32")
        steps = [
            tirx.Bind(value, operands.values.read(i, plus(stored, t))),
            tirx.Bind(row, tirx.BufferLoad(operands.offsets, [i, plus(stored, t)])),
        ]
        for at, (_, lanes, slot) in enumerate(cells):
            y = tirx.BufferLoad(operands.panel, [s, ramp(plus(row, at * lanes), lanes)])
            total = multiply_add(tirx.BufferLoad(tile, slot), splat(value, lanes), y, acc, lanes)
            steps.append(tirx.BufferStore(tile, total, slot))
        return sequence(*steps)

    first = [tirx.BufferStore(tile, begin(start, lanes), slot) for start, lanes, slot in cells]
    last = [
        tirx.BufferStore(c.buffer, cast(tirx.BufferLoad(tile, slot), acc, c.dtype, lanes), held(start, lanes))
        for start, lanes, slot in cells
    ]
    return sequence(allocation, *first, loop("t", count, multiply), *last)
