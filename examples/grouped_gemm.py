"""Grouped products: each group's rows times its matrix, in one launch.

The sizes are known at runtime.

The rows of all groups are contiguous, and ``ends`` has the end of each group. There are enough blocks for any sizes;
each finds its tile by counting those of the groups before, and a tile's rows of the next group are not written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, poisoned, run

import tile_core as tile
import tile_core.language as T


def grouped_matmul(
    groups: int, K: int, N: int, dtype: str = "float16", block_M: int = 32, block_N: int = 64, block_K: int = 32
) -> Any:
    """Rows ``ends[g - 1]:ends[g]`` of Y are X times ``W[g]``; groups may be empty."""
    rows = T.dynamic("rows")

    @T.prim_func
    def grouped(
        X: T.Tensor((rows, K), dtype), W: T.Tensor((groups, K, N), dtype), ends: T.Tensor((groups,), "int32"),
        Y: T.Tensor((rows, N), "float32"),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(rows, block_M) + groups, threads=128) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_K, block_N), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), "float32")
            left = T.alloc_var("int32", by)
            group = T.alloc_var("int32", 0)
            first = T.alloc_var("int32", 0)
            end = T.alloc_var("int32", 0)
            begin = T.alloc_var("int32", 0)
            for g in T.serial(groups):
                tiles = T.ceildiv(ends[g] - begin, block_M)
                if left >= 0 and left < tiles:
                    group = g
                    first = begin + left * block_M
                    end = ends[g]
                left -= tiles
                begin = ends[g]
            if first < end:
                T.clear(Y_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(X[first, k * block_K], X_shared)
                    T.copy(W[group, k * block_K, bx * block_N], W_shared)
                    T.gemm(X_shared, W_shared, Y_local)
                for i, j in T.Parallel(block_M, block_N):
                    if first + i < end:
                        Y[first + i, bx * block_N + j] = Y_local[i, j]

    return grouped


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    K, N = 67, 129
    for sizes in ((32, 64, 32), (5, 0, 70, 1), (0, 0, 33), (1,)):
        rng = np.random.default_rng(len(sizes))
        x = rng.standard_normal((sum(sizes), K)).astype("float16")
        w = rng.standard_normal((len(sizes), K, N)).astype("float16")
        ends = np.cumsum(sizes).astype("int32")
        y = poisoned((len(x), N), "float32")
        for_numpy(tile.compile(grouped_matmul(len(sizes), K, N), target=target))(x, w, ends, y)
        x64, w64 = x.astype("float64"), w.astype("float64")
        parts = np.split(x64, ends[:-1])
        expected = np.concatenate([p @ m for p, m in zip(parts, w64, strict=True)])
        scale = np.concatenate([np.abs(p) @ np.abs(m) for p, m in zip(parts, w64, strict=True)])
        passed.append(check(f"groups of {', '.join(map(str, sizes))} rows", y, expected, K * 2.0**-24, scale))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
