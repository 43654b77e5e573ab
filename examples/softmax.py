"""Softmax along rows: a block per row, and online for rows beyond a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run, threads_for

import tile_core as tile
import tile_core.language as T


def softmax(M: int, N: int, dtype: str = "float32", block_M: int = 1, threads: int = 0) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=threads or threads_for(N)) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            x[...] = T.exp(x - top[:, None])
            T.reduce_sum(x, total, dim=1)
            x /= total[:, None]
            T.copy(x, Y[bx * block_M, 0])

    return main


def online_softmax(M: int, N: int, dtype: str = "float32", block_M: int = 4, block_N: int = 256) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.fill(top, -T.infinity("float32"))
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                for i, j in T.Parallel(block_M, block_N):
                    inside = k * block_N + j < N
                    x[i, j] = T.if_then_else(inside, X[bx * block_M + i, k * block_N + j], -T.infinity(dtype))
                T.copy(top, before)
                T.reduce_max(x, top, dim=1, clear=False)
                x[...] = T.exp(x - top[:, None])
                T.reduce_sum(x, part, dim=1)
                total[...] = total * T.exp(before - top) + part
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                x[...] = T.exp(x - top[:, None]) / total[:, None]
                T.copy(x, Y[bx * block_M, k * block_N])

    return main


def one(kind: Any, M: int, N: int, dtype: str, tolerance: float, target: str) -> bool:
    kernel = for_numpy(tile.compile(kind(M, N, dtype), target=target, out_idx=-1))
    # Large values too: exp of the raw numbers would overflow.
    x = (np.random.default_rng(N).standard_normal((M, N), "float32") * 50).astype(dtype)
    y = kernel(x)
    x64 = x.astype("float64")
    e = np.exp(x64 - x64.max(axis=1, keepdims=True))
    return check(f"{kind.__name__} {M}x{N} {dtype}", y, e / e.sum(axis=1, keepdims=True), tolerance)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(softmax, 64, 512, "float32", 1e-6, target),
        one(softmax, 37, 1000, "float32", 1e-6, target),
        one(softmax, 5, 129, "float16", 1e-3, target),
        one(online_softmax, 37, 1000, "float32", 1e-6, target),
    ]


if __name__ == "__main__":
    run(main, __doc__)
