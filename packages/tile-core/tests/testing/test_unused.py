"""Unused tiles are added to programs, also to those of several launches, where they belong to one."""

from __future__ import annotations

import importlib
import re

import pytest
from hypothesis import Phase, given, settings

from tile_core.testing.strategies.awkward_names import awkward_names
from tile_core.testing.strategies.grids import launches
from tile_core.testing.strategies.unused_tiles import with_unused_tile


def test_unused_tiles_stand_in_a_launch() -> None:
    found: list[str] = []

    @settings(max_examples=300, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(launches().map(with_unused_tile))
    def collect(unit: object) -> None:
        found.append(unit.text())

    collect()
    unused = [text for text in found if "unused = T." in text]
    several = [text for text in unused if text.count("with T.Kernel(") > 1]
    assert several
    for text in unused:
        before, _, _ = text.partition("unused = T.")
        launch = re.findall(r"^( *)with T\.Kernel\(", before, re.MULTILINE)
        assert launch, text
        assert len(before.rsplit("\n", 1)[1]) == len(launch[-1]) + 4, text


def test_the_name_of_an_unused_tile_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("unused", "vec", "vote", "warp", "weak", "write", "y0")
    module = importlib.import_module("tile_core.testing.strategies.awkward_names")
    monkeypatch.setattr(module, "AWKWARD", names)
    found: list[str] = []

    @settings(max_examples=100, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(awkward_names().map(with_unused_tile))
    def collect(unit: object) -> None:
        found.append(unit.text())

    collect()
    assert any("unused_tile = T.alloc_" in text for text in found)
    hidden = r"\bunused = T.alloc_(?!var|shared\(\(32,\), \"float32)"
    assert not any(re.search(hidden, text) for text in found)
