"""The option poison: uninitialized memory is NaN, or large integers, and correct kernels ignore it."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


def partly(scope, dtype):
    @T.prim_func
    def k(A: T.Tensor((16, 8), dtype), B: T.Tensor((16, 8), dtype), n: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_fragment((16, 8), dtype) if scope == "fragment" else T.alloc_shared((16, 8), dtype)
            for i, j in T.Parallel(16, 8):
                if i < n:
                    s[i, j] = A[i, j]
            T.copy(s, B)

    return k


@pytest.mark.sweep(1)
@pytest.mark.parametrize("scope", ["fragment", "shared"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32", "uint16", "bool"])
def test_what_nobody_has_written_shows(scope, dtype):
    kernel = tile.compile(partly(scope, dtype), "cpu", options={"poison": True})
    a, b = np.zeros((16, 8), dtype), np.zeros((16, 8), dtype)
    kernel(a, b, 16)
    assert not b.any()
    kernel(a, b, 5)
    assert not b[:5].any()
    assert np.isnan(b[5:]).all() if a.dtype.kind == "f" else b[5:].all()


def test_right_kernels_do_not_change():
    @T.prim_func
    def gemm(A: T.Tensor((33, 40), "float16"), B: T.Tensor((40, 17), "float16"), C: T.Tensor((33, 17), "float32")):
        with T.Kernel(2, 3, threads=32) as (bx, by):
            a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 16, k * 16], a)
                T.copy(B[k * 16, bx * 16], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 16, bx * 16])

    rng = np.random.default_rng()
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((33, 40), (40, 17)))
    found = tile.compile(gemm, "cpu", out_idx=2, options={"poison": True})(a, b)
    np.testing.assert_allclose(found, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_the_option_is_a_bool():
    with pytest.raises(tile.TileError, match="poison is True or False"):
        tile.compile(partly("shared", "int8"), "cpu", options={"poison": 1})
