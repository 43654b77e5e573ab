"""Every way to access a tensor reaches elements behind 2**31 on a device."""

import numpy as np
import pytest
from far import COLUMNS, FAR, ROWS, TILE

import tile_core as tile

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.device, pytest.mark.sweep(1)]


@pytest.mark.parametrize("symbolic", [False, True], ids=["constant", "symbolic"])
@pytest.mark.parametrize("tma", ["auto", "always"])
@pytest.mark.parametrize("name", FAR)
def test_elements_behind_2_31(name, tma, symbolic):
    program = FAR[name]
    rng = np.random.default_rng()
    a = torch.zeros((ROWS, COLUMNS), dtype=getattr(torch, program.dtype), device="cuda")
    corner = rng.integers(1, 9, (TILE, TILE)).astype(program.dtype)
    a[-TILE:, -TILE:] = torch.from_numpy(corner).cuda()
    rows = rng.permutation(TILE).astype("int32")
    b = rng.integers(1, 9, (TILE, TILE)).astype(program.result)
    want_a, want_b = program.expected(corner.copy(), rows, b.copy())
    given = torch.from_numpy(rows).cuda(), torch.from_numpy(b).cuda()
    tile.compile(program.load(symbolic), target="cuda", options={"tma": tma})(a, *given)
    np.testing.assert_array_equal(a[-TILE:, -TILE:].cpu().numpy(), want_a)
    np.testing.assert_array_equal(given[1].cpu().numpy(), want_b)
    # A part at a time: counting all elements at once takes 16 GiB.
    assert sum(int(part.count_nonzero()) for part in a.split(4096)) == np.count_nonzero(want_a)
