"""Products of a few rows with a transposed matrix, as reductions along memory.

Rows of the stored matrix are read once, several at a time, each with accumulators that run along the product's ``k``.
At the end the lanes of all accumulators are added up together, by shuffles that halve their number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, BufferVar, Expr, Stmt, Var
from tile_core.cpu.isa import Isa
from tile_core.cpu.packing import registers
from tile_core.cpu.tile2d import (
    Tile2D,
    bits_of,
    cast,
    loop,
    plus,
    prefetch,
    ramp,
    sequence,
    splat,
    times,
    vector_dtype,
    zero,
)
from tile_core.ir import nodes

#: Up to this many rows of A, a product reads its B once: a panel of B would cost as much as the product.
FEW_ROWS = 4
#: Bits of a line of memory, and between an access and the line that is prefetched at its time.
_LINE, _DISTANCE = 512, 8 * 4096
#: Rows of the stored matrix that are read side by side.
_STREAMS = 8

Accumulate = Callable[[Expr, Expr, Expr, str, int], Expr]
"""``add(total, x, y, dtype, lanes)`` gives ``total + x * y``."""


def dot_rows(
    a: Tile2D, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, acc: str, isa: Isa, clear: bool, add: Accumulate,
    stored_rows: Expr | None = None,
) -> Stmt:  # fmt: skip
    """Return the statement ``c = (clear ? 0 : c) + a @ b``.

    Parameters
    ----------
    a
        An ``m`` x ``k`` matrix of dtype ``acc`` with contiguous rows; ``m`` is at most ``FEW_ROWS``.
    b
        A ``k`` x ``n`` matrix that is stored transposed, of any dtype that converts to ``acc`` by a cast.
    c
        An ``m`` x ``n`` matrix with contiguous rows.
    acc, isa, clear
        As in ``micro_gemm``.
    add
        ``add(total, x, y, dtype, lanes)`` gives ``total + x * y``.
    stored_rows
        As in ``micro_gemm``.
    """
    lanes = _lanes(k, acc, isa)
    most = max(1, min(_STREAMS, lanes, (isa.registers - m - 2) // (m + 1)))
    width = 1 << (most.bit_length() - 1)
    parts, start = [], 0
    while start < n:
        while width > n - start:
            width //= 2
        count = (n - start) // width

        def group(index: Expr, width: int = width, start: int = start) -> Stmt:
            j0 = plus(times(index, width), start)
            fetched = [] if stored_rows is None else _fetched(b.flipped(), j0, width, k, stored_rows)
            return sequence(*fetched, _group(a, b, c, m, j0, width, k, lanes, acc, clear, add))

        parts.append(loop("group", count, group))
        start += count * width
    return sequence(*parts)


def following_rows(b: Tile2D, row: Expr, column: Expr, count: int, bits: int, stored: Expr) -> list[Stmt]:
    """Return the prefetch of a line in rows that a product reads next.

    Parameters
    ----------
    b
        A matrix in memory.
    row, column, count
        Where the product reads, relative to the matrix's corner, and the number of adjacent rows.
    bits
        Bits of a row that are read.
    stored
        The number of rows of its buffer, after which no row is prefetched.
    """
    kinds = {nodes.dtype_of(e) for e in (b.row0, stored) if not isinstance(nodes.as_int(e), int)}
    if len(kinds) > 1:
        return []
    dtype = kinds.pop() if kinds else "int32"
    last = (
        nodes.cast(stored, dtype) if not isinstance(nodes.as_int(stored), int) else nodes.int_const(int(stored), dtype)
    )
    distance = max(count, _DISTANCE // (-(-bits // _LINE) * _LINE))
    found = []
    for at in range(count):
        after = plus(plus(b.row0, row), distance + at)
        after = nodes.int_const(after, dtype) if isinstance(after, int) else nodes.cast(after, dtype)
        where = replace(b, row0=tirx.min(after, last - 1)).at(0, column)
        found.append(prefetch(b.buffer, where))
    return found


def _fetched(b: Tile2D, j0: Expr, width: int, k: int, stored: Expr) -> list[Stmt]:
    """Return prefetches of all lines of the rows after a group of rows."""
    step = _LINE // bits_of(b.dtype)
    lines = range(0, k, step)
    return [s for p in lines for s in following_rows(b, j0, p, width, k * bits_of(b.dtype), stored)]


def _lanes(k: int, acc: str, isa: Isa) -> int:
    lanes = isa.lanes(bits_of(acc))
    while lanes > k:
        lanes //= 2
    return lanes


def _group(
    a: Tile2D,
    b: Tile2D,
    c: Tile2D,
    m: int,
    j0: Expr,
    width: int,
    k: int,
    lanes: int,
    acc: str,
    clear: bool,
    add: Accumulate,
) -> Stmt:
    """Columns ``j0`` to ``j0 + width`` of the result."""
    allocation, accumulators = registers(m * width * lanes, acc, "sums")
    allocate_row, row = registers(lanes, acc, "row")
    slots = {(i, j): [ramp((i * width + j) * lanes, lanes)] for i in range(m) for j in range(width)}
    # -0.0 is the neutral element of addition, even for a sum of -0.0.
    nothing = splat(tirx.FloatImm(acc, -0.0) if acc.startswith("float") else zero(acc), lanes)

    def step(p: Expr, last: BinaryNode | None = None) -> Stmt:
        """Multiply the lanes from ``p`` on; with ``last``, only those lanes that it selects."""
        steps: list[Stmt] = []
        xs = [_vector(a, i, p, lanes) for i in range(m)]
        for j in range(width):
            where = b.at(p, plus(j0, j))
            read = tirx.BufferLoad(b.buffer, [*where[:-1], ramp(where[-1], lanes)])
            # A register and not a binding: TVM's lowering of bfloat16 skips bound values.
            steps.append(tirx.BufferStore(row, cast(read, b.dtype, acc, lanes), [ramp(0, lanes)]))
            y = tirx.BufferLoad(row, [ramp(0, lanes)])
            for i in range(m):
                held = tirx.BufferLoad(accumulators, slots[i, j])
                total = add(held, xs[i], y, acc, lanes)
                steps.append(tirx.BufferStore(accumulators, total if last is None else last(total, held), slots[i, j]))
        return sequence(*steps)

    body = [allocation, allocate_row, *(tirx.BufferStore(accumulators, nothing, slot) for slot in slots.values())]
    double = k // (2 * lanes) if b.dtype == "bfloat16" and acc == "float32" and lanes > 1 else 0
    if double:
        ramps = {j: [slots[i, j] for i in range(m)] for j in range(width)}
        body.append(loop("p", double, lambda p: _pairs(a, b, j0, times(p, 2 * lanes), accumulators, ramps, add)))
    if k // lanes > 2 * double:
        count, first = k // lanes - 2 * double, 2 * double * lanes
        body.append(loop("p", count, lambda p: step(plus(times(p, lanes), first))))
    rest = k % lanes
    if rest:
        body.append(step(k - lanes, lambda total, held: upper_lanes(total, held, rest, lanes)))
    for i in range(m):
        rows = [tirx.BufferLoad(accumulators, slots[i, j]) for j in range(width)]
        made, totals = added_up(rows, lanes, acc, add)
        body += [*made, *_finish(c, i, j0, accumulators, totals, width, acc, clear)]
    return sequence(*body)


def _pairs(
    a: Tile2D,
    b: Tile2D,
    j0: Expr,
    p: Expr,
    accumulators: BufferVar,
    slots: dict[int, list[list[Expr]]],
    add: Accumulate,
) -> Stmt:
    """Multiply two vectors of columns of bfloat16, which are the halves of words."""
    lanes, acc = int(slots[0][0][0].lanes), "float32"
    xs = [_halves(a, i, p, lanes) for i in range(len(slots[0]))]
    steps: list[Stmt] = []
    for j, cells in slots.items():
        where = b.at(p, plus(j0, j))
        read = tirx.BufferLoad(b.buffer, [*where[:-1], ramp(where[-1], 2 * lanes)])
        words = tirx.reinterpret(vector_dtype("uint32", lanes), read)
        for half, bits in enumerate((words << _word(16, lanes), words & _word(0xFFFF0000, lanes))):
            y = tirx.reinterpret(vector_dtype(acc, lanes), bits)
            for x, slot in zip(xs, cells, strict=True):
                total = add(tirx.BufferLoad(accumulators, slot), x[half], y, acc, lanes)
                steps.append(tirx.BufferStore(accumulators, total, slot))
    return sequence(*steps)


def _vector(tile: Tile2D, i: Expr, j: Expr, lanes: int) -> Expr:
    where = tile.at(i, j)
    return tirx.BufferLoad(tile.buffer, [*where[:-1], ramp(where[-1], lanes)])


def _halves(tile: Tile2D, i: Expr, j: Expr, lanes: int) -> list[Expr]:
    """Return the even and odd elements of two vectors of a row."""
    vectors = [_vector(tile, i, plus(j, start), lanes) for start in (0, lanes)]
    return [_shuffled(vectors, list(range(half, 2 * lanes, 2))) for half in (0, 1)]


def _word(value: int, lanes: int) -> Expr:
    return splat(tirx.IntImm("uint32", value), lanes)


def upper_lanes(total: Expr, held: Expr, count: int, lanes: int) -> Expr:
    """The last ``count`` lanes of ``total``; the others of ``held``."""
    return tirx.Shuffle([total, held], [lane if lane >= lanes - count else lanes + lane for lane in range(lanes)])


def added_up(rows: list[Expr], lanes: int, acc: str, add: Accumulate) -> tuple[list[Stmt], Var]:
    """Return statements and a vector with the sum of the lanes of each row."""
    steps: list[Stmt] = []

    def total(parts: list[Expr], low: list[int], high: list[int]) -> Var:
        size = len(low)
        var = tirx.Var("part", vector_dtype(acc, size))
        one = splat(tirx.FloatImm(acc, 1.0) if acc.startswith("float") else tirx.IntImm(acc, 1), size)
        steps.append(tirx.Bind(var, add(_shuffled(parts, low), one, _shuffled(parts, high), acc, size)))
        return var

    blocks = 1
    count = len(rows)
    while len(rows) > 1:
        # Each vector holds one block of lanes for each of its rows; two become one with blocks of half the size.
        size, half = lanes // blocks, len(rows) // 2
        low = [s * lanes + block * size + v for block in range(blocks) for s in (0, 1) for v in range(size // 2)]
        rows = [total([rows[r], rows[r + half]], low, [v + size // 2 for v in low]) for r in range(half)]
        blocks *= 2
    (held,) = rows
    size = lanes // count
    while size > 1:
        low = [block * size + v for block in range(count) for v in range(size // 2)]
        held = total([held], low, [v + size // 2 for v in low])
        size //= 2
    return steps, held


def _shuffled(parts: list[Expr], indices: list[int]) -> Expr:
    if len(indices) == 1:
        return tirx.Shuffle(parts, [tirx.IntImm("int32", indices[0])])
    return tirx.Shuffle(parts, [tirx.IntImm("int32", i) for i in indices])


def _finish(
    c: Tile2D, i: int, j0: Expr, accumulators: BufferVar, totals: Var, width: int, acc: str, clear: bool
) -> list[Stmt]:
    """Add the accumulators of row ``i`` to C, and reuse them for the conversion."""
    where = c.at(i, j0)
    position = [*where[:-1], ramp(where[-1], width)]
    empty = splat(zero(acc), width)
    begin = empty
    if clear is not True:
        held = cast(tirx.BufferLoad(c.buffer, position), c.dtype, acc, width)
        begin = held if clear is False else tirx.Select(splat(clear, width), empty, held)
    at = [ramp(i * width, width)]
    return [
        tirx.BufferStore(accumulators, begin + totals, at),
        tirx.BufferStore(c.buffer, cast(tirx.BufferLoad(accumulators, at), acc, c.dtype, width), position),
    ]
