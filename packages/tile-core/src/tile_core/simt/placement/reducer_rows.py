"""Rows of a reducer on groups of threads, with copies in the group's lanes.

Each row belongs to one group.

Copies in every thread, ``reducer.partial``, serve every loop, but combining them takes shared memory and barriers as
soon as a block has two groups. Where all loops that update a reducer run over its rows and over columns that the lanes
of a group divide evenly, each group takes rows of its own, and one exchange between lanes completes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.simt.ops.reducer import is_update
from tile_core.simt.placement.tile_uses import Nest


def rows_of_groups(
    buffer: BufferVar, kind: str, nests: Sequence[Nest], threads: int, width: int, vector: Callable[[Nest], int]
) -> tuple[FragmentLayout, dict[int, FragmentLayout]] | None:
    """Return a reducer's layout by rows, and the layouts of its nests by number.

    These are the nests that update or assign it.

    Parameters
    ----------
    buffer, kind
        The reducer and its operation.
    nests
        All nests of the program.
    threads, width
        Threads of the block, and of a group.
    vector
        Returns how many adjacent columns of a nest a thread should take at a time.

    Returns
    -------
    tuple or None
        ``None`` if a loop has another form, or rows and columns do not come out even.
    """
    rows = nodes.shape_of(buffer)
    groups = threads // width
    if threads % width or len(rows) != 1 or not isinstance(rows[0], int) or rows[0] % groups:
        return None
    found: dict[int, FragmentLayout] = {}
    updated = False
    for nest in nests:
        stores = [s for s in collect(nest.body, tirx.BufferStore) if s.buffer.same_as(buffer)]
        if not stores:
            continue
        updates = all(is_update(s, kind) for s in stores)
        layout = _of_updates(nest, stores, rows[0], groups, width, vector) if updates else _of_rows(nest, rows[0])
        if layout is None:
            return None
        updated = updated or updates
        found[nest.number] = layout if isinstance(layout, FragmentLayout) else _rows(rows[0], groups, width)
    return (_rows(rows[0], groups, width), found) if updated else None


def _rows(rows: int, groups: int, width: int) -> FragmentLayout:
    digits = (Digit(groups, width, "thread"), Digit(rows // groups, 1, "register"))
    return FragmentLayout((rows,), (digits,), groups * width, (Digit(width, 1, "thread"),))


def _of_rows(nest: Nest, rows: int) -> bool | None:
    """Whether a nest runs over the rows only."""
    return True if nest.extents == (rows,) and all(start == 0 for start in nest.starts) else None


def _of_updates(
    nest: Nest, stores: Sequence[Stmt], rows: int, groups: int, width: int, vector: Callable[[Nest], int]
) -> FragmentLayout | None:
    if nest.extents is None or len(nest.extents) != 2 or any(start != 0 for start in nest.starts):
        return None
    if any(len(s.indices) != 1 or not s.indices[0].same_as(nest.variables[0]) for s in stores):
        return None
    columns, taken = nest.extents[1], vector(nest)
    while taken > 1 and columns % (taken * width):
        taken //= 2
    if nest.extents[0] != rows or columns % (taken * width):
        return None
    repeats = columns // (taken * width)
    across = (Digit(repeats, taken, "register"), Digit(width, 1, "thread"), Digit(taken, 1, "register"))
    down = (Digit(groups, width, "thread"), Digit(rows // groups, taken * repeats, "register"))
    return FragmentLayout((rows, columns), (down, across), groups * width)
