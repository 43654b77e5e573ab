"""Matrix product: shared tiles, a register accumulator, a software pipeline, all transposes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def matmul(
    M: int = 1024, N: int = 1024, K: int = 1024, trans_a: bool = False, trans_b: bool = False,
    dtype: str = "float32", accum: str = "float32", block_M: int = 64, block_N: int = 64, block_K: int = 32,
    threads: int = 128, num_stages: int = 3,
) -> Any:  # fmt: skip
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if trans_a else (M, K), dtype),
        B: T.Tensor((N, K) if trans_b else (K, N), dtype),
        C: T.Tensor((M, N), accum),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if trans_a else (block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K) if trans_b else (block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_a:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_b:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_a, transpose_B=trans_b)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def one(M: int, N: int, K: int, trans_a: bool, trans_b: bool, target: str) -> bool:
    sizes: dict[str, Any] = {"M": M, "N": N, "K": K, "trans_a": trans_a, "trans_b": trans_b}
    tiles = tile.tilings(matmul, sizes, target=target, most=1)[0]  # block_M, ..., threads and num_stages
    kernel = for_numpy(tile.compile(matmul(**sizes, **tiles), target=target, out_idx=-1))
    rng = np.random.default_rng(M * N + K)
    a = rng.standard_normal((K, M) if trans_a else (M, K), "float32")
    b = rng.standard_normal((N, K) if trans_b else (K, N), "float32")
    c = kernel(a, b)
    a64, b64 = (x.astype("float64").T if t else x.astype("float64") for x, t in ((a, trans_a), (b, trans_b)))
    name = f"gemm {M}x{N}x{K} {'A^T' if trans_a else 'A'} @ {'B^T' if trans_b else 'B'}"
    # A sum of K rounded products is off by at most K/2 units of the last place of the sum of their magnitudes.
    return check(name, c, a64 @ b64, K * 2.0**-24, np.abs(a64) @ np.abs(b64))


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for trans_a, trans_b in itertools.product((False, True), repeat=2):
        passed.append(one(256, 192, 128, trans_a, trans_b, target))
        passed.append(one(127, 129, 67, trans_a, trans_b, target))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
