"""Functions of one argument keep the table of bounds on a device, over all float32 values."""

import pytest

from tile_core.numerics.levels import LEVELS
from tile_core.testing.float_sweep import NAMES, part_of_all, swept

#: Parts of all values, which bound the memory of a launch and of its exact results.
PARTS = 256

pytestmark = [pytest.mark.device, pytest.mark.sweep(1)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_functions_keep_their_bounds(name, level):
    """A case takes about ten minutes, most of them for the exact results."""
    for part in range(PARTS):
        found = swept(name, part_of_all(part, PARTS), "cuda", None, level)
        assert found.ratio <= 1, found
