"""Tile ops on arrays of one thread: code of that thread, with its values."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@pytest.mark.sweep(1)
@pytest.mark.parametrize("branch", [False, True])
def test_copies_and_fills(branch: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            own, other = T.alloc_local((4,), "float32"), T.alloc_local((4,), "float32")
            if branch and tx % 2 == 1:
                T.fill(own, A[tx])
            else:
                T.copy(A[tx * 4 : tx * 4 + 4], own)
            T.sync_threads()
            T.copy(own, other)
            T.copy(other, B[tx * 4 : tx * 4 + 4])

    a, b = np.random.default_rng(0).standard_normal(128, "float32"), np.full(128, np.nan, "float32")
    tile.compile(main, target="cuda:sm_80", runtime="emulator")(a, b)
    odd = np.arange(128) // 4 % 2 == 1
    np.testing.assert_array_equal(b, np.where(odd, np.repeat(a[:32], 4), a) if branch else a)
