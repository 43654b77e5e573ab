"""Block races: rejected if indices prove them, reported if data-dependent."""

from __future__ import annotations

import pytest

import tile_core as tile
from tile_core.errors import TileError
from tile_core.errors.execution import BlockRace
from tile_core.errors.ops import ParallelRace
from tile_core.reference import execute

from .block_races import BY_DATA, LEGAL, PROVABLE, arguments, program

COMPILED = ("cpu", "cuda:sm_80")
#: Targets whose launches report races, and the options for it.
CHECKED = {
    "cpu": {"options": {"races": True}},
    "cuda:sm_80": {"runtime": "emulator"},
    "metal": {"runtime": "emulator"},
    "rocm:gfx942": {"runtime": "emulator"},
}
RUNS = [(target, name) for target in CHECKED for name in (*BY_DATA, *LEGAL)]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", PROVABLE)
def test_a_race_that_indices_prove_is_refused(name):
    for target in COMPILED:
        with pytest.raises(ParallelRace) as caught:
            tile.compile(program(PROVABLE[name]), target)
        assert PROVABLE[name][2] in str(caught.value), caught.value


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("target", "name"), RUNS)
def test_launches_report_races_by_data_and_nothing_else(target, name):
    kernel = tile.compile(program({**BY_DATA, **LEGAL}[name]), target, **CHECKED[target])
    given = arguments({**BY_DATA, **LEGAL}[name])
    if name in LEGAL:
        kernel(*given)
        return
    with pytest.raises(TileError) as caught:
        kernel(*given)
    if target == "cpu":
        assert isinstance(caught.value, BlockRace)
    else:
        assert "data race" in str(caught.value)
        assert "by another block" in str(caught.value)


@pytest.mark.parametrize("name", BY_DATA)
def test_a_race_by_data_is_reported(name):
    with pytest.raises(BlockRace) as caught:
        execute(program(BY_DATA[name]), arguments(BY_DATA[name]))
    assert caught.value.code == "K445"
    assert caught.value.where is not None


@pytest.mark.parametrize("name", LEGAL)
def test_nothing_else_is_reported(name):
    execute(program(LEGAL[name]), arguments(LEGAL[name]))
