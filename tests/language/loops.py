"""Kernels of examples/ with element loops instead of whole-tile expressions."""

from __future__ import annotations

from typing import Any

import tile_core.language as T

LOG2_E = 1.4426950408889634


def attention(
    batch: int, heads: int, queries: int, keys: int, dim: int, causal: bool, dtype: str = "float16",
    block_M: int = 64, block_N: int = 64,
) -> Any:  # fmt: skip
    scale = LOG2_E / dim**0.5  # exp(x / sqrt(dim)) is exp2(x * scale)
    past = keys - queries  # with a causal mask the last query sees the last key

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, queries, dim), dtype),
        K: T.Tensor((batch, heads, keys, dim), dtype),
        V: T.Tensor((batch, heads, keys, dim), dtype),
        Output: T.Tensor((batch, heads, queries, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(queries, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            output = T.alloc_fragment((block_M, dim), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            top_before = T.alloc_fragment((block_M,), "float32")
            correction = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.clear(output)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            # A block of queries sees no key after its last query.
            seen = T.min(keys, (bx + 1) * block_M + past) if causal else keys
            for n in T.Pipelined(T.ceildiv(seen, block_N), num_stages=2):
                T.copy(K[bz, by, n * block_N : (n + 1) * block_N, :], K_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    visible = n * block_N + j < keys
                    if causal:
                        visible = T.all_of(visible, bx * block_M + i + past >= n * block_N + j)
                    scores[i, j] = T.if_then_else(visible, scores[i, j] * scale, -T.infinity("float32"))
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    correction[i] = T.exp2(top_before[i] - top[i])
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] - top[i])
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * correction[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    output[i, j] = output[i, j] * correction[i]
                T.copy(V[bz, by, n * block_N : (n + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, output)
            for i, j in T.Parallel(block_M, dim):
                output[i, j] = output[i, j] / total[i]
            T.copy(output, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def rms_norm(M: int, N: int, dtype: str, threads: int, block_M: int = 1, eps: float = 1e-6) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            total = T.alloc_reducer((block_M,), "float32", "sum")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                total[i] += x[i, j] * x[i, j]
            T.finalize_reducer(total)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * T.rsqrt(total[i] / N + eps) * T.cast(W[j], "float32")
            T.copy(x, Y[bx * block_M, 0])

    return main


def route(M: int, N: int, K: int, dtype: str = "float32", block_M: int = 8) -> Any:
    """Choose each row's K largest of N scores, and weights with a total of 1."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((M, K), "float32"), E: T.Tensor((M, K), "int32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, N), dtype)
            values, experts = T.alloc_fragment((block_M, K), dtype), T.alloc_fragment((block_M, K), "int32")
            weights, total = T.alloc_fragment((block_M, K), "float32"), T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.topk(x, values, experts, dim=1)
            for i, j in T.Parallel(block_M, K):
                weights[i, j] = T.exp(T.cast(values[i, j], "float32") - T.cast(values[i, 0], "float32"))
            T.reduce_sum(weights, total, dim=1)
            for i, j in T.Parallel(block_M, K):
                weights[i, j] = weights[i, j] / total[i]
            T.copy(weights, W[bx * block_M, 0])
            T.copy(experts, E[bx * block_M, 0])

    return main


def softmax(M: int, N: int, dtype: str, threads: int, block_M: int = 1) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * block_M, 0])

    return main


def stream_k_sum(count: int, M: int, N: int) -> Any:
    """The second launch of stream-K and of decoding: parts in a workspace are added up."""

    @T.prim_func
    def main(P: T.Tensor((count, M, N), "float32"), W: T.Tensor((count,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_fragment((M, N), "float32")
            T.clear(total)
            for k in T.serial(count):
                for i, j in T.Parallel(M, N):
                    total[i, j] += P[k, i, j] * W[k]
            T.copy(total, C)

    return main
