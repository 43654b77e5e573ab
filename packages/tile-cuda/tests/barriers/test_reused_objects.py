"""Barrier objects whose memory asynchronous copies reuse: a fence ends their lifetime."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T


def test_copies_into_the_memory_of_barriers_that_have_ended():
    @T.prim_func
    def main(A: T.Tensor((64, 24), "float32"), B: T.Tensor((16, 24), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((16, 24), "float32")
            f = T.alloc_fragment((16, 24), "float32")
            T.clear(f)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 24):
                    f[i, j] += s[i, j]
            for k in T.Pipelined(4, num_stages=4):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 24):
                    f[i, j] += s[i, j] * s[i, j]
            T.copy(f, B)

    options = {"tma": "always"}
    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options=options, out_idx=-1)
    body = kernel.source[kernel.source.index('extern "C"') :]
    between = body[body.index("mbarrier_inval_shared_cta_b64") :]
    assert "fence_proxy_async_shared_cta" in between[: between.index("cp_async_bulk_tensor")]
    a = np.random.default_rng().integers(-4, 5, (64, 24)).astype("float32")
    np.testing.assert_array_equal(kernel(a), (a + a * a).reshape(4, 16, 24).sum(0))
