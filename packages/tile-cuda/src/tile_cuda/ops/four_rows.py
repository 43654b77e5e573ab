"""Gathers and scatters by TMA copies of four rows each; remaining rows are copied singly.

One thread issues them. The tensor map has boxes of one row, as the instructions need, so that the same map serves for
single rows. PTX ISA, "cp.async.bulk.tensor": ``tile::gather4`` and ``tile::scatter4``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ALIGN, ASKED_LAYOUT, ASYNC, COMPLETION, DISTINCT, LAYOUT, VARIANT
from tile_core.layout import LayoutMap
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import Aligned, factor
from tile_core.simt.pipelining.plan import TRANSACTIONS
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import REASON, SLOT, STORE, SWIZZLE
from tile_cuda.ops.boxes import CHUNK, LINE, MOST, Panel, described, of_map, read_by_products, row_lengths, same_layout
from tile_cuda.ops.store_bulk import LASTS
from tile_cuda.ptx.bulk import gather_name, load_name, scatter_name, store_name
from tile_cuda.target import GATHER4, SCATTER4
from tile_cuda.vocabulary.four_rows import FOUR, GATHER, ROW_SCOPES, ROW_TYPES, SCATTER
from tile_cuda_runtime.tensor_map import has_type

if TYPE_CHECKING:
    from tile_core.context import Context

_MOST_COPIES = 64
"""Copies of one gather or scatter: one thread issues all of them."""
_BEYOND = 2**31 - 1
"""A row that no tensor has whose rows are counted by 32 bits: what is stored there is dropped."""


@dataclass(frozen=True)
class RowPanel:
    """How a tile of rows is cut into copies.

    Attributes
    ----------
    rows, columns
        Of the tile.
    size
        Bytes of an element.
    swizzle
        Bytes of a row over which chunks are permuted; 0 for whole rows in plain order.
    """

    rows: int
    columns: int
    size: int
    swizzle: int

    @property
    def width(self) -> int:
        """Elements of a row that one copy moves."""
        return self.swizzle // self.size if self.swizzle else self.columns

    @property
    def box(self) -> tuple[int, int]:
        """The boxes of the map: single rows."""
        return 1, self.width

    @property
    def panel(self) -> Panel:
        """The tile as boxes of a dense tensor leave it."""
        return Panel((self.rows, self.columns), (self.rows, self.columns), self.size, self.swizzle)

    def layout(self, shape: Sequence[int]) -> LayoutMap:
        """Return the order of the elements of a tile of some shape in shared memory."""
        return replace(self.panel, shape=tuple(shape)).layout

    @property
    def align(self) -> int:
        """Alignment of the tile in bytes: where the pattern of its swizzle repeats."""
        return self.panel.align

    @property
    def copies(self) -> int:
        """Number of copies."""
        return self.columns // self.width * (self.rows // FOUR + self.rows % FOUR)

    def broken(self) -> str:
        """Return a rule that copies of rows would break; empty if there is none."""
        row = self.width * self.size
        if self.width > MOST:
            return f"rows of {self.width} elements are longer than the {MOST} of a box"
        if row % CHUNK:
            return f"rows of {row} bytes are not a multiple of {CHUNK}"
        offsets = [at * row for at in self.starts()]
        wrong = next((p for p in offsets if p % LINE), None)
        if wrong is not None:
            return f"copies begin at multiples of {LINE} bytes of shared memory; one of rows of {row} bytes at {wrong}"
        if self.copies > _MOST_COPIES:
            return f"{self.rows} rows of {self.columns} elements take {self.copies} copies; {_MOST_COPIES} at most"
        return ""

    def starts(self) -> Iterator[int]:
        """Yield the row in units of a copy's width before each copy, in memory order."""
        for panel in range(self.columns // self.width):
            for row in self.groups():
                yield panel * self.rows + row

    def groups(self) -> Iterator[int]:
        """Yield the first row of each group of four, then the remaining rows."""
        whole = self.rows // FOUR * FOUR
        yield from range(0, whole, FOUR)
        yield from range(whole, self.rows)

    def first(self, panel: int, row: int) -> list[int]:
        """Return the index of a copy's first element, which a swizzle moves."""
        line = (panel * self.rows + row) * self.width * self.size // LINE
        chunk = line % (self.swizzle // CHUNK) if self.swizzle else 0
        column = panel * self.width + chunk * CHUNK // self.size
        return [row, column] if self.rows > 1 else [column]


def row_panels(
    shape: Sequence[int], dtype: str, asked: LayoutMap | None, lengths: Sequence[int], slot: bool
) -> Iterator[RowPanel | str]:
    """Yield the legal panels of a tile, the best first, or a rejection reason.

    Parameters
    ----------
    shape
        Of the tile, rows and columns or one row.
    asked
        The required layout of the tile, if it is decided.
    lengths
        The bytes that rows may have, the best first: see ``boxes.row_lengths``.
    slot
        Whether the tile is one of several in its buffer, each of which begins where the pattern repeats.
    """
    size, columns = DTYPES[dtype].bits // 8, shape[-1]
    rows = shape[0] if len(shape) > 1 else 1
    for swizzle in lengths:
        if swizzle and (columns * size % swizzle or rows == 1):
            continue
        found = RowPanel(rows, columns, size, swizzle)
        if asked is not None and not same_layout(asked, found.layout(shape)):
            yield f"no copy of rows has the layout of the tile: {asked}"
        elif slot and rows * columns * size % found.align:
            yield f"tiles of {rows * columns * size} bytes do not all begin at multiples of {found.align}"
        else:
            yield found.broken() or found


def can_copy_rows(call: OpCall, ctx: Context, aligned: Aligned, ranges: Analyzer) -> Accept | Reject:
    """Return whether copies of rows can implement a gather or scatter of the program.

    Parameters
    ----------
    call
        With the attribute ``ASKED_LAYOUT`` if the layout of its tile is decided, and ``SLOT`` if the tile is one of
        several in its buffer.
    aligned
        Guarantees of the launch about addresses and symbols.
    ranges
        Bounds of the variables around the call.

    Returns
    -------
    Accept or Reject
        With the layout of the tile in shared memory, its alignment, and the swizzle, as facts.
    """
    loads = call.name == "gather"
    if not ctx.capabilities.fact(GATHER4 if loads else SCATTER4):
        return Reject(f"the target has no copies of four rows {'to' if loads else 'out of'} shared memory")
    tile, tensor, rows = row_sides(call)
    for reason in _reasons(call, tile, tensor, rows, aligned):
        return Reject(reason)
    for reason in () if loads else _of_store(call, tensor, aligned, ranges):
        return Reject(reason)
    shape = tile.extents[1:] if call.attrs.get(SLOT) else tile.extents
    asked, several = call.attrs.get(ASKED_LAYOUT), int(call.attrs.get(SLOT, 0)) > 1
    lengths = row_lengths(call, tile)
    why = []
    for found in row_panels(shape, tile.dtype, asked, lengths, several):
        if isinstance(found, RowPanel):
            facts = {COMPLETION: TRANSACTIONS, LAYOUT: found.layout(shape), ALIGN: found.align, SWIZZLE: found.swizzle}
            return Accept(f"{found.copies} copies of rows of {found.width} elements", facts=facts)
        why.append(found)
    return Reject((why or ["it has no rows"])[-1] + read_by_products(lengths))


def row_sides(call: OpCall) -> tuple[View, View, View]:
    """Return the tile, the tensor and the row numbers."""
    first, second, third = call.args[:3]
    return (third, first, second) if call.name == "gather" else (first, second, third)


class FourRowGather(SimtVariant):
    """Rows of a tensor, which a barrier counts."""

    name = GATHER
    op = "gather"
    priority = 90
    option = "tma"
    legality = Legality(
        operands=("src", "rows", "dst"),
        scopes={"src": ("global",), "rows": ROW_SCOPES, "dst": ("shared",)},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_copy_rows`` has looked at."""
        if str(call.attrs.get(ASYNC)) != TRANSACTIONS:
            return Reject(str(call.attrs.get(REASON, "no barrier counts its bytes")))
        return Accept(_said(int(call.attrs[SWIZZLE])))

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the copies, which one thread issues."""
        tile, tensor, rows = row_sides(call)
        if call.block.count != 1:
            raise InternalError(stage="gather", detail=f"{call.block.count} threads issue one bulk copy")
        barrier = call.args[3]
        done = calls.address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        made = _Copies(call, tile, tensor, rows)
        parts: list[Stmt] = []
        for address, column, numbers in made.all(parts, lambda row: row):
            to = calls.address(tile.buffer, address, "w", calls.ASYNC_PROXY, calls.UNTIL_PHASE)
            name = gather_name() if len(numbers) == FOUR else load_name(2)
            parts.append(calls.execute(name, [to, made.map("r"), column, *numbers, done], call.span))
        return calls.step(nodes.seq(parts), call.span)


class FourRowScatter(SimtVariant):
    """Rows of a tensor that are written, one thread issuing the copies."""

    name = SCATTER
    op = "scatter"
    priority = 80
    option = "tma"
    legality = Legality(
        operands=("src", "dst", "rows"),
        scopes={"src": ("shared",), "dst": ("global",), "rows": ROW_SCOPES},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_copy_rows`` has looked at."""
        if STORE not in call.attrs:
            return Reject(str(call.attrs.get(REASON, "the option tma does not enable it")))
        return Accept(_said(int(call.attrs[SWIZZLE])))

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the copies and their group, which one thread issues."""
        tile, tensor, rows = row_sides(call)
        lasts = str(call.attrs[STORE]) == LASTS
        made = _Copies(call, tile, tensor, rows)
        parts: list[Stmt] = []
        for address, column, numbers in made.all(parts, _not_negative):
            until = calls.UNTIL_READ if lasts else ""
            source = calls.address(tile.buffer, address, "r", calls.ASYNC_PROXY, until)
            name = scatter_name() if len(numbers) == FOUR else store_name(2)
            parts.append(calls.execute(name, [source, made.map("w"), column, *numbers], call.span))
        parts += [calls.store_commit()] if lasts else [calls.store_commit(), calls.store_wait(stored=False)]
        body = nodes.seq(parts)
        if call.block.count > 1:
            body = tirx.IfThenElse(tirx.EQ(call.block.thread, nodes.int_const(0)), body, None, call.span)
        return calls.step(body, call.span)


class _Copies:
    """The operands of a call's copies."""

    def __init__(self, call: SimtCall, tile: View, tensor: View, rows: View) -> None:
        self.call, self.tile, self.tensor, self.rows = call, tile, tensor, rows
        count = int(tile.extents[-2]) if len(tile.extents) > 1 else 1
        self.panel = RowPanel(count, int(tile.extents[-1]), DTYPES[tensor.dtype].bits // 8, int(call.attrs[SWIZZLE]))

    def map(self, access: str) -> Call:
        """Return the tensor map as an operand."""
        corner = [nodes.int_const(0), nodes.int_const(0) + self.tensor.mins[1]]
        until = calls.UNTIL_STORED if access == "w" else ""
        corner_address = calls.address(self.tensor.buffer, corner, access, calls.ASYNC_PROXY, until)
        return described(self.tensor, self.panel, corner_address)

    def all(self, parts: list[Stmt], legal: object) -> Iterator[tuple[list[Expr], Expr, list[Expr]]]:
        """Yield address, column and rows of each copy; bindings of rows go to ``parts``."""
        panel = self.panel
        for row in panel.groups():
            whole = row < panel.rows // FOUR * FOUR
            numbers = []
            for i in range(row, row + FOUR if whole else row + 1):
                number = nodes.fresh("row", "int32")
                parts.append(tirx.Bind(number, self.number(i), self.call.span))
                numbers.append(legal(number))  # type: ignore[operator]
            for at in range(panel.columns // panel.width):
                column = nodes.int_const(0) + self.tensor.mins[1] + at * panel.width
                address = self.tile.spread(panel.first(at, row))
                yield address, self.call.ranges.simplify(column), numbers

    def number(self, i: int) -> Expr:
        """Return a row number; 0 beyond the end of the list, as the language defines."""
        index = self.rows.spread([nodes.int_const(i)])
        bounds = zip(index, nodes.shape_of(self.rows.buffer), strict=True)
        inside = [c for at, n in bounds for c in (at >= 0, at < n) if not self.call.ranges.can_prove(c)]
        loaded = nodes.cast(nodes.load(self.rows.buffer, index), "int32")
        return tirx.if_then_else(tirx.all(*inside), loaded, nodes.int_const(0)) if inside else loaded


def _said(swizzle: int) -> str:
    rows = f"rows of {swizzle} bytes" if swizzle else "plain rows"
    return f"{rows}; uncalibrated, since no device has recorded them"


def _not_negative(row: Expr) -> Expr:
    """Return a dropped row in place of a negative one, which stores may not have."""
    return tirx.Select(row < 0, nodes.int_const(_BEYOND), row)


def _reasons(call: OpCall, tile: View, tensor: View, rows: View, aligned: Aligned) -> Iterator[str]:
    """Yield reasons against copies of rows, whatever the layout; later ones assume the earlier conditions."""
    forced = call.attrs.get(VARIANT)
    if forced is not None and str(forced) not in (GATHER, SCATTER):
        yield f"it requests {forced}"
    if tensor.dtype != tile.dtype:
        yield f"it converts {tensor.dtype} and {tile.dtype}"
    if not has_type(tensor.dtype):
        yield f"no tensor map has elements of {tensor.dtype}"
    if len(tensor.extents) != 2:
        yield f"{tensor.name} has {len(tensor.extents)} dimensions; copies of rows take matrices"
    if rows.scope not in ROW_SCOPES:
        yield f"row numbers are in {rows.scope}, which the thread that copies cannot read"
    if rows.dtype not in ROW_TYPES:
        yield f"row numbers of {rows.dtype} are not all numbers of 32 bits"
    if nodes.as_int(tensor.mins[0]) != 0 or not tvm_ffi.structural_equal(
        nodes.int_const(0) + tensor.extents[0], nodes.int_const(0) + nodes.shape_of(tensor.buffer)[0]
    ):
        yield f"it takes a part of the rows of {tensor.name}; rows outside of that part may exist"
    if not isinstance(tensor.extents[1], int):
        yield "its extents are not known"
    inner = list(zip(tile.mins, tile.extents, nodes.shape_of(tile.buffer), strict=True))[bool(call.attrs.get(SLOT)) :]
    if any(nodes.as_int(low) != 0 or n != whole for low, n, whole in inner):
        yield f"it takes a part of {tile.name}"
    if len(inner) not in (1, 2) or tile.extents[-1] != tensor.extents[1]:
        yield f"{tile.name} is not a matrix of rows and columns"
    yield from of_map(tensor, aligned)


def _of_store(call: OpCall, tensor: View, aligned: Aligned, ranges: Analyzer) -> Iterator[str]:
    """Yield why rows cannot be stored by copies."""
    if DISTINCT not in call.attrs:
        yield "its rows may be equal, and then the last has to win; copies of rows have no order"
    height = nodes.shape_of(tensor.buffer)[0]
    if (height if isinstance(height, int) else 0) > _BEYOND or nodes.dtype_of(nodes.int_const(0) + height) != "int32":
        yield f"{tensor.name} has {height} rows, which are not known to be fewer than 2**31"
    row = factor(nodes.shape_of(tensor.buffer)[-1], aligned.divisors) * DTYPES[tensor.dtype].bits // 8
    if row % CHUNK:
        yield (
            f"rows of {tensor.name} have {row} bytes, or multiples of it; they are stored by whole {CHUNK} bytes, "
            f"also beyond the end of a row"
        )
    low = tensor.mins[1]
    if not ranges.can_prove(nodes.int_const(0, nodes.dtype_of(nodes.int_const(0) + low)) + low >= 0):
        yield f"it may begin before the first column of {tensor.name}; rows are stored from column 0 on"
