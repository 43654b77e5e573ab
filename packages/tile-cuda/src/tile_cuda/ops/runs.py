"""What is known about places in shared memory: runs of neighbours, alignment, tiles inside of their buffers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tile_core.compat.tvm import tirx, tvm
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.layout import LayoutMap, row_major
from tile_core.ops.base import View


def has_runs(layout: LayoutMap | None, view: View, dim: int, run: int) -> bool:
    """Whether every ``run`` neighbours along a dimension, counted from the tile's corner, lie together and aligned."""
    if run == 1:
        return True
    shape = tuple(nodes.shape_of(view.buffer))
    if not all(isinstance(n, int) for n in shape) or shape[dim] % run or not divides(run, view.mins[dim]):
        return False
    return _runs(row_major(shape) if layout is None else layout, dim, run)


@cache
def _runs(layout: LayoutMap, dim: int, run: int) -> bool:
    places = _places(layout)
    moved = np.moveaxis(places, dim, -1).reshape(-1, run)
    return bool((moved[:, 0] % run == 0).all() and (np.diff(moved, axis=1) == 1).all())


def _places(layout: LayoutMap) -> Any:
    """Return the memory index of every element, as an array of the layout's shape."""
    try:
        grid = np.indices(layout.shape)
        return np.broadcast_to(layout.apply(*grid)["memory"], layout.shape)
    except (TileError, TypeError, ValueError):
        return np.asarray(layout.tables()["memory"]).reshape(layout.shape)


def divides(by: int, value: Any) -> bool:
    """Whether ``value`` is known to be a multiple of ``by``."""
    if isinstance(value, int):
        return value % by == 0
    found = tvm.sym.Analyzer().modular_set(value)
    return int(found.coeff) % by == 0 and int(found.base) % by == 0


def conditions(view: View) -> list[Any]:
    """Return what must hold for a tile to lie inside its buffer, as far as that is not known."""
    found = []
    for low, extent, size in zip(view.mins, view.extents, nodes.shape_of(view.buffer), strict=True):
        start = nodes.int_const(low) if isinstance(low, int) else low
        bound = tvm.sym.Analyzer().const_int_bound(start)
        if bound.min_value < 0:
            found.append(tirx.GE(start, nodes.int_const(0, nodes.dtype_of(start))))
        if not isinstance(size, int) or bound.max_value + extent > size:
            found.append(tirx.LE(start + extent, size))
    return found


def inside(view: View, indices: list[Any]) -> list[Any]:
    """Return what must hold for an element of a tile to lie inside the buffer, as far as that is not known."""
    found = []
    for low, extent, size, index in zip(view.mins, view.extents, nodes.shape_of(view.buffer), indices, strict=True):
        bound = tvm.sym.Analyzer().const_int_bound(nodes.int_const(low) if isinstance(low, int) else low)
        if bound.min_value < 0:
            found.append(tirx.GE(index, nodes.int_const(0)))
        if not isinstance(size, int) or bound.max_value + extent > size:
            found.append(tirx.LT(index, size))
    return found
