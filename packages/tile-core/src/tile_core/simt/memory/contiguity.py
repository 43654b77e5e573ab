"""Facts about shared-memory addresses: contiguous runs, alignment, tiles inside their buffers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tile_core.analysis.ranges import whole
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Expr
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.layout import LayoutMap, row_major
from tile_core.ops.base import View

if TYPE_CHECKING:
    from tile_core.analysis.analyzer import Analyzer


def has_runs(layout: LayoutMap | None, view: View, dim: int, run: int, ranges: Analyzer) -> bool:
    """Whether each run of ``run`` elements along a dimension is contiguous and aligned.

    Runs begin at the tile's corner. ``ranges`` is an analyzer with the ranges of the corner's variables.
    """
    if run == 1:
        return True
    shape = tuple(nodes.shape_of(view.buffer))
    if not all(isinstance(n, int) for n in shape) or shape[dim] % run or not divides(run, view.mins[dim], ranges):
        return False
    return _runs(row_major(shape) if layout is None else layout, dim, run)


@cache
def _runs(layout: LayoutMap, dim: int, run: int) -> bool:
    offsets = _offsets(layout)
    moved = np.moveaxis(offsets, dim, -1).reshape(-1, run)
    return bool((moved[:, 0] % run == 0).all() and (np.diff(moved, axis=1) == 1).all())


def _offsets(layout: LayoutMap) -> Array:
    """Return the memory index of every element, as an array of the layout's shape."""
    try:
        grid = np.indices(layout.shape)
        return np.broadcast_to(layout.apply(*grid)["memory"], layout.shape)
    except (TileError, TypeError, ValueError):
        return np.asarray(layout.tables()["memory"]).reshape(layout.shape)


def divides(by: int, value: Expr, ranges: Analyzer) -> bool:
    """Whether ``value`` is known to be a multiple of ``by``."""
    if isinstance(value, int):
        return value % by == 0
    found = ranges.modular_set(value)
    return int(found.coeff) % by == 0 and int(found.base) % by == 0


def conditions(view: View, ranges: Analyzer) -> list[Expr]:
    """Return the unproven conditions under which a tile is inside its buffer."""
    starts = [nodes.int_const(low) if isinstance(low, int) else low for low in view.mins]
    found = []
    for start, extent, (below, above, size) in zip(starts, view.extents, _open(view, ranges), strict=True):
        found += [tirx.GE(start, nodes.int_const(0, nodes.dtype_of(start)))] if below else []
        found += [_ends(start, extent, size, ranges)] if above else []
    return found


def _ends(start: Expr, extent: int, size: Expr, ranges: Analyzer) -> Expr:
    """Return the condition that a tile ends inside of the buffer.

    For an unbounded start, computing the end may overflow its type.
    """
    if ranges.const_int_bound(start).max_value + extent <= whole(nodes.dtype_of(start))[1]:
        return tirx.LE(*_same_type(start + extent, size))
    return tirx.LE(*_same_type(start, size - extent))


def inside(view: View, indices: list[Expr], ranges: Analyzer) -> list[Expr]:
    """Return the unproven conditions under which an element of a tile is inside the buffer."""
    found = []
    for index, (below, above, size) in zip(indices, _open(view, ranges), strict=True):
        found += [tirx.GE(index, nodes.int_const(0, nodes.dtype_of(index)))] if below else []
        found += [tirx.LT(*_same_type(index, size))] if above else []
    return found


def _same_type(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Convert two integers to a common type.

    A corner may have 64 bits and an extent 32, or the other way around.
    """
    b = nodes.int_const(b, nodes.dtype_of(a)) if isinstance(b, int) else b
    if nodes.dtype_of(a) == nodes.dtype_of(b):
        return a, b
    return nodes.cast(a, "int64"), nodes.cast(b, "int64")


def _open(view: View, ranges: Analyzer) -> list[tuple[bool, bool, Expr]]:
    """Return, per dimension, whether a tile may begin before or end after its buffer.

    The buffer's extent is returned as well.
    """
    found = []
    for low, extent, size in zip(view.mins, view.extents, nodes.shape_of(view.buffer), strict=True):
        if isinstance(low, int):
            found.append((low < 0, not isinstance(size, int) or low + extent > size, size))
            continue
        bound = ranges.const_int_bound(low)
        found.append((bound.min_value < 0, not isinstance(size, int) or bound.max_value + extent > size, size))
    return found
