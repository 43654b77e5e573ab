"""T.round, and the functions of float64 that TVM computes with the precision of float32."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_round_takes_ties_away_from_zero(dtype):
    x = np.array(
        [0.5, 1.5, 2.5, -0.5, -2.5, 0.49, -0.3, 0.0, -0.0, 1e3 + 0.5, np.inf, -np.inf, np.nan, 0.75, -7.5, 3.0], dtype
    )

    @T.prim_func
    def main(A: T.Tensor((16,), dtype), B: T.Tensor((16,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[i] = T.round(A[i])

    found = np.zeros(16, dtype)
    tile.compile(main, target="cpu")(x, found)
    expected = np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize(("function", "reference"), [(T.tanh, np.tanh), (T.exp10, lambda x: 10.0**x)])
def test_float64_keeps_its_precision(function, reference):
    x = np.concatenate(
        [np.linspace(-30, 30, 61), [1e-300, -1e-12, 1e-40, -0.0, 400.0, -400.0, np.inf, -np.inf, np.nan]]
    )
    n = len(x)

    @T.prim_func
    def main(A: T.Tensor((n,), "float64"), B: T.Tensor((n,), "float64")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = function(A[i])

    found = np.zeros(n)
    tile.compile(main, target="cpu")(x, found)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found, reference(x), rtol=1e-15 * 8)
