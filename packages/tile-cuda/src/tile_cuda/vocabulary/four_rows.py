"""Copies of four rows of a matrix with a guaranteed instruction: names added to ``T``.

Their semantics are those of ``T.gather`` and ``T.scatter`` of a corner. PTX ISA, "cp.async.bulk.tensor", the modes
``tile::gather4`` and ``tile::scatter4``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.dtypes import dtype
from tile_core.errors.ops import BadAttribute, BadElementType, DuplicateRows, NotATile, RowsOperand, ScopeNotAllowed
from tile_core.ir.attributes import DISTINCT, HINTS, VARIANT
from tile_core.ops import operands
from tile_core.ops.gather import corner_table
from tile_core.values import checks
from tile_core.values.allocation import allocate
from tile_core.values.value import Buffer, Region, Value, as_value
from tile_cuda.vocabulary.barriers import as_barrier, count_bytes

if TYPE_CHECKING:
    from tile_core.values.value import Index, Tile

#: Rows that an instruction copies.
FOUR = 4
#: Names of the variants that these functions force (``tile_cuda.ops.four_rows``).
GATHER, SCATTER = "cuda.gather.tma4", "cuda.scatter.tma4"
#: Types of row numbers, which are signed numbers of 32 bits to the instruction, and scopes that its thread can read.
ROW_TYPES = ("int32", "int16", "int8", "uint16", "uint8")
ROW_SCOPES = ("global", "shared", "local")

_EVICTIONS = ("evict_normal", "evict_first", "evict_last")


def tma_gather4(
    src: Buffer, dst: Tile, col: Index, rows: Tile | Sequence[Index], barrier: object = None, *,
    eviction_policy: str | None = None,
) -> None:  # fmt: skip
    """Gather four rows by one bulk copy: ``dst[i, j] = src[rows[i], col + j]``.

    Parameters
    ----------
    src
        A matrix in global memory: a parameter of two dimensions, whose rows are contiguous, begin at multiples of 16
        bytes, and are less than 2**40 bytes apart.
    dst
        A tile of shape (4, W) in shared memory, or one of several in its buffer: ``tiles[slot, :, :]``. Rows of W
        elements have a multiple of 16 bytes. Its element type is that of ``src``; its layout, the swizzle, is chosen
        by the compiler, or annotated.
    col
        The first column, at a multiple of 16 bytes of a row.
    rows
        Four row numbers in any order, which may repeat: integers, values known when the kernel runs, or a buffer or
        slice of four. Of 32 bits at most.
    barrier
        A barrier of ``T.alloc_barrier`` that counts the bytes, as for ``T.tma_copy``. Without it, what follows sees the
        result.
    eviction_policy
        ``"evict_normal"``, ``"evict_first"`` or ``"evict_last"``: a hint.

    Raises
    ------
    NotATile, BadAttribute, ScopeNotAllowed, BadElementType, RowsOperand, BadBarrier
        If the operands do not fit together.
    VariantRefused, VariantMissing
        When it is compiled: the instruction cannot copy it, with the rule that it breaks, or the target has none.

    Notes
    -----
    A row outside ``src`` (negative ones too) reads as zero, and so do columns outside.
    """
    op = "tma_gather4"
    located = None if barrier is None else as_barrier(op, barrier).located(op)
    tile, table = _sides(op, ("dst", dst), ("src", src), col)
    index, _ = _rows(op, rows)
    with operands.called("T.tma_gather4", "write T.gather"):
        operands.emit("gather", [table, index, tile], [tile], {VARIANT: GATHER, HINTS: _hints(op, eviction_policy)})
    if located is not None:
        count_bytes(*located)


def tma_scatter4(
    src: Tile, dst: Buffer, col: Index, rows: Tile | Sequence[Index], *, eviction_policy: str | None = None
) -> None:
    """Scatter four rows by one bulk copy: ``dst[rows[i], col + j] = src[i, j]``.

    Parameters
    ----------
    src, dst, col, eviction_policy
        As for ``T.tma_gather4`` with both sides exchanged; rows of the matrix have a multiple of 16 bytes, and the
        column is not negative.
    rows
        Four different row numbers, as for ``T.tma_gather4``.

    Raises
    ------
    DuplicateRows
        For equal constants. Which of equal rows is stored is open where they are known only when the kernel runs.
    NotATile, BadAttribute, ScopeNotAllowed, BadElementType, RowsOperand, VariantRefused, VariantMissing
        As for ``T.tma_gather4``.

    Notes
    -----
    Rows outside ``dst``, negative ones too, are dropped. The compiler waits for the copy.
    """
    op = "tma_scatter4"
    tile, table = _sides(op, ("src", src), ("dst", dst), col)
    index, constants = _rows(op, rows)
    for at, row in enumerate(constants):
        if row in constants[:at]:
            raise DuplicateRows(row=row)
    hints = _hints(op, eviction_policy)
    with operands.called("T.tma_scatter4", "write T.scatter"):
        operands.emit("scatter", [tile, table, index], [table], {VARIANT: SCATTER, HINTS: hints, DISTINCT: 1})


def tma_gather4_bytes(columns: int, element: object) -> int:
    """Return the bytes that ``T.tma_gather4`` delivers, rows outside of the matrix included.

    Parameters
    ----------
    columns
        Elements of a row of the tile.
    element
        Their type, of whole bytes.

    Raises
    ------
    BadAttribute
        For other numbers or types.
    """
    count, of = checks.python_int(columns), dtype(element)
    if count is None or count < 1:
        legal = "a positive Python int"
        raise BadAttribute(op="tma_gather4_bytes", name="columns", found=operands.named(columns), legal=legal)
    if of.bits % 8:
        legal = "types of whole bytes"
        raise BadAttribute(op="tma_gather4_bytes", name="element", found=operands.named(str(of)), legal=legal)
    return FOUR * count * of.bits // 8


def _sides(op: str, tile: tuple[str, object], matrix: tuple[str, object], col: Index) -> tuple[Region, Region]:
    """Return the tile, and the columns of a matrix whose rows are chosen.

    Raises
    ------
    NotATile, BadAttribute, ScopeNotAllowed, BadElementType
        For others.
    """
    (small, given), (large, table) = tile, matrix
    if not isinstance(table, Buffer):
        raise NotATile(op=op, role=large, found=f"{operands.named(table)!r}, which is not a whole matrix")
    to = operands.as_region(op, small, given)
    for role, x, legal in ((large, table.whole(), "global"), (small, to, "shared")):
        if x.scope != legal:
            raise ScopeNotAllowed(op=op, role=role, found=x.scope, legal=f"{legal} memory")
    if len(table.shape) != 2:
        found = operands.named(f"a tensor of {len(table.shape)} dimensions")
        raise BadAttribute(op=op, name=large, found=found, legal="a tensor of 2 dimensions; col is in the second")
    if to.dtype != table.dtype:
        raise BadElementType(op=op, role=small, found=to.dtype, legal=f"{table.dtype}, that of {large}")
    shape = operands.static_shape(op, small, to)
    if len(shape) != 2 or shape[0] != FOUR:
        found = operands.named("x".join(map(str, shape)))
        raise BadAttribute(op=op, name=small, found=found, legal="a tile of 4 rows of several elements")
    return to, corner_table(op, large, table[0, col], to)


def _rows(op: str, rows: object) -> tuple[Region, list[int]]:
    """Return row numbers as a region, and those that are constants."""
    if not isinstance(rows, (list, tuple)):
        if isinstance(rows, Value) or not isinstance(rows, (Buffer, Region)):
            raise RowsOperand(op=op, found=f"{operands.named(rows)!r}; it takes four numbers, or a buffer of four")
        region = operands.as_region(op, "rows", rows)
        if region.scope not in ROW_SCOPES:
            raise ScopeNotAllowed(op=op, role="rows", found=region.scope, legal=", ".join(ROW_SCOPES))
        shape = operands.static_shape(op, "rows", region)
        if shape != (FOUR,):
            raise RowsOperand(op=op, found=f"{region.dtype} of shape {shape}; it takes four numbers")
        _check_type(op, str(region.dtype))
        return region, []
    if len(rows) != FOUR:
        raise RowsOperand(op=op, found=f"a list of {len(rows)}; it takes four numbers")
    for row in rows:
        constant = checks.python_int(row)
        if (constant is None and not isinstance(row, Value)) or isinstance(row, bool):
            raise RowsOperand(op=op, found=f"a list with {operands.named(row)!r}; it takes four numbers")
        if constant is not None and not -(2**31) <= constant < 2**31:
            raise RowsOperand(op=op, found=f"a list with {constant}; it takes numbers of 32 bits")
        if constant is None:
            _check_type(op, str(as_value(row).dtype))
    table = allocate(op, (FOUR,), "int32", "local", "local")
    for at, row in enumerate(rows):
        table[at] = row
    return table.whole(), [c for c in map(checks.python_int, rows) if c is not None]


def _check_type(op: str, found: str) -> None:
    if found not in ROW_TYPES:
        legal = f"{', '.join(ROW_TYPES)}: the instruction takes row numbers of 32 bits"
        raise BadElementType(op=op, role="rows", found=found, legal=legal)


def _hints(op: str, policy: str | None) -> dict[str, object]:
    if policy is not None and policy not in _EVICTIONS:
        legal = ", ".join(map(repr, _EVICTIONS))
        raise BadAttribute(op=op, name="eviction_policy", found=operands.named(policy), legal=legal)
    return {} if policy is None else {"eviction_policy": policy}
