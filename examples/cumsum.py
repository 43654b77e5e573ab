"""Prefix sums along rows of any length: tile scans with a carry."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def cumsum(M: int, N: int, dtype: str = "float32", block_M: int = 8, block_N: int = 128) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), dtype)
            carry = T.alloc_fragment((block_M,), dtype)
            T.clear(carry)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], x)
                T.cumsum(x, dim=1)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = x[i, j] + carry[i]
                for i in T.Parallel(block_M):
                    carry[i] = x[i, block_N - 1]
                T.copy(x, Y[bx * block_M, k * block_N])

    return main


def reversed_columns(M: int, N: int, dtype: str = "float32", block_N: int = 32) -> Any:
    """Suffix sums along columns, with whole columns per tile."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            x = T.alloc_shared((M, block_N), dtype)
            T.copy(X[0, bx * block_N], x)
            T.cumsum(x, dim=0, reverse=True)
            T.copy(x, Y[0, bx * block_N])

    return main


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for M, N, dtype in ((16, 512, "float32"), (13, 301, "float32"), (13, 301, "int32")):
        rng = np.random.default_rng(N)
        x = (
            rng.integers(-9, 10, (M, N)).astype(dtype)
            if dtype == "int32"
            else rng.standard_normal((M, N)).astype(dtype)
        )
        # A sum of n numbers is off by at most n units of the last place of the sum of their magnitudes.
        tolerance = 0.0 if dtype == "int32" else max(M, N) * 2.0**-24
        y = for_numpy(tile.compile(cumsum(M, N, dtype), target=target, out_idx=-1))(x)
        magnitude = np.cumsum(np.abs(x.astype("float64")), axis=1) + 1e-30
        passed.append(check(f"cumsum {M}x{N} {dtype}", y, np.cumsum(x.astype("float64"), axis=1), tolerance, magnitude))
        y = for_numpy(tile.compile(reversed_columns(M, N, dtype), target=target, out_idx=-1))(x)
        expected = np.cumsum(x[::-1].astype("float64"), axis=0)[::-1]
        magnitude = np.cumsum(np.abs(x[::-1].astype("float64")), axis=0)[::-1] + 1e-30
        passed.append(check(f"cumsum of columns from the end {M}x{N} {dtype}", y, expected, tolerance, magnitude))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
