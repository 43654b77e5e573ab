"""The cases, one module per op or group of ops. Each has ``units()``; the rows here are the order of the run."""

from __future__ import annotations

import importlib

from tile_core.testing.case import Case, Unit

TABLES = (
    "casts", "roundings", "copies", "boxes", "fills", "views", "products", "sparse", "scaled", "block_scaled", "rows",
    "reductions", "reducers", "folds", "sorts", "blocks", "atomics", "scalars", "random", "loops", "whole", "launches",
    "control", "bools", "threads", "roles", "barriers", "clusters", "pointers", "shapes",
)  # fmt: skip


def units() -> list[Unit]:
    """Return all units."""
    found: list[Unit] = []
    for name in TABLES:
        found += importlib.import_module(f"{__name__}.{name}").units()
    return found


def cases() -> list[Case]:
    """Return all cases.

    Raises
    ------
    ValueError
        If two have the same id.
    """
    every = [case for unit in units() for case in unit.cases()]
    seen: set[str] = set()
    for case in every:
        if case.id in seen:
            raise ValueError(f"two cases are called {case.id}")
        seen.add(case.id)
    return every
