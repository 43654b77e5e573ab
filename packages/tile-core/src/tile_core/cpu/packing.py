"""Scratch panels of the block GEMM: matrices converted, or transposed, once per call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.attributes import IN_REGISTERS
from tile_core.cpu.isa import Isa
from tile_core.cpu.tile2d import Tile2D, bits_of, cast, element_dtype, loop, plus, ramp, sequence, times, vector_dtype
from tile_core.numerics.build import bits_of as bits_of_float


def needs_conversion(tile: Tile2D, dtype: str) -> bool:
    """Whether the elements of ``tile`` are not plain values of ``dtype`` in memory."""
    return tile.load is not None or tile.dtype != dtype


def converted(tile: Tile2D, rows: int, cols: int, dtype: str, isa: Isa, name: str) -> tuple[list[Stmt], Tile2D]:
    """Copy a ``rows`` x ``cols`` matrix into a panel of ``dtype`` in its storage order.

    Returns
    -------
    tuple
        The statements that allocate and fill the panel, and the panel.
    """
    allocation, panel = new_panel(tile, rows, cols, dtype, name)
    return [allocation, fill(panel, tile, rows, cols, dtype, isa)], panel


def new_panel(tile: Tile2D, rows: int, cols: int, dtype: str, name: str) -> tuple[Stmt, Tile2D]:
    """Return the allocation of a panel in a matrix's storage order, and the panel."""
    if tile.transposed:
        (allocation,), panel = _panel(cols, rows, dtype, name)
        return allocation, panel.flipped()
    (allocation,), panel = _panel(rows, cols, dtype, name)
    return allocation, panel


def fill(panel: Tile2D, tile: Tile2D, rows: int, cols: int, dtype: str, isa: Isa) -> Stmt:
    """Return the copy of a matrix into a panel of its storage order."""
    if tile.transposed:
        return fill(panel.flipped(), tile.flipped(), cols, rows, dtype, isa)
    return loop("row", rows, lambda i: copy_row(panel, tile, i, cols, dtype, isa))


def transposed(tile: Tile2D, rows: int, cols: int, dtype: str, isa: Isa, name: str) -> tuple[list[Stmt], Tile2D]:
    """Copy a transposed ``rows`` x ``cols`` matrix into a row-major panel of ``dtype``.

    Square blocks go through registers: rows of the stored matrix are read, exchanged in log2(size) steps of
    two-input shuffles and written as rows of the panel. The last block of a row overlaps its neighbour.
    """
    statements, panel = _panel(rows, cols, dtype, name)
    size = min(isa.lanes(bits_of(dtype)), BLOCK)
    while size > min(rows, cols):
        size //= 2
    if size < 4:
        return [*statements, _scalar_transpose(panel, tile, rows, cols, dtype)], panel

    return [*statements, fill_transposed(panel, tile, rows, cols, size, dtype)], panel


def fill_transposed(panel: Tile2D, tile: Tile2D, rows: int, cols: int, size: int, dtype: str) -> Stmt:
    """Copy a transposed matrix into a row-major one, by blocks of ``size`` rows and columns."""

    def block(i: Expr, j: Var) -> Stmt:
        i0, j0 = _clamped(i, size, rows), _clamped(j, size, cols)
        return _block_transpose(panel, tile.window(i0, j0), i0, j0, size, dtype)

    return loop("jb", -(-cols // size), lambda j: loop("ib", -(-rows // size), lambda i: block(i, j)))


def copy_row(panel: Tile2D, tile: Tile2D, i: Expr, cols: int, dtype: str, isa: Isa) -> Stmt:
    """Copy row ``i`` of ``cols`` elements in vectors; the last one overlaps its neighbour."""
    lanes = isa.lanes(bits_of(dtype))
    while lanes > cols:
        lanes //= 2

    def piece(start: Expr) -> Stmt:
        def one(v: Expr) -> Stmt:
            j = plus(start, v)
            return tirx.BufferStore(panel.buffer, converted_read(tile, i, j, dtype), panel.at(i, j))

        return loop("v", lanes, one, tirx.ForKind.VECTORIZED)

    whole = loop("col", cols // lanes, lambda v: piece(times(v, lanes)))
    return sequence(whole, piece(cols - lanes)) if cols % lanes else whole


def converted_read(tile: Tile2D, i: Expr, j: Expr, dtype: str) -> Expr:
    """Scalar value ``(i, j)`` of ``tile`` as ``dtype``."""
    value = tile.read(i, j)
    return cast(value, element_dtype(value), dtype)


def bfloat16_codes(tile: Tile2D, rows: int, cols: int, isa: Isa, name: str) -> tuple[list[Stmt], Tile2D]:
    """Copy a matrix with a ``load`` of float32 into a panel of codes of bfloat16.

    Elements are values of bfloat16.

    Returns
    -------
    tuple
        As of ``converted``; no statements and the matrix itself if it has no ``load``.
    """
    return ([], tile) if tile.load is None else converted(bfloat16_code(tile), rows, cols, "uint16", isa, name)


def bfloat16_code(tile: Tile2D) -> Tile2D:
    """Return a matrix whose ``load`` returns codes instead of float32."""
    sixteen = tirx.IntImm("uint32", 16)
    return replace(tile, load=lambda i, j: tirx.Cast("uint16", bits_of_float(tile.read(i, j)) >> sixteen))


def registers(count: int, dtype: str, name: str) -> tuple[Stmt, BufferVar]:
    """A local buffer that LLVM promotes to registers: its allocation, and the buffer.

    Without the annotation TVM takes local buffers from the workspace heap, where nothing is promoted.
    """
    buffer = tirx.decl_buffer((count,), dtype, name, scope="local", layout=None)
    return tirx.AllocBuffer(buffer, {IN_REGISTERS: tirx.IntImm("int32", 1)}), buffer


# Side of the square blocks that are transposed in registers: 16 is no faster, and takes longer to compile.
BLOCK = 8


def _panel(rows: int, cols: int, dtype: str, name: str) -> tuple[list[Stmt], Tile2D]:
    buffer = tirx.decl_buffer((rows, cols), dtype, name, scope="global", layout=None)
    return [tirx.AllocBuffer(buffer)], Tile2D(buffer, (), 0, 0, False, dtype)


def _clamped(index: Expr, size: int, extent: int) -> Expr:
    start = times(index, size)
    if isinstance(start, int):
        return min(start, extent - size)
    return tirx.min(start, extent - size) if extent % size else start


def _scalar_transpose(panel: Tile2D, tile: Tile2D, rows: int, cols: int, dtype: str) -> Stmt:
    def one(i: Var, j: Var) -> Stmt:
        return tirx.BufferStore(panel.buffer, converted_read(tile, i, j, dtype), panel.at(i, j))

    return loop("col", cols, lambda j: loop("row", rows, lambda i: one(i, j)))


def _block_transpose(panel: Tile2D, source: Tile2D, i0: Expr, j0: Expr, size: int, dtype: str) -> Stmt:
    """Transpose one ``size`` x ``size`` block of ``source`` to ``(i0, j0)`` of the panel."""

    def read(r: int, block: BufferVar) -> Stmt:
        # Stored row r is logical column r.
        def one(v: Var) -> Stmt:
            return tirx.BufferStore(block, converted_read(source, v, r, dtype), [plus(v, r * size)])

        return loop("v", size, one, tirx.ForKind.VECTORIZED)

    def write(r: int, row: Expr) -> Stmt:
        indices = panel.at(plus(i0, r), j0)
        return tirx.BufferStore(panel.buffer, row, [*indices[:-1], ramp(indices[-1], size)])

    return block_transpose(read, write, size, dtype)


def block_transpose(
    read: Callable[[int, BufferVar], Stmt], write: Callable[[int, Expr], Stmt], size: int, dtype: str
) -> Stmt:
    """Transpose one block in registers.

    Parameters
    ----------
    read
        From a row's number to the statement that stores its elements to a buffer, at ``size`` times the number.
    write
        From a number and the row of that number in the transposed block to the statement that stores it.
    """
    allocation, block = registers(size * size, dtype, "block")

    def row(r: int) -> list[Expr]:
        return [ramp(r * size, size)]

    statements = [allocation, *(read(r, block) for r in range(size))]
    distance = size // 2
    while distance:
        # Exchange the off-diagonal quarters of every square of side 2 * distance.
        low = [v if not v & distance else size + v - distance for v in range(size)]
        high = [v + distance if not v & distance else size + v for v in range(size)]
        for r in (r for r in range(size) if not r & distance):
            pair = [tirx.BufferLoad(block, row(r)), tirx.BufferLoad(block, row(r + distance))]
            first, second = (tirx.Var(name, vector_dtype(dtype, size)) for name in ("first", "second"))
            statements += [tirx.Bind(first, tirx.Shuffle(pair, low)), tirx.Bind(second, tirx.Shuffle(pair, high))]
            statements += [tirx.BufferStore(block, first, row(r)), tirx.BufferStore(block, second, row(r + distance))]
        distance //= 2
    return tirx.SeqStmt([*statements, *(write(r, tirx.BufferLoad(block, row(r))) for r in range(size))])
