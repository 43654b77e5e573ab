"""Blocks that race: refused where indices prove it, reported where data decide, and nothing else is."""

from __future__ import annotations

import pytest

import tile_core as tile
from tile_core.errors.ops import ParallelRace

from .block_races import BY_DATA, LEGAL, PROVABLE, program

COMPILED = ("cpu", "cuda:sm_80")


@pytest.mark.parametrize("name", PROVABLE)
def test_a_race_that_indices_prove_is_refused(name):
    for target in COMPILED:
        with pytest.raises(ParallelRace) as caught:
            tile.compile(program(PROVABLE[name]), target)
        assert PROVABLE[name][2] in str(caught.value), caught.value


@pytest.mark.parametrize("name", [*BY_DATA, *LEGAL])
def test_nothing_else_is_refused(name):
    tile.compile(program({**BY_DATA, **LEGAL}[name]), "cuda:sm_80")
