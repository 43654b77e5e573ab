"""Causal attention: two stages, tuned block sizes, checked with a reference, timed."""

import itertools

import numpy as np
import tilelang
import tilelang.language as T


def configurations():
    return [{"block_M": m, "block_N": n, "num_stages": s} for m, n, s in itertools.product((32, 64), (32, 64), (1, 2))]


def reference(q, k, v):
    scores = np.einsum("hqd,hkd->hqk", q.astype("float32"), k.astype("float32")) / np.sqrt(q.shape[2])
    rows, columns = scores.shape[1:]
    scores = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (np.einsum("hqk,hkd->hqd", weights, v.astype("float32")) / weights.sum(axis=2, keepdims=True)).astype(
        q.dtype
    )


@tilelang.autotune(configs=configurations(), warmup=1, rep=1, ref_prog=reference, rtol=2e-2, atol=2e-2)
@tilelang.jit(out_idx=[3], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: False})
def attention(heads, length, width, block_M=64, block_N=64, num_stages=1):
    scale = 1.4426950408889634 / width**0.5
    shape = (heads, length, width)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        Out: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(length, block_M), heads, threads=128) as (bx, h):
            Q_shared = T.alloc_shared((block_M, width), "float16")
            K_shared = T.alloc_shared((block_N, width), "float16")
            V_shared = T.alloc_shared((block_N, width), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            cast = T.alloc_fragment((block_M, block_N), "float16")
            total = T.alloc_fragment((block_M, width), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            logsum = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[h, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(total, 0)
            T.fill(logsum, 0)
            T.fill(top, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv((bx + 1) * block_M, block_N), num_stages=num_stages):
                T.copy(K[h, k * block_N : (k + 1) * block_N, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.if_then_else(bx * block_M + i >= k * block_N + j, 0, -T.infinity("float32"))
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    before[i] = T.exp2(before[i] * scale - top[i] * scale)
                    logsum[i] = logsum[i] * before[i] + part[i]
                for i, j in T.Parallel(block_M, width):
                    total[i, j] *= before[i]
                T.copy(scores, cast)
                T.copy(V[h, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(cast, V_shared, total, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, width):
                total[i, j] /= logsum[i]
            T.copy(total, Out[h, bx * block_M : (bx + 1) * block_M, :])

    return main


def main():
    kernel = attention(2, 130, 32)
    rng = np.random.default_rng()
    q, k, v = (rng.standard_normal((2, 130, 32)).astype("float16") for _ in range(3))
    np.testing.assert_allclose(kernel(q, k, v), reference(q, k, v), rtol=2e-2, atol=2e-2)
    assert set(kernel.config) == {"block_M", "block_N", "num_stages"}
    latency = kernel.get_profiler().do_bench(warmup=1, rep=2)
    print(f"{kernel.config}: {latency:.4f} ms")


if __name__ == "__main__":
    main()
