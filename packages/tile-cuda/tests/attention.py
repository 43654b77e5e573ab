"""Attention forward as users write it, with full key blocks: two chained products."""

from __future__ import annotations

from typing import Any

import tile_core.language as T

LENGTH = 4096


def attention(
    dim: int, causal: bool, m: int, n: int, threads: int, stages: int, *, staged: bool = False,
    scores_in: str = "float32", length: int = LENGTH, heads: int = 32, dtype: str = "float16",
    keys: int = 0,
) -> Any:  # fmt: skip
    """Return the program for n heads; the causal form starts with the last queries.

    The number of keys is that of queries unless ``keys`` is given.
    """
    scale = 1.4426950408889634 / dim**0.5
    keys = keys or length
    t, of_keys = T.Tensor((heads, length, dim), dtype), T.Tensor((heads, keys, dim), dtype)

    @T.prim_func
    def main(Q: t, K: of_keys, V: of_keys, R: t):
        with T.Kernel(length // m, heads, threads=threads) as (at, by):
            bx = length // m - 1 - at if causal else at
            Q_s = T.alloc_shared((m, dim), dtype)
            K_s = T.alloc_shared((n, dim), dtype)
            V_s = T.alloc_shared((n, dim), dtype)
            scores = T.alloc_fragment((m, n), scores_in)
            weights = T.alloc_fragment((m, n), dtype)
            result = T.alloc_fragment((m, dim), "float32")
            top = T.alloc_fragment((m,), "float32")
            before = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            added = T.alloc_fragment((m,), "float32")
            T.copy(Q[by, bx * m, 0], Q_s)
            T.clear(result)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv((bx + 1) * m, n) if causal else keys // n, num_stages=stages):
                T.copy(K[by, k * n, 0], K_s)
                T.copy(V[by, k * n, 0], V_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                if causal and (k + 1) * n > bx * m:
                    for i, j in T.Parallel(m, n):
                        scores[i, j] = T.if_then_else(bx * m + i >= k * n + j, scores[i, j], -T.infinity("float32"))
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(m, n):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, added, dim=1)
                for i in T.Parallel(m):
                    before[i] = T.exp2(before[i] * scale - top[i] * scale)
                    total[i] = total[i] * before[i] + added[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(m, dim):
                    result[i, j] = result[i, j] * before[i]
                T.gemm(weights, V_s, result)
            for i, j in T.Parallel(m, dim):
                result[i, j] = result[i, j] / total[i]
            if staged:
                R_s = T.alloc_shared((m, dim), dtype)
                T.copy(result, R_s)
                T.copy(R_s, R[by, bx * m, 0])
            else:
                T.copy(result, R[by, bx * m, 0])

    return main
