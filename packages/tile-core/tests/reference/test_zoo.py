"""Test typical kernels: the reference agrees with NumPy and with the CPU's kernels."""

import numpy as np
import pytest
from zoo.table import KERNELS

import tile_core as tile
from tile_core.reference import execute


@pytest.mark.sweep(2)
@pytest.mark.parametrize("entry", KERNELS, ids=lambda e: e.name)
def test_the_reference_is_right(entry):
    case = entry.make()
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in case.args]
    execute(case.program, args)
    for wanted in case.wanted:
        assert wanted.holds(args[wanted.index])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("entry", KERNELS, ids=lambda e: e.name)
def test_verify_agrees_with_the_cpu(entry):
    case = entry.make()
    # Kernels that append to a cache or to rows leave the other elements as they are.
    tile.compile(case.program, "cpu").verify(*case.args, allow=["unwritten"])
