"""How warps divide a product."""

from __future__ import annotations

import pytest

from tile_core.ops.gemm import GemmWarpPolicy as Policy
from tile_core.simt.ops.warp_partition import splits


def best(m: int, n: int, warps: int, policy: Policy = Policy.Square) -> tuple[int, int]:
    found = splits(m // 16, n // 8, warps, policy)[0]
    return found.warps_m, found.warps_n


def test_the_usual_tiles() -> None:
    assert best(128, 128, 4) == (2, 2)
    assert best(128, 256, 8) == (2, 4)
    assert best(64, 64, 4, Policy.FullRow) == (4, 1)
    assert best(64, 64, 4, Policy.FullCol) == (1, 4)
    assert best(64, 128, 8, Policy.FullRow) == (4, 2)


def test_a_tile_that_warps_do_not_divide() -> None:
    found = splits(1, 13, 12, Policy.Square)[0]
    assert (found.warps_m, found.warps_n, found.atoms_n) == (1, 7, 2)


@pytest.mark.parametrize("policy", list(Policy))
def test_every_split_covers_the_tile(policy: Policy) -> None:
    for m in range(1, 9):
        for n in range(1, 14):
            for split in splits(m, n, 7, policy):
                assert split.warps <= 7
                assert split.warps_m * split.atoms_m >= m
                assert split.warps_n * split.atoms_n >= n
