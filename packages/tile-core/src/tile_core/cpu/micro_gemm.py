"""The block GEMM of the CPU backend, on tiles in scratch.

It computes ``C = (clear ? 0 : C) + A @ B``.

A register tile of ``rows`` x ``vectors`` accumulators is kept in a local buffer that LLVM promotes to registers while
a loop over ``k`` multiplies broadcast elements of A with vectors of B. Matrices of any size are covered exactly: the
last vector of a row overlaps its neighbour within the same register tile (both compute the same values), and the last
rows have a register tile of their own, so that nothing outside the ``m`` x ``n`` x ``k`` region is read or written.

Arithmetic
----------
Products and additions are in the dtype of C, with these rules. A float16 or bfloat16 C is read, accumulated in float32
over all of ``k``, and rounded once when it is written. Integers of up to 32 bits wrap around; 64-bit accumulators
must not overflow. Operands are converted to that dtype first (exactly, for every narrower type). The sum runs over
``k`` in ascending order; multiply and add may be fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_rows import FEW_ROWS, dot_rows, following_rows
from tile_core.cpu.packing import BLOCK, converted, fill_transposed, needs_conversion, registers, transposed
from tile_core.cpu.share_packing import packing
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
from tile_core.ops.gemm import accumulator
from tile_core.records import dataclass

__all__ = ["Tile2D", "few_rows", "micro_gemm"]


def micro_gemm(
    a: Tile2D,
    b: Tile2D,
    c: Tile2D,
    m: int,
    n: int,
    k: int,
    *,
    isa: Isa,
    clear: Expr = False,
    stored_rows: Expr | None = None,
) -> Stmt:
    """Make the statement ``C = (clear ? 0 : C) + A @ B``.

    Parameters
    ----------
    a, b, c
        Matrices of ``m`` x ``k``, ``k`` x ``n`` and ``m`` x ``n`` elements. ``c`` overlaps neither of the others.
    m, n, k
        Static sizes, each at least 1.
    isa
        The CPU to generate code for.
    clear
        A bool, or a boolean expression that is evaluated where the statement runs. When true, C is not used.
    stored_rows
        The number of rows of B's buffer, if B is a part of each row there: the next rows are then prefetched. For a
        transposed B these are the product's columns.

    Returns
    -------
    Stmt
        A statement that contains the allocations of its scratch. It needs VectorizeLoop, and C's dtype may need
        BF16ComputeLegalize; it has no guards.
    """
    if c.transposed:
        a, b, c, m, n, stored_rows = b.flipped(), a.flipped(), c.flipped(), n, m, None
    acc = accumulator(c.dtype)
    plain = m == 1 and not b.transposed and b.load is None
    prefetched_rows = stored_rows if plain and LEAST_RUN <= n * bits_of(b.dtype) <= PAGE else None
    in_order_of_memory = not needs_conversion(b, acc) and _is_one_strip(m, n, acc, isa)
    whole = c.dtype != acc or (m <= FEW_ROWS and (b.transposed or in_order_of_memory))
    split = k if whole else _depth(k, m, prefetched_rows is not None)
    near = None if prefetched_rows is not None or b.load is not None or m > FEW_ROWS else stored_rows
    if split == k:
        return _block(_Call(a, b, c, m, n, k, acc, isa, clear, stored_rows=near))

    def part(start: Expr, depth: int, first: Expr) -> Stmt:
        rows = b.window(start, 0)
        jump = None if prefetched_rows is None or depth < split else _jump(rows.row0, split, prefetched_rows)
        return _block(_Call(a.window(0, start), rows, c, m, n, depth, acc, isa, first, jump, near))

    return in_order(k, split, clear, part)


def in_order(k: int, split: int, clear: bool, part: Callable[[Expr, int, Expr], Stmt]) -> Stmt:
    """Add up chunks of ``k``, of ``split`` products each, in a loop and a remainder.

    Only the first chunk clears C.
    """

    def whole(index: Var) -> Stmt:
        first = clear
        if clear is not False and not isinstance(index, int):
            first = index == 0 if clear is True else tirx.And(index == 0, clear)
        return part(times(index, split), split, first)

    statements = [loop("kb", k // split, whole)]
    if k % split:
        statements.append(part(k - k % split, k % split, False))
    return sequence(*statements)


@dataclass(frozen=True)
class _Call:
    a: Tile2D
    b: Tile2D
    c: Tile2D
    m: int
    n: int
    k: int
    acc: str
    isa: Isa
    clear: Expr
    #: Prefetch distance in rows.
    jump: Expr | None = None
    #: Rows of the buffer up to which rows behind the product's own are prefetched.
    stored_rows: Expr | None = None


@dataclass(frozen=True)
class Strips:
    """Strips of ``width`` columns from ``start``; each is covered by ``vectors`` (offset, lanes)."""

    start: int
    count: int
    width: int
    vectors: tuple[tuple[int, int], ...]


def _block(call: _Call) -> Stmt:
    if call.b.transposed and call.m <= FEW_ROWS and call.n > 1 and call.k > 1:
        return _dots(call)
    if _is_flipped(call):
        return _flipped(call)
    prepared, call = _prepare(call)
    return sequence(*prepared, *(_strips(call, strips) for strips in columns(call.m, call.n, call.acc, call.isa)))


def _dots(call: _Call) -> Stmt:
    """Return the product as reductions along the rows of B as stored."""
    statements: list[Stmt] = []
    a, b = call.a, call.b
    if a.transposed:
        made, a = transposed(a, call.m, call.k, call.acc, call.isa, "a_panel")
        statements += made
    elif needs_conversion(a, call.acc):
        made, a = converted(a, call.m, call.k, call.acc, call.isa, "a_panel")
        statements += made
    if b.load is not None:
        made, b = converted(b, call.k, call.n, call.acc, call.isa, "b_panel")
        statements += made
    product = dot_rows(
        a, b, call.c, call.m, call.n, call.k, acc=call.acc, isa=call.isa, clear=call.clear, add=multiply_add,
        stored_rows=call.stored_rows,
    )  # fmt: skip
    return sequence(*statements, product)


def _is_flipped(call: _Call) -> bool:
    """Whether the transpose of C is multiplied: its operands need less packing than B."""
    a, b, c, m, n, k = call.a, call.b, call.c, call.m, call.n, call.k
    plain = c.dtype == call.acc and not (needs_conversion(a, call.acc) or needs_conversion(b, call.acc))
    vector = m == call.isa.lanes(bits_of(call.acc)) and m % BLOCK == 0 and n % BLOCK == 0
    return b.transposed and not c.transposed and plain and vector and m * (n + k) < n * k


def _flipped(call: _Call) -> Stmt:
    """Return the product by way of a panel of the transpose of C."""
    (allocation, begin), turned = transposed(call.c.flipped(), call.n, call.m, call.acc, call.isa, "c_panel")
    product = replace(call, a=call.b.flipped(), b=call.a.flipped(), c=turned, m=call.n, n=call.m)
    end = fill_transposed(call.c, turned.flipped(), call.m, call.n, BLOCK, call.acc)
    return sequence(allocation, *([] if call.clear is True else [begin]), _block(product), end)


def _prepare(call: _Call) -> tuple[list[Stmt], _Call]:
    """Pack the operands for the register tile: dtype of the accumulator, rows of B contiguous."""
    statements: list[Stmt] = []
    a, b = call.a, call.b
    if needs_conversion(a, call.acc):
        (allocation, *made), a = converted(a, call.m, call.k, call.acc, call.isa, "a_panel")
        statements += [allocation, packing(*made)]
    if b.transposed and call.n > 1:
        (allocation, *made), b = transposed(b, call.k, call.n, call.acc, call.isa, "b_panel")
        statements += [allocation, packing(*made)]
    elif b.load is not None or (needs_conversion(b, call.acc) and call.m > few_rows(b.dtype, call.isa)):
        (allocation, *made), b = converted(b, call.k, call.n, call.acc, call.isa, "b_panel")
        statements += [allocation, packing(*made)]
    return statements, replace(call, a=a, b=b)


def _strips(call: _Call, strips: Strips) -> Stmt:
    rows = rows_at_once(call.m, most_rows(call.isa, len(strips.vectors)))

    def strip(index: Expr) -> Stmt:
        j0 = plus(times(index, strips.width), strips.start)
        tiles = [loop("it", call.m // rows, lambda i: _register_tile(call, times(i, rows), j0, rows, strips.vectors))]
        if call.m % rows:
            tail = call.m % rows
            tiles.append(_register_tile(call, call.m - tail, j0, tail, strips.vectors))
        return sequence(*tiles)

    return loop("jt", strips.count, strip)


def _register_tile(call: _Call, i0: Expr, j0: Expr, rows: int, vectors: tuple[tuple[int, int], ...]) -> Stmt:
    """Compute C's tile of ``rows`` x ``vectors`` at ``(i0, j0)``, over all k."""
    a, b, c, acc = call.a, call.b, call.c, call.acc
    allocation, tile = registers(rows * sum(lanes for _, lanes in vectors), acc, "acc")
    cells, position = [], 0
    for r in range(rows):
        for offset, lanes in vectors:
            cells.append((r, offset, lanes, [ramp(position, lanes)]))
            position += lanes

    def at(matrix: Tile2D, i: Expr, j: Expr, lanes: int) -> list[Expr]:
        where = matrix.at(i, j)
        return [*where[:-1], ramp(where[-1], lanes)]

    def begin(r: int, offset: int, lanes: int) -> Expr:
        empty = splat(zero(acc), lanes)
        if call.clear is True:
            return empty
        held = cast(tirx.BufferLoad(c.buffer, at(c, plus(i0, r), plus(j0, offset), lanes)), c.dtype, acc, lanes)
        return held if call.clear is False else tirx.Select(splat(call.clear, lanes), empty, held)

    def multiply(p: Expr) -> Stmt:
        stores = []
        for r, offset, lanes, slot in cells:
            if r == 0 and call.jump is not None and offset * bits_of(b.dtype) % CACHE_LINE == 0:
                stores.append(prefetch(b.buffer, b.at(plus(p, call.jump), plus(j0, offset))))
            if r == 0 and call.stored_rows is not None and offset * bits_of(b.dtype) % CACHE_LINE == 0:
                width = call.n * bits_of(b.dtype)
                stores += following_rows(b, p, plus(j0, offset), 1, width, call.stored_rows)
            x = splat(tirx.BufferLoad(a.buffer, a.at(plus(i0, r), p)), lanes)
            y = cast(tirx.BufferLoad(b.buffer, at(b, p, plus(j0, offset), lanes)), b.dtype, acc, lanes)
            stores.append(tirx.BufferStore(tile, multiply_add(tirx.BufferLoad(tile, slot), x, y, acc, lanes), slot))
        return sequence(*stores)

    first = [tirx.BufferStore(tile, begin(r, offset, lanes), slot) for r, offset, lanes, slot in cells]
    last = [
        tirx.BufferStore(
            c.buffer,
            cast(tirx.BufferLoad(tile, slot), acc, c.dtype, lanes),
            at(c, plus(i0, r), plus(j0, offset), lanes),
        )
        for r, offset, lanes, slot in cells
    ]
    return sequence(allocation, *first, loop("p", call.k, multiply), *last)


def multiply_add(total: Expr, x: Expr, y: Expr, dtype: str, lanes: int) -> Expr:
    """``total + x * y``; 32-bit integers wrap around."""
    if dtype not in ("int32", "uint32"):
        return total + x * y
    # TVM marks 32-bit integer arithmetic as never overflowing. In 64 unsigned bits none does, and LLVM narrows the
    # operations back to 32 bits, without that mark.
    narrow, wide = vector_dtype(dtype, lanes), vector_dtype("uint64", lanes)
    bits = vector_dtype("uint32", lanes)

    def widened(value: Expr) -> Expr:
        return tirx.Cast(wide, tirx.Cast(bits, value))

    product = tirx.Cast(narrow, widened(x) * widened(y))
    return tirx.Cast(narrow, widened(total) + widened(product))


# Rows of a register tile: more would only add broadcasts.
MOST_ROWS = 12
# The part of k that is multiplied at a time, so that a strip of B stays in the first-level cache.
DEEPEST, SHALLOWEST = 384, 128
# The same for products of a few rows: B is read once, in runs of this many rows side by side.
RUNS = 8
# The same for one row of A, where each row of B continues beyond the product. At the end of each run the processor's
# own prefetcher loses its way: fewer rows are read, while the next ones are fetched.
SHORT_RUNS = 4
# Bits in a run for which that pays. Beyond a page the prefetcher begins anew in any case; short runs need no more
# requests to memory, there are too many already.
LEAST_RUN, PAGE = 2**13, 2**15
# Bits of memory that one access fetches.
CACHE_LINE = 512


def _depth(k: int, m: int, short: bool) -> int:
    if m <= FEW_ROWS:
        return min(k, SHORT_RUNS if short else RUNS)
    if k <= DEEPEST:
        return k
    return next((d for d in range(DEEPEST, SHALLOWEST - 1, -1) if k % d == 0), 256)


def _is_one_strip(m: int, n: int, acc: str, isa: Isa) -> bool:
    """Whether all columns have accumulators at once: B is read in order."""
    strips = columns(m, n, acc, isa)
    return len(strips) == 1 and strips[0].count == 1


def _jump(row: Var, run: int, stored: Expr) -> Expr:
    """Return the distance to the next run of rows, inside of the matrix."""
    left, stored = nodes.as_int(row), nodes.as_int(stored)
    if isinstance(left, int) and isinstance(stored, int):
        return min(run, stored - left - run)
    if isinstance(left, int):
        left = nodes.int_const(left, nodes.dtype_of(stored))
    if isinstance(stored, int):
        stored = nodes.int_const(stored, nodes.dtype_of(left))
    if nodes.dtype_of(left) != nodes.dtype_of(stored):
        return None
    return tirx.min(nodes.int_const(run, nodes.dtype_of(left)), stored - left - run)


def few_rows(dtype: str, isa: Isa) -> int:
    """Return the number of rows up to which converting B at each read beats packing."""
    return 4 if dtype == "float16" and not isa.fp16_conversion else 16


def most_rows(isa: Isa, vectors: int) -> int:
    """Return the rows of a register tile, beside B, a broadcast and a product.

    With fma the product needs no register.
    """
    return max(1, min((isa.registers - vectors - (1 if isa.fma else 2)) // vectors, MOST_ROWS))


def rows_at_once(m: int, limit: int) -> int:
    if m <= limit:
        return m
    return next((r for r in range(limit, limit * 2 // 3 - 1, -1) if m % r == 0), limit)


def columns(m: int, n: int, acc: str, isa: Isa) -> list[Strips]:
    """Return the columns of a product with ``m`` rows as strips of vectors."""
    lanes = isa.lanes(bits_of(acc))
    if n < lanes:
        half = 1 << (n.bit_length() - 1)
        return [Strips(0, 1, n, ((0, half),) if n == half else ((0, half), (n - half, half)))]
    total, most = -(-n // lanes), isa.registers // 8
    if m <= 2:
        most *= 2
    exact = n % lanes == 0
    strips = -(-total // most)
    each = -(-total // strips)
    last = total - each * (strips - 1)
    if last == each and exact:
        return [Strips(0, strips, each * lanes, tuple((v * lanes, lanes) for v in range(each)))]
    if last < 2 and strips > 1:
        strips, last = strips - 1, last + each
    start = each * lanes * (strips - 1)
    edge = tuple((min(v * lanes, n - start - lanes), lanes) for v in range(last))
    whole = [Strips(0, strips - 1, each * lanes, tuple((v * lanes, lanes) for v in range(each)))]
    return [*(whole if strips > 1 else []), Strips(start, 1, n - start, edge)]
