"""A warp operation takes every lane, also those whose store is outside of the tensor and is dropped."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@T.prim_func
def sums(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(4, threads=32) as bx:
        t = T.get_thread_binding(0)
        B[bx * 32 + t] = T.warp_reduce_sum(A[bx * 32 + t])


@pytest.mark.parametrize(("target", "runtime"), [("metal", "emulator"), ("cpu", None)])
def test_the_last_group_of_lanes_is_whole(target: str, runtime: str | None) -> None:
    a = np.random.default_rng().random(100, dtype=np.float32)
    b = np.full(100, np.nan, np.float32)
    tile.compile(sums, target=target, runtime=runtime)(a, b)
    want = np.concatenate([np.full(len(part), part.sum(dtype=np.float64)) for part in np.split(a, [32, 64, 96])])
    np.testing.assert_allclose(b, want, rtol=1e-5)
