"""The sign of a NaN, which instructions of GPUs drop, changes no result."""

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.codecs import unpack4


@pytest.mark.sweep(3)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a", "metal"])
def test_a_type_without_nan_makes_one_zero_of_it(source, target):
    if (source, target) == ("float64", "metal"):
        pytest.skip("Metal has no float64")

    @T.prim_func
    def store(A: T.Tensor((34,), source), B: T.Tensor((34,), "float4_e2m1fn")):
        with T.Kernel(1, threads=1):
            T.copy(A, B)

    dtype = np.dtype(getattr(ml_dtypes, source, source))
    nan = np.full(34, np.nan, dtype)
    bits = nan.view(f"u{dtype.itemsize}")
    bits[::2] ^= 1 << (8 * dtype.itemsize - 1)
    packed = np.full(17, 0xFF, np.uint8)
    tile.compile(store, target=target, runtime="host" if target == "cpu" else "emulator")(nan, packed)
    np.testing.assert_array_equal(unpack4(packed, 34), np.full(34, 8))
