"""Products with few rows: split-K blocks, and a second launch that reduces them.

Where C is small, its tiles are too few to fill a machine. Here a block takes a part of K, and with a wide ``block_N``
whole rows of B, which a processor reads in one go from its memory. Each part has its own partial C, so the result does
not depend on which block ends first.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from checks import check, for_numpy, poisoned, run

import tile_core as tile
import tile_core.language as T


def matmul(
    M: int, N: int, K: int, splits: int, dtype: str = "float32", accum: str = "float32",
    block_M: int = 4, block_N: int = 64, block_K: int = 64, sum_N: int = 2048,
) -> Any:  # fmt: skip
    """Part ``s`` of the workspace is the product from K tile ``s * steps`` on."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def split_k(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), accum)) -> None:
        parts = T.alloc_global((splits, M, N), accum)
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=128) as (bx, by, s):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(steps, num_stages=3):
                T.copy(A[by * block_M, (s * steps + k) * block_K], A_shared)
                T.copy(B[(s * steps + k) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, parts[s, by * block_M, bx * block_N])
        with T.Kernel(T.ceildiv(N, sum_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            total = T.alloc_fragment((block_M, sum_N), accum)
            T.clear(total)
            for s in T.serial(splits):
                total += parts[s, by * block_M : by * block_M + block_M, bx * sum_N : bx * sum_N + sum_N]
            T.copy(total, C[by * block_M, bx * sum_N])

    return split_k


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for (M, N, K), splits in itertools.product(((1, 256, 512), (4, 131, 307)), (2, 5)):
        rng = np.random.default_rng(N)
        a, b = rng.standard_normal((M, K), "float32"), rng.standard_normal((K, N), "float32")
        c = poisoned((M, N), "float32")
        for_numpy(tile.compile(matmul(M, N, K, splits, block_K=32), target=target))(a, b, c)
        a64, b64 = a.astype("float64"), b.astype("float64")
        # A sum of K rounded products is off by at most K/2 units of the last place of the sum of their magnitudes.
        name = f"split-K gemm {M}x{N}x{K} in {splits} parts"
        passed.append(check(name, c, a64 @ b64, K * 2.0**-24, np.abs(a64) @ np.abs(b64)))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
