"""Every way to access a tensor reaches elements behind 2**31."""

import numpy as np
import pytest
from far import COLUMNS, FAR, ROWS, TILE

import tile_core as tile


@pytest.mark.sweep(4)
@pytest.mark.parametrize("symbolic", [False, True], ids=["constant", "symbolic"])
@pytest.mark.parametrize("name", FAR)
def test_elements_behind_2_31(name: str, symbolic: bool) -> None:
    program = FAR[name]
    rng = np.random.default_rng()
    a = np.zeros((ROWS, COLUMNS), program.dtype)  # elements that are not accessed take no memory
    corner = a[-TILE:, -TILE:]
    corner[...] = rng.integers(1, 9, corner.shape)
    rows = rng.permutation(TILE).astype("int32")
    b = rng.integers(1, 9, (TILE, TILE)).astype(program.result)
    want_a, want_b = program.expected(corner.copy(), rows, b.copy())
    tile.compile(program.load(symbolic), target="cpu")(a, rows, b)
    np.testing.assert_array_equal(corner, want_a)
    np.testing.assert_array_equal(b, want_b)
    # Where 32 bits of an offset would lead, and the elements before the corner.
    assert not a[:TILE].any()
    assert not a[-TILE:, : 4 * TILE].any()
