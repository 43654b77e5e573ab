"""Coverage of metadata prefetch and of permuted rows."""

from __future__ import annotations

import contextlib

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies.tall_products import sparse_products
from tile_core.testing.tables import sparse

OPTIONS = {"wgmma": "always", "tma": "always", "numerics": "fast"}


def text(unit) -> str:
    found = lowered(load(unit.text()), make_context("cuda:sm_90a", OPTIONS)).text
    return str(found[found.index('extern "C"') :])


def ways(found: str) -> set[str]:
    """Return the features of a product's text."""
    marks = {"16 bits": "turn_metadata_b16(", "8 bits": "turn_metadata_b8("}
    every = {name for name, mark in marks.items() if mark in found}
    if every and "_block < 0" not in found and "_block < " in found:
        every.add("a loop")
    if "&E_s_stages[" in found and "_shared_cluster_global" in found.split("&E_s_stages[")[0].splitlines()[-1]:
        every.add("copied boxes")
    return every


@pytest.mark.sweep(0.25)
def test_the_kit_reaches_every_way():
    units = [u for u in sparse.units() if not u.illegal and u.name.rsplit("-", 1)[-1].isdigit()]
    texts = {u.name: text(u) for u in units}
    assert set().union(*map(ways, texts.values())) == {"16 bits", "8 bits", "a loop", "copied boxes"}
    assert sum("turn_metadata" in t for t in texts.values()) >= 7


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_metadata_prefetch():
    texts: list[str] = []

    @hypothesis.seed(3)
    @settings(
        max_examples=60, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(sparse_products())
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            texts.append(text(unit))

    draw()
    assert sum("turn_metadata" in t for t in texts) >= 4
    assert any("turn_metadata" in t and "a loop" in ways(t) for t in texts)
