"""Copies of two tiles at one edge: one test of the edge, behind which the loads of both are in flight together."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.case import example
from zoo.launch import lowered

import tile_core as tile
from tile_core.emit import tail
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES

pytestmark = pytest.mark.sweep(6)
TARGET = "cuda:sm_90a"


@pytest.mark.parametrize("shape", [(16, 128), (33, 70), (17, 128), (31, 257), (1, 1), (16, 8)])
def test_a_gate_at_edges(shape: tuple[int, int]) -> None:
    kernel = tile.compile(example("elementwise").swish_gate(), TARGET, runtime="emulator")
    rng = np.random.default_rng()
    x, g = (rng.standard_normal(shape).astype("float16") for _ in range(2))
    y = np.full(shape, np.nan, "float16")
    kernel(x, g, y)
    g64 = g.astype("float64")
    assert np.allclose(y, x * g64 / (1 + np.exp(-g64)), rtol=2.0**-9, atol=2.0**-14)


def test_both_tiles_are_loaded_before_either_is_used() -> None:
    source = tile.compile(example("elementwise").swish_gate(), TARGET).source
    assert source.count("if (common)") == 2  # before the loads, and before the stores
    inside = source[source.index("if (common)") :].split("\n  else {")[0]
    assert re.search(r"uint4\*\)&X\[", inside)
    assert re.search(r"uint4\*\)&G\[", inside)


def test_the_fuzzer_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    join, found = tail.join_branches, list[bool]()

    def seen(body: Any) -> Any:
        new = join(body)
        found.append(not new.same_as(body))
        return new

    monkeypatch.setattr(tail, "join_branches", seen)

    @hypothesis.seed(1)
    @settings(max_examples=20, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tiles"][0])
    def draw(unit: Any) -> None:
        with contextlib.suppress(TileError):
            lowered(load(unit.text()), make_context(TARGET, {}))

    draw()
    assert sum(found) >= 2
