"""Tiles that no statement uses, where one thread executes a whole block."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

SCOPES = {"fragment": T.alloc_fragment, "shared": T.alloc_shared, "local": T.alloc_local}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["cuda:sm_80", "metal", "rocm:gfx942"])
@pytest.mark.parametrize("scope", SCOPES)
def test_an_unused_tile_beside_code_of_one_thread(scope: str, target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((7,), "float32"), B: T.Tensor((7,), "float32")):
        with T.Kernel(1, threads=32):
            SCOPES[scope]((5, 7), "float32")
            for i in T.serial(7):
                B[i] = A[i] + 1.0

    a, b = np.arange(7, dtype="float32"), np.full(7, np.nan, "float32")
    tile.compile(main, target, runtime="emulator")(a, b)
    assert np.array_equal(b, a + 1)
