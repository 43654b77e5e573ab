"""Single 4-bit elements with extents not divisible by 8 are rejected with that reason."""

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import UnsupportedError

m = T.dynamic("m")


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_the_refusal_comes_out_as_itself(dtype):
    @T.prim_func
    def main(A: T.Tensor((m,), dtype), C: T.Tensor((m,), dtype)):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as b:
            for i in T.Parallel(32):
                C[b * 32 + i] = A[b * 32 + i]

    with pytest.raises(UnsupportedError) as caught:
        tile.compile(main, target="metal")
    assert caught.value.code == "U107"
    assert caught.value.where is not None
