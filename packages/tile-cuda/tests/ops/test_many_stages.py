"""More stages than an instruction can count."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@pytest.mark.sweep(2)
@pytest.mark.parametrize("stages", [17, 60])
def test_many_stages(stages):
    @T.prim_func
    def kernel(A: T.Tensor((32, 16 * 70), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 16), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for i in T.Pipelined(70, num_stages=stages):
                T.copy(A[0, i * 16], a)
                T.gemm(a, a, c, transpose_B=True)
            T.copy(c, C)

    built = tile.compile(kernel, "cuda:sm_80", out_idx=-1, runtime="emulator")
    assert "wait_group" in built.source
    a = np.random.default_rng(stages).integers(-2, 3, (32, 16 * 70)).astype("float16")
    expected = a.astype("float32") @ a.astype("float32").T
    np.testing.assert_array_equal(built(a), expected)
