"""The cases, one module with ``units()`` per op or group of ops, in run order.

The cases of a target's backend follow (``tile_cases`` of ``plugins/hookspecs.py``).
"""

from __future__ import annotations

import importlib

from tile_core.errors import TileError
from tile_core.errors.plugins import HookReturned
from tile_core.plugins.manager import installed
from tile_core.target import Target
from tile_core.testing.case import Case, Unit

TABLES = (
    "casts", "roundings", "copies", "boxes", "fills", "views", "products", "sparse", "scaled", "block_scaled", "rows",
    "reductions", "reducers", "folds", "sorts", "blocks", "data_races", "atomics", "scalars", "pairs", "regions",
    "random", "loops", "guards", "whole", "launches", "control", "bools", "threads", "roles", "barriers", "clusters",
    "pointers", "shapes", "symbols", "long_rows", "converted_operands",
)  # fmt: skip


def units(target: Target | None = None) -> list[Unit]:
    """Return all units: those of the core, and those that a target's backend adds.

    Raises
    ------
    HookFailed, HookReturned
        If the backend's are none.
    """
    found: list[Unit] = []
    for name in TABLES:
        found += importlib.import_module(f"{__name__}.{name}").units()
    return found if target is None else [*found, *_added(target, {(unit.op, unit.name) for unit in found})]


def cases(target: Target | str | None = None) -> list[Case]:
    """Return all cases, also those that a target's backend adds.

    Text that names no installed target gives the core's cases.

    Raises
    ------
    HookFailed, HookReturned
        If the backend's are none.
    ValueError
        If two have the same id.
    """
    if isinstance(target, str):
        target = _named(target)
    every = [case for unit in units(target) for case in unit.cases()]
    seen: set[str] = set()
    for case in every:
        if case.id in seen:
            raise ValueError(f"two cases are called {case.id}")
        seen.add(case.id)
    return every


def _named(text: str) -> Target | None:
    try:
        return installed().resolve_target(text)
    except TileError:
        return None  # the runner reports it


def _added(target: Target, seen: set[tuple[str, str]]) -> list[Unit]:
    """Return the units of a target's backend."""
    added: list[Unit] = []
    for table, found in installed().case_tables(target).items():
        for unit in found:
            if not isinstance(unit, Unit):
                raise _wrong(target, f"{unit!r:.80} in the table {table!r}", "units of the kit")
            if (unit.op, unit.name) in seen:
                raise _wrong(target, f"another {unit.op}/{unit.name} in the table {table!r}", "units of new names")
            seen.add((unit.op, unit.name))
            added.append(unit)
    return added


def _wrong(target: Target, found: str, expected: str) -> HookReturned:
    return HookReturned(backend=target.backend, hook="tile_cases", found=found, expected=expected)
