"""Float arithmetic is IEEE arithmetic: folding preserves NaN, Inf and -0."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1.5, 3e38]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_identities_that_only_hold_for_ordinary_numbers(dtype: str) -> None:
    @T.prim_func
    def identities(A: T.Tensor((8,), dtype), B: T.Tensor((7, 8), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[0, i] = A[i] * 0.0
                B[1, i] = A[i] + 0.0
                B[2, i] = A[i] - A[i]
                B[3, i] = 0.0 / A[i]
                B[4, i] = A[i] / A[i]
                B[5, i] = -A[i]
                B[6, i] = 0.0 * A[i] + A[i] * 1.0

    with np.errstate(all="ignore"):
        a = np.array(SPECIAL).astype(dtype)
        zero = np.zeros((), dtype)
        want = np.stack([a * zero, a + zero, a - a, zero / a, a / a, -a, zero * a + a])
    b = np.full((7, 8), 7, dtype)
    tile.compile(identities, target="cpu")(a, b)
    assert np.array_equal(np.isnan(b), np.isnan(want))
    numbers = ~np.isnan(want)
    assert np.array_equal(b[numbers], want[numbers])
    assert np.array_equal(np.signbit(b[numbers]), np.signbit(want[numbers]))


def test_variables_and_breaks_inside_a_while_loop() -> None:
    @T.prim_func
    def loop(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            n = T.alloc_var("int32", init=0)
            while n < 8:
                m = T.alloc_var("int32", init=1)
                m = m * 2 + A[n]
                if n == 5:
                    break
                B[n] = m
                n += 1

    a, b = np.arange(8, dtype=np.int32), np.full(8, -1, np.int32)
    tile.compile(loop, target="cpu")(a, b)
    assert b.tolist() == [2, 3, 4, 5, 6, -1, -1, -1]
