"""Long code is built with less effort, and gives the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.cpu.build import EFFORTS, _effort

pytestmark = pytest.mark.sweep(6)


def statements(count: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
        with T.Kernel(1):
            for i in T.static_range(count):
                B[i] = A[i] * 2.5 + A[(i + 1) % count]

    return main


def test_levels() -> None:
    assert [_effort(n) for n in (10, 2_000, 2_001, 8_001)] == [{}, {}, {"opt-level": 1}, {"opt-level": 0}]


@pytest.mark.parametrize("count", [3, EFFORTS[-1][0] + 1])
def test_numbers_are_the_same(count: int) -> None:
    a = np.random.default_rng(count).integers(-99, 99, count).astype(np.float32)
    b = np.zeros(count, np.float32)
    tile.compile(statements(count), target="cpu")(a, b)
    np.testing.assert_array_equal(b, a * np.float32(2.5) + np.roll(a, -1))
