"""Note the instructions of each kernel in pytest's report: ``pytest -p instructions``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tile_core.testing.run import Session

INSTRUCTIONS = (
    "cp.async.ca", "cp.async.cg", "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "mbarrier.try_wait",
    "ldmatrix", "stmatrix", "mma.sync", "mma.sp", "wgmma.mma_async.sync", "wgmma.mma_async.sp",
)  # fmt: skip
"""Beginnings of the opcodes that are counted."""

_seen: dict[str, set[str]] = {}
_compile, _run_unit = Session.compile, Session._run_unit
_unit: list[str] = []


def _noting(session: Session, program: Any) -> Any:
    kernel = _compile(session, program)
    text = kernel.source if kernel is not None else ""
    if _unit:
        _seen.setdefault(_unit[-1], set()).update(name for name in INSTRUCTIONS if name in text)
    return kernel


def _named(session: Session, unit: Any, cases: Any) -> None:
    _unit.append(f"{unit.op}/{unit.name}")
    try:
        _run_unit(session, unit, cases)
    finally:
        _unit.pop()


def pytest_configure() -> None:
    """Look at each kernel that the kit compiles."""
    Session.compile = _noting  # type: ignore[method-assign]
    Session._run_unit = _named  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Add the instructions found to the properties of a case."""
    yield
    case = item.callspec.params["tile_case"]  # type: ignore[attr-defined]
    found = _seen.get(f"{case.unit.op}/{case.unit.name}", set())
    item.user_properties.append(("tile_instructions", " ".join(sorted(found))))
