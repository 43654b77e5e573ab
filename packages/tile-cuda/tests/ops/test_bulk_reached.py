"""Coverage of bulk copies by the conformance suite and the fuzzer."""

from __future__ import annotations

import contextlib
import re

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import boxes

WAYS = {
    "into slots of pipelined loops": re.compile(r"cp_async_bulk_tensor_\dd_shared_cluster\w+\(&s_stages\["),
    "into tiles": re.compile(r"cp_async_bulk_tensor_\dd_shared_cluster\w+\(&[a-rt-z]\w*\["),
    "in loops, with a phase": re.compile(r"s_phase = 1u"),
    "out of slots": re.compile(r"cp_async_bulk_tensor_\dd_global\w+\(&s_stages\["),
    "out of tiles": re.compile(r"cp_async_bulk_tensor_\dd_global\w+\(&[a-z]\["),
    "bytes into tiles": re.compile(r"  cp_async_bulk_shared_cluster_global_mbarrier"),
    "bytes out of tiles": re.compile(r"  cp_async_bulk_global_shared_cta"),
    "updates": re.compile(r"  cp_reduce_async_bulk_tensor_\dd_global"),
    "waits for reads": re.compile(r"  cp_async_bulk_wait_group_read_0"),
    **{f"{n} dimensions": re.compile(rf"  cp_async_bulk_tensor_{n}d_") for n in range(1, 6)},
}
_COPY = re.compile(r"T\.(copy|atomic_\w+)\(")
_BULK = re.compile(r"  cp_(async|reduce_async)_bulk_(tensor|shared_cluster|global_shared)")


def text(unit) -> str:
    found = lowered(load(unit.text()), make_context("cuda:sm_90a", {"tma": "always"})).text
    return str(found[found.index('extern "C"') :])


def ways(texts: list[str]) -> set[str]:
    return {name for name, pattern in WAYS.items() if any(pattern.search(t) for t in texts)}


@pytest.mark.sweep(1)
def test_the_kit_reaches_every_way():
    texts = [text(unit) for unit in boxes.units()]
    assert ways(texts) == set(WAYS)
    assert all(len(_BULK.findall(t)) >= 2 for t in texts)
    assert sum(len(_BULK.findall(t)) >= 4 for t in texts) >= len(texts) - 3


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_every_way_and_most_copies_are_bulk_copies():
    texts: list[str] = []
    copies: list[int] = []

    @hypothesis.seed(1)
    @settings(
        max_examples=80, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["boxes"][0])
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            texts.append(text(unit))
            copies.append(len(_COPY.findall(unit.text())))

    draw()
    assert ways(texts) >= set(WAYS) - {"5 dimensions", "1 dimensions", "into tiles"}
    assert sum(bool(_BULK.search(t)) for t in texts) >= 0.5 * len(texts)
    assert sum(len(_BULK.findall(t)) for t in texts) >= 0.5 * sum(copies)
