"""The block product of a 2:4 sparse A with a dense B: only kept values are multiplied.

Row by row: the accumulators of a row stay in registers while its stored values go by. Each value is broadcast and
multiplied by the row of B that its metadata names, which is an operand in memory: half the multiplications of the dense
product, each with a load of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import accumulator_dtype, multiply_add
from tile_core.cpu.packing import converted, needs_conversion, registers, transposed
from tile_core.cpu.tile2d import Tile2D, bits_of, cast, loop, plus, ramp, sequence, splat, times, zero

#: Accumulators of a row that are kept in registers at a time.
VECTORS = 8


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
    kept: Callable[[Any], list[Any]]
    group: int


def micro_gemm_sp(
    a: Sparse, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, clear: bool | Any = False
) -> Any:
    """Return the statement ``c = (clear ? 0 : c) + decompress(a) @ b`` (see ``micro_gemm``)."""
    acc = accumulator_dtype(c.dtype)
    prepared: list[Any] = []
    if b.transposed and n > 1:
        made, b = transposed(b, k, n, acc, isa, "b_panel")
        prepared += made
    elif needs_conversion(b, acc):
        made, b = converted(b, k, n, acc, isa, "b_panel")
        prepared += made

    def strip(pieces: list[tuple[int, int]]) -> Any:
        return loop("i", m, lambda i: _row(a, b, c, i, pieces, acc, clear))

    strips = [strip(pieces) for pieces in _strips(n, isa, acc)]
    return sequence(*prepared, *strips)


def _strips(n: int, isa: Isa, acc: str) -> list[list[tuple[int, int]]]:
    """Return the columns as strips of (start, lanes); the last vector overlaps its neighbour."""
    lanes = isa.lanes(bits_of(acc))
    while lanes > n:
        lanes //= 2
    starts = [min(s, n - lanes) for s in range(0, n, lanes)]
    return [[(s, lanes) for s in starts[at : at + VECTORS]] for at in range(0, len(starts), VECTORS)]


def _row(a: Sparse, b: Tile2D, c: Tile2D, i: Any, pieces: list[tuple[int, int]], acc: str, clear: Any) -> Any:
    allocation, tile = registers(sum(lanes for _, lanes in pieces), acc, "row")
    cells = [(start, lanes, [ramp(slot * lanes, lanes)]) for slot, (start, lanes) in enumerate(pieces)]

    def vector(matrix: Tile2D, row: Any, start: int, lanes: int) -> Any:
        where = matrix.at(row, start)
        return tirx.BufferLoad(matrix.buffer, [*where[:-1], ramp(where[-1], lanes)])

    def begin(start: int, lanes: int) -> Any:
        empty = splat(zero(acc), lanes)
        if clear is True:
            return empty
        held = cast(vector(c, i, start, lanes), c.dtype, acc, lanes)
        return held if clear is False else tirx.Select(splat(clear, lanes), empty, held)

    def finish(start: int, lanes: int, slot: list[Any]) -> Any:
        where = c.at(i, start)
        value = cast(tirx.BufferLoad(tile, slot), acc, c.dtype, lanes)
        return tirx.BufferStore(c.buffer, value, [*where[:-1], ramp(where[-1], lanes)])

    def multiply(stored: Any, row: Any) -> list[Any]:
        value = tirx.Var("value", acc)
        read = a.values.read(i, stored)
        steps = [tirx.Bind(value, cast(read, str(read.ty), acc))]
        for start, lanes, slot in cells:
            y = vector(b, row, start, lanes)
            total = multiply_add(tirx.BufferLoad(tile, slot), splat(value, lanes), y, acc, lanes)
            steps.append(tirx.BufferStore(tile, total, slot))
        return steps

    def word(w: Any) -> Any:
        meta = tirx.Var("meta", "int32")
        steps: list[Any] = [tirx.Bind(meta, tirx.Cast("int32", a.metadata.read(i, w)))]
        for position in range(a.nibbles):
            g = plus(times(w, a.nibbles), position)
            code = tirx.bitwise_and(
                tirx.shift_right(meta, tirx.IntImm("int32", 4 * position)), tirx.IntImm("int32", 15)
            )
            indices = a.kept(code)
            for slot, index in enumerate(indices):
                row = tirx.Var("at", "int32")
                steps.append(tirx.Bind(row, plus(times(g, a.group), index)))
                steps += multiply(plus(times(g, len(indices)), slot), row)
        return sequence(*steps)

    first = [tirx.BufferStore(tile, begin(start, lanes), slot) for start, lanes, slot in cells]
    last = [finish(start, lanes, slot) for start, lanes, slot in cells]
    return sequence(allocation, *first, loop("w", a.words, word), *last)
