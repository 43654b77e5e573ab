"""``gather`` and ``scatter`` as nests whose columns are split between adjacent threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.lowering.variant import Variant
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.gather import row_number

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall


class GatherElements(Variant):
    """Gather all elements in one nest of rows and columns, with vectors along columns."""

    op = "gather"
    priority = 10

    def __init__(self, owner: str) -> None:
        self.name = f"{owner}.gather.elements"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the nest."""
        src, rows, dst = call.args
        count, columns = _count(rows), [e for e in src.extents[1:] if e != 1]

        def body(i: Expr, *wide: Var) -> Stmt:
            row = nodes.fresh("row", "int64")
            exists = tirx.all(row >= 0, row < height_of(src))
            value = nodes.load(src.buffer, row_index(src, row, list(wide)))
            found = tirx.if_then_else(exists, convert(value, dst.dtype), nodes.zero(dst.dtype))
            to = _cell(dst, count, i, list(wide))
            return nodes.seq([tirx.Bind(row, row_number(rows, i)), nodes.store(dst.buffer, found, to, call.span)])

        return nodes.nest([count, *columns], body, "parallel", span=call.span)


class ScatterColumns(Variant):
    """Scatter columns in parallel and rows in order.

    The last of equal rows wins, without a barrier between rows.
    """

    op = "scatter"
    priority = 10

    def __init__(self, owner: str) -> None:
        self.name = f"{owner}.scatter.columns"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the nest."""
        src, dst, rows = call.args
        count, columns = _count(rows), [e for e in dst.extents[1:] if e != 1]

        def column(*wide: Var) -> Stmt:
            i, row = nodes.fresh("i"), nodes.fresh("row", "int64")
            value = convert(nodes.load(src.buffer, _cell(src, count, i, list(wide))), dst.dtype)
            store = nodes.store(dst.buffer, value, row_index(dst, row, list(wide)), call.span)
            exists = tirx.all(row >= 0, row < height_of(dst))
            body = nodes.seq([tirx.Bind(row, row_number(rows, i)), tirx.IfThenElse(exists, store, None, call.span)])
            return nodes.for_loop(i, count, body, span=call.span)

        return nodes.nest(columns or [1], lambda *c: column(*(c if columns else ())), "parallel", span=call.span)


def _count(rows: View) -> int:
    return 1 if rows.shape == (1,) else int(rows.shape[0])


def height_of(table: View) -> Expr:
    """Return how many rows a table has."""
    return nodes.cast(nodes.int_const(0) + table.extents[0], "int64")


def row_index(table: View, row: Var, wide: Sequence[Expr]) -> list[Expr]:
    """Return the buffer index of a row's element, from columns of extents above 1."""
    first = table.mins[0]
    corner = row if isinstance(first, int) and first == 0 else nodes.cast(nodes.int_const(0) + first, "int64") + row
    rest = iter(wide)
    columns = [next(rest) if e != 1 else nodes.int_const(0) for e in table.extents[1:]]
    return [corner, *table.at([0, *columns])[1:]]


def _cell(tile: View, count: int, i: Expr, wide: list[Var]) -> list[Expr]:
    index = ([i] if count != 1 else []) + wide
    return tile.spread(index or [nodes.int_const(0)])
