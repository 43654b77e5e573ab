"""The proof of locality: each iteration runs on threads that hold its elements."""

from __future__ import annotations

from math import prod

import numpy as np

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout.fragment import FragmentLayout
from tile_core.simt.placement.tile_uses import Nest, TileAccess

#: Limit on enumerated iterations times inner loops; above it a fragment is moved to shared memory unchecked.
_MOST = 1 << 22


def agrees(a: TileAccess, nest: Nest, own: FragmentLayout, known: FragmentLayout) -> str:
    """Return the reason why an access mismatches its fragment's layout; empty if it matches.

    A load fits if all threads that run an iteration hold the element; a store if in addition no other threads do.
    """
    if _identical(a, nest, own, known):
        return ""
    points = _points(a, nest)
    if points is None:
        return "its indices are not known at compile time"
    iterations, elements, _ = points
    if not len(iterations):
        return ""
    owners = np.zeros((prod(known.shape), known.threads), dtype=bool)
    np.put_along_axis(owners, known.thread_table, True, axis=1)
    executing = own.thread_table[iterations]
    if not owners[elements[:, None], executing].all():
        return "an iteration needs an element that another thread holds"
    if a.is_store and known.replicas != own.replicas:
        return "a store would not reach all copies of an element"
    return ""


def uniform_register(a: TileAccess, nest: Nest, own: FragmentLayout, known: FragmentLayout) -> bool:
    """Whether the register that an iteration accesses is the same in all threads."""
    if _identical(a, nest, own, known):
        return True
    points = _points(a, nest)
    if points is None:
        return False
    iterations, elements, inner = points
    if not len(iterations):
        return True
    slots = own.register_table[iterations] * (int(inner.max()) + 1) + inner
    pairs = slots * (known.registers + 1) + known.register_table[elements]
    return _distinct(pairs) == _distinct(slots)


def _distinct(values: Array) -> int:
    """Return the number of distinct values; ``numpy.unique`` would import masked arrays for that."""
    ordered = np.sort(values, axis=None)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _identical(a: TileAccess, nest: Nest, own: FragmentLayout, known: FragmentLayout) -> bool:
    """Whether iteration and element have the same owner trivially: indices in order, equal digits."""
    long = [d for d, n in enumerate(known.shape) if n != 1 or len(known.shape) == len(nest.loops)]
    if len(long) != len(nest.loops) or any(s != 0 for s in nest.starts):
        return False
    pairs = [(a.indices[d], v) for d, v in zip(long, nest.variables, strict=True)]
    same = all(isinstance(index, tirx.Var) and index.same_as(v) for index, v in pairs)
    rest = all(nodes.as_int(i) == 0 for d, i in enumerate(a.indices) if d not in long)
    return same and rest and tuple(known.dims[d] for d in long) == own.dims and known.replica == own.replica


def _points(a: TileAccess, nest: Nest) -> tuple[Array, Array, Array] | None:
    """Return (iteration, element, iteration of other loops) for all accesses in bounds."""
    used = {v for i in a.indices for v in collect(i, tirx.Var)}
    extents = list(nest.extents or ())
    names, starts = list(nest.variables), list(nest.starts)
    for var, start, extent in (*nest.outer, *a.inner):
        if var in used:
            first, count = nodes.as_int(start), nodes.as_int(extent)
            if not isinstance(first, int) or not isinstance(count, int):
                return None
            names.append(var)
            starts.append(first)
            extents.append(count)
    if prod(extents) > _MOST or any(not isinstance(s, int) for s in starts):
        return None
    grid = np.indices(extents).reshape(len(extents), -1)
    env = {v: g + s for v, g, s in zip(names, grid, starts, strict=True)}
    shape = nodes.shape_of(a.buffer)
    try:
        coordinates = [np.zeros(grid.shape[1], dtype=np.int64) + evaluate(i, env) for i in a.indices]
    except Unknown:
        return None
    inside = np.ones(grid.shape[1], dtype=bool)
    for coordinate, n in zip(coordinates, shape, strict=True):
        inside &= (coordinate >= 0) & (coordinate < n)
    loops = len(nest.loops)
    iterations = np.ravel_multi_index(tuple(grid[:loops]), tuple(extents[:loops])) if loops else grid[0] * 0
    elements = np.ravel_multi_index(tuple(np.where(inside, p, 0) for p in coordinates), tuple(shape))
    inner = np.arange(grid.shape[1]) % max(1, prod(extents[loops:]))
    return iterations[inside], elements[inside], inner[inside]
