"""Coverage of swizzled tiles and of whole rows by number."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import fills, rows

WAYS = {
    "a tile is swizzled": re.compile(r"\w\[[^\];]*\^[^\];]*\]"),
    "a condition is asked once": re.compile(
        r"\) \{\n\s*(__align__.*\n\s*)?\*\(uint[24]?\*\)&.*\n.*\n?\s*\}?\s*else \{"
    ),
}
ROW = re.compile(r" = (\(long long\))?\w+\[[^;]*\];\n\s*if \(\w+ >= 0\w* && \w+ < \w+\) \{")


def text(unit: Any) -> str:
    found = str(lowered(load(unit.text()), make_context("cuda:sm_80")).text)
    return found[found.index('extern "C"') :]


def texts_of(op: str, units: list[Any]) -> list[str]:
    """Return the texts of the units of an op that are not refused."""
    found = []
    for unit in units:
        if unit.op == op:
            with contextlib.suppress(TileError):
                found.append(text(unit))
    return found


@pytest.mark.sweep(1)
def test_the_kit_reaches_them() -> None:
    turned = texts_of("transpose", fills.units())
    assert any(WAYS["a tile is swizzled"].search(t) for t in turned)
    gathered = texts_of("gather", rows.units())
    assert sum(bool(ROW.search(t)) for t in gathered) >= 2


@pytest.mark.sweep(3)
def test_the_fuzzer_reaches_them() -> None:
    texts: list[str] = []

    @hypothesis.seed(2)
    @settings(
        max_examples=60, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["tiles"][0])
    def draw(unit: Any) -> None:
        with contextlib.suppress(TileError):
            texts.append(text(unit))

    draw()
    assert {name for name, pattern in WAYS.items() if any(pattern.search(t) for t in texts)} == set(WAYS)
