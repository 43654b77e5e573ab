"""Weights of four bits: scaled per group while they are staged, multiplied in float16."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T
from tile_core.numerics import codecs


def dequant_matmul(
    M: int, N: int, K: int, group: int = 32,
    block_M: int = 32, block_N: int = 32, block_K: int = 64, threads: int = 128, num_stages: int = 2,
) -> Any:  # fmt: skip
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        W: T.Tensor((N, K), "int4"),
        scale: T.Tensor((N, K // group), "float16"),
        C: T.Tensor((M, N), "float32"),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            W_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                for i, j in T.Parallel(block_N, block_K):
                    n, kk = bx * block_N + i, k * block_K + j
                    W_shared[i, j] = T.cast(W[n, kk], "float16") * scale[n, kk // group]
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def one(M: int, N: int, K: int, target: str) -> bool:
    rng = np.random.default_rng(N)
    a = rng.standard_normal((M, K)).astype("float16")
    w = rng.integers(-8, 8, (N, K))
    scale = (2.0 ** rng.integers(-4, 1, (N, K // 32))).astype("float16")
    packed = codecs.pack4((w & 15).astype("uint8"))
    sizes = {"M": M, "N": N, "K": K}
    tiles = tile.tilings(dequant_matmul, sizes, target=target, most=1)[0]
    c = for_numpy(tile.compile(dequant_matmul(**sizes, **tiles), target=target, out_idx=-1))(a, packed, scale)
    a64, w64 = a.astype("float64"), w * np.repeat(scale.astype("float64"), 32, 1)
    name = f"int4 weights {M}x{N}x{K}, scales per 32"
    return check(name, c, a64 @ w64.T, K * 2.0**-24, np.abs(a64) @ np.abs(w64).T)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [one(64, 64, 128, target), one(33, 50, 96, target), one(1, 65, 160, target)]


if __name__ == "__main__":
    run(main, __doc__)
