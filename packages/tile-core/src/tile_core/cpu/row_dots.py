"""Multiply a few dozen rows along the rows of B as stored.

Transposing B costs as much as multiplying it by twenty rows. Here some rows of A and of the stored B are multiplied
along memory, and the lanes of all accumulators are added up at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.dots import OFFSET, Products
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import multiply_add
from tile_core.cpu.micro_rows import added_up, upper_lanes
from tile_core.cpu.packing import registers
from tile_core.cpu.tile2d import Tile2D, cast, loop, plus, ramp, sequence, splat, times, zero
from tile_core.cpu.words import WORD, load_words
from tile_core.records import dataclass

#: Rows of A and of the stored B that are multiplied at a time.
ROWS, STREAMS = 4, 4


@dataclass(frozen=True)
class Call:
    """One product, whose k is multiplied at a time."""

    a: Tile2D
    b: Tile2D
    c: Tile2D
    m: int
    n: int
    k: int
    products: Products
    acc: str
    isa: Isa
    clear: Expr

    @property
    def words(self) -> int:
        """Words along k."""
        return -(-self.k // self.products.dot.group)


Add = Callable[[Expr, Expr, Expr], Expr]


def row_dots(call: Call, left: BufferVar, choose: Callable[[Expr, int, Callable[[Add], Stmt]], Stmt]) -> Stmt:
    """Return the product of a packed A with a B that is stored transposed.

    Parameters
    ----------
    call
        The product. Its k is a whole number of words, at least as many as a vector has.
    left
        A's words, row by row.
    choose
        From the first column, the number of columns and a function from an addition to their products to the
        statement for these columns.
    """
    parts, start = [], 0
    for width in (STREAMS, 1):
        count = (call.n - start) // width

        def columns(index: Expr, width: int = width, start: int = start) -> Stmt:
            j0 = plus(times(index, width), start)
            return choose(j0, width, lambda add: _columns(call, left, j0, width, add))

        if count:
            parts.append(loop("column", count, columns))
        start += count * width
    return sequence(*parts)


def _columns(call: Call, left: BufferVar, j0: Expr, width: int, add: Add) -> Stmt:
    steps: list[Stmt] = []
    corrections = None
    if call.products.offset:
        allocate, corrections = registers(width, "int32", "corrections")
        steps += [allocate, _group(call, None, 0, 1, j0, width, add, corrections, None)]
    start = 0
    for rows in (r for r in (ROWS, 2, 1) if r * STREAMS <= call.isa.registers // 2):
        count = (call.m - start) // rows

        def group(index: Expr, rows: int = rows, start: int = start) -> Stmt:
            return _group(call, left, plus(times(index, rows), start), rows, j0, width, add, None, corrections)

        if count:
            steps.append(loop("rows", count, group))
        start += count * rows
    return sequence(*steps)


def _group(
    call: Call, left: BufferVar | None, i0: Expr, rows: int, j0: Expr, width: int, add: Add, into: BufferVar | None,
    corrections: BufferVar | None,
) -> Stmt:  # fmt: skip
    """Return the products of rows with columns, or of offsets with columns."""
    lanes, acc = call.isa.lanes(32), call.acc
    cells = [(r, j, [ramp((r * width + j) * lanes, lanes)]) for r in range(rows) for j in range(width)]
    allocate, held = registers(len(cells) * lanes, acc, "acc")
    neutral = tirx.FloatImm(acc, 0.0 if call.clear is True else -0.0) if acc == "float32" else zero(acc)
    stored = call.b.flipped()

    def step(p: Expr, last: int = 0) -> Stmt:
        """Multiply a vector of words; with ``last``, only that many of its last ones."""
        stores = []
        for r, j, slot in cells:
            x = splat(tirx.IntImm(WORD, OFFSET), lanes)
            if left is not None:
                x = tirx.BufferLoad(left, [ramp(plus(times(plus(i0, r), call.words), p), lanes)])
            before = tirx.BufferLoad(held, slot)
            total = add(before, x, load_words(stored, plus(j0, j), p, lanes))
            stores.append(tirx.BufferStore(held, upper_lanes(total, before, last, lanes) if last else total, slot))
        return sequence(*stores)

    steps = [allocate, *(tirx.BufferStore(held, splat(neutral, lanes), slot) for _, _, slot in cells)]
    steps.append(loop("p", call.words // lanes, lambda p: step(times(p, lanes))))
    if call.words % lanes:
        steps.append(step(call.words - lanes, call.words % lanes))
    # One step adds up as many vectors as each has lanes. Their totals replace vectors that are added up.
    most = min(len(cells), lanes)
    for start in range(0, len(cells), most):
        vectors = [tirx.BufferLoad(held, slot) for _, _, slot in cells[start : start + most]]
        made, totals = added_up(vectors, lanes, acc, multiply_add)
        steps += [*made, tirx.BufferStore(held if into is None else into, totals, [ramp(start, most)])]
    if into is not None:
        return sequence(*steps)
    return sequence(*steps, *(_finish(call, held, r, i0, j0, width, corrections) for r in range(rows)))


def _finish(
    call: Call, totals: BufferVar, r: int, i0: Expr, j0: Expr, width: int, corrections: BufferVar | None
) -> Stmt:
    """Add the totals of row ``r`` to C."""
    where = call.c.at(plus(i0, r), j0)
    at = [*where[:-1], ramp(where[-1], width)]
    total = tirx.BufferLoad(totals, [ramp(r * width, width)])
    one = splat(tirx.IntImm("int32", 1), width)
    if corrections is not None:
        taken = tirx.BufferLoad(corrections, [ramp(0, width)])
        total = multiply_add(total, taken, splat(tirx.IntImm("int32", -1), width), "int32", width)
    if call.clear is not True:
        held = cast(tirx.BufferLoad(call.c.buffer, at), call.c.dtype, call.acc, width)
        if call.clear is not False:
            held = tirx.Select(splat(call.clear, width), splat(zero(call.acc), width), held)
        total = held + total if call.acc == "float32" else multiply_add(held, total, one, "int32", width)
    return tirx.BufferStore(call.c.buffer, cast(total, call.acc, call.c.dtype, width), at)
