"""Compute the grid of a launch once per combination of the values that determine it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tile_runtime.abi.kernel_text import LaunchFacts
from tile_runtime.abi.signature import symbols_of
from tile_runtime.errors.launch import GridNotInClusters
from tile_runtime.types import Argument

Extents = tuple[int, int, int]
Made = TypeVar("Made")

_MOST_GRIDS = 4096


def grid_of(facts: LaunchFacts, checked: Callable[[Extents], Made]) -> Callable[[Sequence[Argument]], Made]:
    """Return a function from the values of a launch to the runtime's grid.

    Parameters
    ----------
    facts
        The facts of the launched function.
    checked
        Makes that form from the blocks along x, y and z, or raises. A constant grid is evaluated here.
    """
    symbols, positions = _symbols(facts), grid_positions(facts)
    if not symbols:
        first = checked(facts.blocks({}))
        return lambda values: first
    pick: Callable[[Sequence[Argument]], Any] = operator.itemgetter(*positions)
    known: dict[object, Made] = {}

    def grid(values: Sequence[Argument]) -> Made:
        key = pick(values)
        try:
            return known[key]
        except KeyError:
            if len(known) >= _MOST_GRIDS:
                known.clear()
            found = key if len(symbols) > 1 else (key,)
            known[key] = made = checked(facts.blocks(dict(zip(symbols, found, strict=True))))
            return made

    return grid


def require_whole_clusters(facts: LaunchFacts, grid: Extents) -> None:
    """Refuse a grid whose blocks do not make whole clusters.

    Raises
    ------
    GridNotInClusters
        With the axis, and the next number of blocks that does.
    """
    for axis, found, size in zip("xyz", grid, facts.cluster, strict=True):
        if found % size:
            shown = {"axis": axis, "found": found, "cluster": size, "near": found + size - found % size}
            raise GridNotInClusters(kernel=facts.kernel, where=facts.where, **shown)


def grid_positions(facts: LaunchFacts) -> tuple[int, ...]:
    """Return the positions of the values that decide the grid."""
    positions = {p.name: i for i, p in enumerate(facts.params)}
    return tuple(positions[s] for s in _symbols(facts))


def _symbols(facts: LaunchFacts) -> list[str]:
    return sorted({s for dim in facts.grid for s in symbols_of(dim)})
