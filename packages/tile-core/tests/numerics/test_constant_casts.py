"""A float of Python's is converted to integers as a float of the kernel is."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import ConstantDoesNotFit

VALUES = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 300.7, -5.5, -0.9, 2.0**31, -(2.0**31), 2.0**63]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "int8", "uint32", "int4", "uint4", "bool"])
def test_as_at_run_time(dtype: str) -> None:
    n = len(VALUES)

    @T.prim_func
    def k(X: T.Tensor((n,), "float64"), B: T.Tensor((3, n), "int64")):
        with T.Kernel(1, threads=32):
            for i in T.static_range(n):
                B[0, i] = T.cast(T.cast(VALUES[i], dtype), "int64")
                B[1, i] = T.cast(T.cast(np.float64(VALUES[i]), dtype), "int64")
                B[2, i] = T.cast(T.cast(X[i], dtype), "int64")

    b = np.full((3, n), 77, "int64")
    tile.compile(k, target="cpu")(np.array(VALUES), b)
    np.testing.assert_array_equal(b[0], b[2])
    np.testing.assert_array_equal(b[1], b[2])


@pytest.mark.parametrize(("value", "dtype"), [(300, "uint8"), (-1, "uint32"), (2**31, "int32"), (8, "int4")])
def test_integers_that_do_not_fit_are_refused(value: int, dtype: str) -> None:
    with pytest.raises(ConstantDoesNotFit):

        @T.prim_func
        def k(B: T.Tensor((1,), "int64")):
            with T.Kernel(1, threads=32):
                B[0] = T.cast(value, dtype)
