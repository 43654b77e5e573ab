"""Mixture of experts: tokens are gathered by expert, multiplied with its weights, and scattered back."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def grouped_matmul(
    tokens: int, experts: int, K: int, N: int, tiles: int, dtype: str = "float16",
    block_M: int = 16, block_N: int = 64, block_K: int = 32, threads: int = 128, num_stages: int = 2,
) -> Any:  # fmt: skip
    @T.prim_func
    def main(
        X: T.Tensor((tokens, K), dtype),
        W: T.Tensor((experts, K, N), dtype),
        rows: T.Tensor((tiles, block_M), "int32"),
        expert: T.Tensor((tiles,), "int32"),
        Y: T.Tensor((tokens, N), "float32"),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), tiles, threads=threads) as (bx, by):
            mine = T.alloc_shared((block_M,), "int32")
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_K, block_N), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), "float32")
            Y_shared = T.alloc_shared((block_M, block_N), "float32")
            T.copy(rows[by, 0:block_M], mine)
            T.clear(Y_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.gather(X[0, k * block_K], mine, X_shared)
                T.copy(W[expert[by], k * block_K, bx * block_N], W_shared)
                T.gemm(X_shared, W_shared, Y_local)
            T.copy(Y_local, Y_shared)
            T.scatter(Y_shared, Y[0, bx * block_N], mine)

    return main


def assign(choice: np.ndarray, experts: int, block_M: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of each tile (-1 where there is none) and each tile's expert."""
    rows, owner = [], []
    for e in range(experts):
        mine = np.flatnonzero(choice == e)
        for start in range(0, len(mine), block_M):
            part = mine[start : start + block_M]
            rows.append(np.pad(part, (0, block_M - len(part)), constant_values=-1))
            owner.append(e)
    return np.array(rows, "int32"), np.array(owner, "int32")


def one(tokens: int, experts: int, K: int, N: int, target: str) -> bool:
    rng = np.random.default_rng(tokens)
    x = rng.standard_normal((tokens, K)).astype("float16")
    w = rng.standard_normal((experts, K, N)).astype("float16")
    choice = rng.integers(0, experts, tokens)
    rows, owner = assign(choice, experts, 16)
    y = for_numpy(tile.compile(grouped_matmul(tokens, experts, K, N, len(rows)), target=target, out_idx=-1))(
        x, w, rows, owner
    )
    x64, w64 = x.astype("float64"), w.astype("float64")
    expected = np.einsum("tk,tkn->tn", x64, w64[choice])
    magnitude = np.einsum("tk,tkn->tn", np.abs(x64), np.abs(w64[choice]))
    return check(f"moe {tokens} tokens, {experts} experts, {K}x{N}", y, expected, K * 2.0**-24, magnitude)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [one(64, 4, 64, 64, target), one(37, 8, 72, 100, target), one(5, 3, 33, 17, target)]


if __name__ == "__main__":
    run(main, __doc__)
