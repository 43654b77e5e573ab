"""Attention with the softmax on the way: reductions, exponentials, two products."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def attention(batch, heads, length, dim, block_M=32, block_N=32, is_causal=True):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape, dtype, accum = (batch, length, heads, dim), "float16", "float32"

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), Out: T.Tensor(shape, dtype)
    ):
        with T.Kernel(T.ceildiv(length, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, dim], dtype)
            K_shared = T.alloc_shared([block_N, dim], dtype)
            V_shared = T.alloc_shared([block_N, dim], dtype)
            scores = T.alloc_fragment([block_M, block_N], accum)
            weights = T.alloc_fragment([block_M, block_N], dtype)
            total = T.alloc_fragment([block_M, dim], accum)
            top = T.alloc_fragment([block_M], accum)
            before = T.alloc_fragment([block_M], accum)
            part = T.alloc_fragment([block_M], accum)
            log_sum = T.alloc_fragment([block_M], accum)
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(total, 0)
            T.fill(log_sum, 0)
            T.fill(top, -T.infinity(accum))
            steps = T.ceildiv((bx + 1) * block_M, block_N) if is_causal else T.ceildiv(length, block_N)
            for k in T.Pipelined(steps, num_stages=1):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    seen = k * block_N + j < length
                    if is_causal:
                        seen = T.all_of(seen, bx * block_M + i >= k * block_N + j)
                    scores[i, j] = T.if_then_else(seen, 0, -T.infinity(accum))
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    before[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    log_sum[i] = log_sum[i] * before[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    total[i, j] *= before[i]
                T.gemm(weights, V_shared, total, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                total[i, j] /= log_sum[i]
            T.copy(total, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def reference(q, k, v, causal):
    q, k, v = (x.astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / q.shape[-1] ** 0.5
    if causal:
        scores = np.where(np.tri(q.shape[2]) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


rng = np.random.default_rng()
for causal in (False, True):
    q, k, v = (rng.standard_normal((1, 70, 2, 32)).astype("float16") for _ in range(3))
    out = attention(1, 2, 70, 32, is_causal=causal)(q, k, v)
    np.testing.assert_allclose(out.astype("float64"), reference(q, k, v, causal), rtol=1e-2, atol=1e-2)
print("attention: right")
