"""Vector loops on the CPU: what has no vector form still computes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

#: Functions of one argument, and what NumPy calls them; TVM has no vectors of the first three.
UNARY = {"rint": np.rint, "nearbyint": np.rint, "isnan": np.isnan, "isinf": np.isinf, "floor": np.floor, "exp": np.exp}
BINARY = {"fmod": np.fmod, "copysign": np.copysign, "nextafter": np.nextafter, "hypot": np.hypot}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_a_bound_value(name: str, count: int) -> None:
    function = getattr(T, name)

    @T.prim_func
    def kernel(X: T.Tensor((100,), "float32"), out: T.Tensor((100,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(100):
                x = X[i]
                y = x + (count - 1)
                out[i] = function(y)

    x = np.random.default_rng(count).standard_normal(100, dtype="float32") * 4
    x[:3] = np.nan, np.inf, -np.inf
    out = np.full(100, -7, "float32")
    tile.compile(kernel, "cpu")(x, out)
    np.testing.assert_allclose(out, UNARY[name](x + np.float32(count - 1)).astype("float32"), rtol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_bound_values(name: str) -> None:
    function = getattr(T, name)

    @T.prim_func
    def kernel(X: T.Tensor((2, 100), "float32"), out: T.Tensor((100,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(100):
                x, y = X[0, i], X[1, i]
                out[i] = function(x, y)

    x = np.random.default_rng(0).standard_normal((2, 100), dtype="float32") * 4
    out = np.full(100, -7, "float32")
    tile.compile(kernel, "cpu")(x, out)
    np.testing.assert_allclose(out, BINARY[name](x[0], x[1]), rtol=1e-6)
