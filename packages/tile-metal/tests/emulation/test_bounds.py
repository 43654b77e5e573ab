"""Functions of one argument keep the table of bounds in emulated texts, over all exponents by rotation."""

import os

import pytest
from float_sweep import NAMES, mantissas, swept

from tile_core.numerics.levels import LEVELS

ROTATION = os.environ.get("SWEEP_TURN", "0")


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_functions_keep_their_bounds(name, level):
    found = swept(name, mantissas(0 if ROTATION == "all" else int(ROTATION) // 7), "metal", "emulator", level)
    assert found.ratio <= 1, found
