"""``T.gather`` and ``T.scatter``: whole rows by an index vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.errors.ops import DuplicateRows, RowsOperand, ShapesDiffer
from tile_core.ir import attributes, nodes
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.values.allocation import allocate
from tile_core.values.value import Buffer, Region, Tile, Value


def gather(src: Tile, rows: Tile | Sequence[int], dst: Tile) -> None:
    """Copy rows: ``dst[i, ...] = src[rows[i], ...]``.

    Parameters
    ----------
    src
        Buffer or slice of at least two dimensions whose first is the row; or a corner ``src[0, column]``, whose
        columns come from ``dst``.
    rows
        Row numbers, relative to ``src``: a 1-D buffer or slice of integers of any length, or a list of Python ints.
    dst
        Tile of shape (len(rows), columns...).

    Raises
    ------
    RowsOperand, ShapesDiffer, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    A row outside ``src`` (negative ones too) reads as zero.

    Examples
    --------
    >>> T.gather(A, n, F)
    """
    to = operands.as_region("gather", "dst", dst)
    source = corner_table("gather", "src", src, to)
    index = _rows("gather", rows)
    _check("gather", "dst", to, source, index)
    operands.moves_exactly("gather", source, to)
    operands.emit("gather", [source, index, to], [to])


def scatter(src: Tile, dst: Tile, rows: Tile | Sequence[int]) -> None:
    """Write rows: ``dst[rows[i], ...] = src[i, ...]`` (see ``gather``).

    Notes
    -----
    A row outside ``dst`` is dropped. Rows are written in the order of ``rows``: the last of equal ones in one call
    wins; a constant list with equal ones is refused.

    Examples
    --------
    >>> T.scatter(F, B, n)
    """
    source = operands.as_region("scatter", "src", src)
    to = corner_table("scatter", "dst", dst, source)
    if isinstance(rows, (list, tuple)):
        for at, row in enumerate(rows):
            if row in rows[:at]:
                raise DuplicateRows(row=row)
    index = _rows("scatter", rows)
    _check("scatter", "src", source, to, index)
    operands.moves_exactly("scatter", source, to)
    attrs = {attributes.DISTINCT: 1} if isinstance(rows, (list, tuple)) else None
    operands.emit("scatter", [source, to, index], [to], attrs)


def corner_table(op: str, role: str, x: Tile, tile: Region) -> Region:
    """Return the table's region; a corner takes its columns from the tile."""
    if isinstance(x, Value) and x.element is not None:
        buffer, corner = x.element
        columns = list(tile.extents[1:])[-(len(corner) - 1) :] if len(corner) > 1 else []
        columns[:0] = [1] * (len(corner) - 1 - len(columns))
        first = corner[0]
        height = buffer.shape[0] if isinstance(first, int) and first == 0 else buffer.shape[0] - first
        return Region(buffer, corner, [height, *columns])
    return operands.as_region(op, role, x)


def _rows(op: str, rows: Tile | Sequence[int]) -> Region:
    if isinstance(rows, (list, tuple)):
        if not rows or not all(isinstance(r, int) and not isinstance(r, bool) and -(2**31) <= r < 2**31 for r in rows):
            raise RowsOperand(op=op, found=f"{rows!r}")
        table = allocate(op, (len(rows),), "int32", "shared", "shared")
        for at, row in enumerate(rows):
            table[at] = row
        return table.whole()
    if isinstance(rows, Value) or not isinstance(rows, (Buffer, Region)):
        raise RowsOperand(
            op=op, found="a scalar" if isinstance(rows, Value) else f"an object of type {type(rows).__name__}"
        )
    region = operands.as_region(op, "rows", rows)
    if not region.dtype.is_integer or len(operands.static_shape(op, "rows", region)) != 1:
        raise RowsOperand(op=op, found=f"{region.dtype} of shape {region.shape}")
    return region


def _check(op: str, role: str, tile: Region, table: Region, rows: Region) -> None:
    static = operands.static_shape(op, role, tile)
    count = operands.static_shape(op, "rows", rows)[0]
    row = Region(table.buffer, table.mins, [1, *table.extents[1:]])
    columns = operands.static_shape(op, "dst" if role == "src" else "src", row)
    want = tuple(e for e in (count, *columns) if e != 1) or (1,)
    if static != want:
        raise ShapesDiffer(op=op, a=role, b="rows and columns", shape_a=static, shape_b=want)


def row_number(rows: View, i: Expr) -> Expr:
    """Return the number of row ``i``."""
    return nodes.cast(nodes.load(rows.buffer, rows.spread([i])), "int64")


def _table_index(table: View, row: Var, columns: list[Expr]) -> list[Expr]:
    first = table.mins[0]
    corner = row if isinstance(first, int) and first == 0 else nodes.cast(nodes.int_const(0) + first, "int64") + row
    return [corner, *table.at([0, *columns])[1:]]


def _loops(
    call: OpCall,
    tile: View,
    table: View,
    rows: View,
    inside: Callable[[Expr, list[Expr]], Stmt],
    outside: Callable[[Expr, list[Expr]], Stmt] | None,
) -> Stmt:
    """Loop over rows in order and columns, with ``inside`` for existing rows, else ``outside``.

    Both get the index in the table and the index in the tile; ``outside`` may be ``None`` for nothing to do.
    """
    extents = table.extents[1:]
    count = 1 if rows.shape == (1,) else rows.shape[0]

    def body(i: Expr) -> Stmt:
        row = nodes.fresh("row", "int64")
        height = nodes.cast(nodes.int_const(0) + table.extents[0], "int64")

        def columns(step: Callable[[Expr, list[Expr]], Stmt]) -> Stmt:
            def cell(*at: Expr) -> Stmt:
                wide = [c for c, e in zip(at, extents, strict=True) if e != 1]
                index = ([i] if count != 1 else []) + wide
                return step(_table_index(table, row, list(at)), tile.spread(index or [nodes.int_const(0)]))

            return nodes.nest(extents, cell, "parallel", span=call.span)

        exists = tirx.all(row >= 0, row < height)
        other = None if outside is None else columns(outside)
        branch = tirx.IfThenElse(exists, columns(inside), other, call.span)
        return nodes.seq([tirx.Bind(row, row_number(rows, i)), branch])

    return nodes.nest([count], body, "serial", span=call.span)


def gather_meaning(call: OpCall) -> Stmt:
    """Return the reference semantics: dst = src[rows[i]], or 0 outside the table."""
    src, rows, dst = call.args[:3]

    def inside(source: list[Expr], to: list[Expr]) -> Stmt:
        return nodes.store(dst.buffer, convert(nodes.load(src.buffer, source), dst.dtype), to, call.span)

    def outside(source: list[Expr], to: list[Expr]) -> Stmt:
        return nodes.store(dst.buffer, nodes.zero(dst.dtype), to, call.span)

    return _loops(call, dst, src, rows, inside, outside)


def scatter_meaning(call: OpCall) -> Stmt:
    """Return the reference semantics: dst[rows[i]] = src in order, within the table."""
    src, dst, rows = call.args

    def inside(to: list[Var], source: list[Expr]) -> Stmt:
        return nodes.store(dst.buffer, convert(nodes.load(src.buffer, source), dst.dtype), to, call.span)

    return _loops(call, src, dst, rows, inside, None)


GATHER = TileOp("gather", reads=(0, 1), writes=(2,), meaning=gather_meaning)
SCATTER = TileOp("scatter", reads=(0, 2), writes=(1,), meaning=scatter_meaning)
