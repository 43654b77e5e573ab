"""Attention to chosen keys: query blocks gather their rows of keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def attention(queries: int, keys: int, D: int, chosen: int, block_M: int = 16, block_N: int = 32) -> Any:
    scale = math.log2(math.e) / math.sqrt(D)

    @T.prim_func
    def main(
        Q: T.Tensor((queries, D), "float16"),
        K: T.Tensor((keys, D), "float16"),
        V: T.Tensor((keys, D), "float16"),
        index: T.Tensor((T.ceildiv(queries, block_M), chosen), "int32"),
        O: T.Tensor((queries, D), "float32"),  # noqa: E741
    ) -> None:
        with T.Kernel(T.ceildiv(queries, block_M), threads=128) as bx:
            Q_shared = T.alloc_shared((block_M, D), "float16")
            K_shared = T.alloc_shared((block_N, D), "float16")
            V_shared = T.alloc_shared((block_N, D), "float16")
            rows = T.alloc_shared((block_N,), "int32")
            S = T.alloc_fragment((block_M, block_N), "float32")
            P = T.alloc_shared((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, D), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bx * block_M, 0], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(largest, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv(chosen, block_N), num_stages=2):
                for j in T.Parallel(block_N):
                    # Positions beyond the list are no rows, which gather as zeros and are masked below.
                    rows[j] = T.if_then_else(n * block_N + j < chosen, index[bx, n * block_N + j], -1)
                T.gather(K, rows, K_shared)
                T.gather(V, rows, V_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.if_then_else(rows[j] >= 0, S[i, j] * scale, -T.infinity("float32"))
                T.copy(largest, before)
                T.reduce_max(S, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.exp2(S[i, j] - largest[i])
                T.reduce_sum(S, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2(before[i] - largest[i]) + part[i]
                for i, d in T.Parallel(block_M, D):
                    acc[i, d] = acc[i, d] * T.exp2(before[i] - largest[i])
                T.copy(S, P)
                T.gemm(P, V_shared, acc)
            for i, d in T.Parallel(block_M, D):
                acc[i, d] = acc[i, d] / total[i]
            T.copy(acc, O[bx * block_M, 0])

    return main


def one(queries: int, keys: int, D: int, chosen: int, target: str) -> bool:
    rng = np.random.default_rng(keys)
    q, k, v = (rng.standard_normal((n, D)).astype("float16") for n in (queries, keys, keys))
    blocks = -(-queries // 16)
    index = np.stack([rng.permutation(keys)[:chosen] for _ in range(blocks)]).astype("int32")
    out = for_numpy(tile.compile(attention(queries, keys, D, chosen), target=target, out_idx=-1))(q, k, v, index)
    expected = np.empty((queries, D))
    for i in range(queries):
        mine = index[i // 16]
        scores = k[mine].astype("float64") @ q[i].astype("float64") / math.sqrt(D)
        weights = np.exp(scores - scores.max())
        expected[i] = weights @ v[mine].astype("float64") / weights.sum()
    # Probabilities are rounded to float16 before the second product.
    return check(f"attention {queries} queries, {chosen} of {keys} keys", out, expected, 2.0**-9)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [one(32, 128, 64, 64, target), one(45, 200, 32, 77, target), one(7, 50, 40, 33, target)]


if __name__ == "__main__":
    run(main, __doc__)
