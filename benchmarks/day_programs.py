"""Programs that ``serving_day_kernels.py`` lacks: fp4 and zeros, fp8 scales, attention with sinks, its gradients."""

# Annotations of kernels are shapes and names of element types, no types.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import tile_core.language as T

_LOG2_E = 1.4426950408889634


def zeros(
    M: int, N: int, K: int, group: int, bM: int, bN: int, bK: int, threads: int, stages: int, splits: int = 1,
    dtype: str = "bfloat16",
) -> Any:  # fmt: skip
    """Return a product with unsigned 4-bit weights, a scale and a zero for each group along K."""
    steps = -(-K // (bK * splits))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), W: T.Tensor((N, K), "uint4"), S: T.Tensor((N, K // group), dtype),
             Z: T.Tensor((N, K // group), dtype), C: T.Tensor((M, N), "float32")) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), splits, threads=threads) as (bx, by, s):
            a = T.alloc_shared((bM, bK), dtype)
            w = T.alloc_shared((bN, bK), dtype)
            q = T.alloc_shared((bN, bK), "uint4")
            acc = T.alloc_fragment((bM, bN), "float32")
            T.clear(acc)
            for k0 in T.Pipelined(steps, num_stages=stages):
                k = (s * steps + k0) * bK
                T.copy(A[by * bM, k], a)
                T.copy(W[bx * bN, k], q)
                for i, j in T.Parallel(bN, bK):
                    row, at = bx * bN + i, (k + j) // group
                    w[i, j] = (T.cast(q[i, j], dtype) - Z[row, at]) * S[row, at]
                T.gemm(a, w, acc, transpose_B=True)
            if splits == 1:
                T.copy(acc, C[by * bM, bx * bN])
            else:
                for i, j in T.Parallel(bM, bN):
                    T.atomic_add(C[by * bM + i, bx * bN + j], acc[i, j])

    return main


def fp4(
    M: int, N: int, K: int, group: int, bM: int, bN: int, bK: int, threads: int, stages: int, splits: int = 1,
    dtype: str = "bfloat16",
) -> Any:  # fmt: skip
    """Return a product with 4-bit floats, and a power of two for each group along K."""
    steps = -(-K // (bK * splits))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), W: T.Tensor((N, K), "float4_e2m1fn"),
             S: T.Tensor((N, K // group), "float8_e8m0fnu"), C: T.Tensor((M, N), "float32")) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), splits, threads=threads) as (bx, by, s):
            a = T.alloc_shared((bM, bK), dtype)
            w = T.alloc_shared((bN, bK), dtype)
            q = T.alloc_shared((bN, bK), "float4_e2m1fn")
            acc = T.alloc_fragment((bM, bN), "float32")
            T.clear(acc)
            for k0 in T.Pipelined(steps, num_stages=stages):
                k = (s * steps + k0) * bK
                T.copy(A[by * bM, k], a)
                T.copy(W[bx * bN, k], q)
                for i, j in T.Parallel(bN, bK):
                    row, at = bx * bN + i, (k + j) // group
                    w[i, j] = T.cast(q[i, j], dtype) * T.cast(S[row, at], dtype)
                T.gemm(a, w, acc, transpose_B=True)
            if splits == 1:
                T.copy(acc, C[by * bM, bx * bN])
            else:
                for i, j in T.Parallel(bM, bN):
                    T.atomic_add(C[by * bM + i, bx * bN + j], acc[i, j])

    return main


def fp8(
    M: int, N: int, K: int, bM: int, bN: int, bK: int, threads: int, stages: int, rows: bool = True,
    dtype: str = "float8_e4m3fn",
) -> Any:  # fmt: skip
    """Return a product of 8-bit floats, with a scale for each row of A and B, or for each of them as a whole."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), SA: T.Tensor((M if rows else 1,), "float32"), B: T.Tensor((N, K), dtype),
             SB: T.Tensor((N if rows else 1,), "float32"), C: T.Tensor((M, N), "bfloat16")) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=threads) as (bx, by):
            a = T.alloc_shared((bM, bK), dtype)
            b = T.alloc_shared((bN, bK), dtype)
            acc = T.alloc_fragment((bM, bN), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=stages):
                T.copy(A[by * bM, k * bK], a)
                T.copy(B[bx * bN, k * bK], b)
                T.gemm(a, b, acc, transpose_B=True)
            for i, j in T.Parallel(bM, bN):
                acc[i, j] *= SA[by * bM + i] * SB[bx * bN + j] if rows else SA[0] * SB[0]
            T.copy(acc, C[by * bM, bx * bN])

    return main


def sinks(
    B: int, H: int, G: int, S: int, D: int, bM: int, bN: int, threads: int, window: int = 0, dtype: str = "bfloat16"
) -> Any:
    """Return causal attention whose softmax has one more score for each head, without a value."""
    scale = _LOG2_E / D**0.5

    @T.prim_func
    def main(Q: T.Tensor((B, H, S, D), dtype), K: T.Tensor((B, G, S, D), dtype), V: T.Tensor((B, G, S, D), dtype),
             sink: T.Tensor((H,), "float32"), O: T.Tensor((B, H, S, D), dtype)) -> None:  # fmt: skip  # noqa: E741
        with T.Kernel(T.ceildiv(S, bM), H, B, threads=threads) as (bx, h, b):
            q = T.alloc_shared((bM, D), dtype)
            k = T.alloc_shared((bN, D), dtype)
            v = T.alloc_shared((bN, D), dtype)
            s = T.alloc_fragment((bM, bN), "float32")
            p = T.alloc_fragment((bM, bN), dtype)
            o = T.alloc_fragment((bM, D), "float32")
            top = T.alloc_fragment((bM,), "float32")
            before = T.alloc_fragment((bM,), "float32")
            part = T.alloc_fragment((bM,), "float32")
            total = T.alloc_fragment((bM,), "float32")
            T.copy(Q[b, h, bx * bM, 0], q)
            T.clear(o)
            T.fill(total, 1.0)
            T.fill(top, sink[h] * _LOG2_E)
            first = T.max(0, bx * bM - window + 1) // bN if window else 0
            last = T.ceildiv(T.min(S, (bx + 1) * bM), bN)
            for i in T.Pipelined(last - first, num_stages=2):
                n = (first + i) * bN
                T.copy(K[b, h // (H // G), n, 0], k)
                T.copy(V[b, h // (H // G), n, 0], v)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                for r, c in T.Parallel(bM, bN):
                    seen = bx * bM + r >= n + c
                    if window:
                        seen = T.all_of(seen, bx * bM + r < n + c + window)
                    s[r, c] = T.if_then_else(seen, s[r, c] * scale, -1e30)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                s[...] = T.exp2(s - top[:, None])
                T.reduce_sum(s, part, dim=1)
                before[...] = T.exp2(before - top)
                total[...] = total * before + part
                o *= before[:, None]
                T.copy(s, p)
                T.gemm(p, v, o)
            o /= total[:, None]
            T.copy(o, O[b, h, bx * bM, 0])

    return main


@T.macro
def row_products(O: Any, dO: Any, delta: Any, totals: Any, shape: tuple[int, ...]) -> None:  # noqa: E741
    """Launch the rows' totals of result times gradient, and clear the gradient of queries."""
    B, H, S, D = shape
    with T.Kernel(T.ceildiv(S, 64), H, B, threads=256) as (bx, h, b):
        both = T.alloc_fragment((64, D), "float32")
        line = T.alloc_fragment((64,), "float32")
        for i, d in T.Parallel(64, D):
            both[i, d] = T.cast(O[b, h, bx * 64 + i, d], "float32") * T.cast(dO[b, h, bx * 64 + i, d], "float32")
            totals[b, h, bx * 64 + i, d] = 0.0
        T.reduce_sum(both, line, dim=1)
        T.copy(line, delta[b, h, bx * 64])


@T.macro
def scaled(totals: Any, dQ: Any, shape: tuple[int, ...]) -> None:
    """Launch the conversion of the gradient of queries."""
    B, H, S, D = shape
    with T.Kernel(T.ceildiv(S, 64), H, B, threads=256) as (bx, h, b):
        for i, d in T.Parallel(64, D):
            dQ[b, h, bx * 64 + i, d] = totals[b, h, bx * 64 + i, d] / D**0.5


def backward(
    B: int, H: int, G: int, S: int, D: int, bM: int, bN: int, threads: int, stages: int, dtype: str = "bfloat16"
) -> Any:
    """Return the gradients of causal attention with grouped keys, from its result and its rows' logarithms to base 2.

    A block has keys and values, and takes their queries of all heads; the gradient of queries is added atomically.
    """
    R, scale = H // G, _LOG2_E / D**0.5
    Row, Key = T.Tensor((B, H, S, D), dtype), T.Tensor((B, G, S, D), dtype)

    @T.prim_func
    def main(Q: Row, K: Key, V: Key, O: Row, dO: Row, logs: T.Tensor((B, H, S), "float32"),  # noqa: E741
             dQ: Row, dK: Key, dV: Key) -> None:  # fmt: skip
        totals = T.alloc_global((B, H, S, D), "float32")
        delta = T.alloc_global((B, H, S), "float32")
        row_products(O, dO, delta, totals, (B, H, S, D))
        with T.Kernel(T.ceildiv(S, bN), G, B, threads=threads) as (bx, g, b):
            k, v = T.alloc_shared((bN, D), dtype), T.alloc_shared((bN, D), dtype)
            q, do = T.alloc_shared((bM, D), dtype), T.alloc_shared((bM, D), dtype)
            log, mean = T.alloc_shared((bM,), "float32"), T.alloc_shared((bM,), "float32")
            # Tiles of scores have keys as rows: so they are operands of the gradients of keys and values as they are.
            s = T.alloc_fragment((bN, bM), "float32")
            ds = T.alloc_fragment((bN, bM), "float32")
            p, dp = T.alloc_fragment((bN, bM), dtype), T.alloc_fragment((bN, bM), dtype)
            dp_s = T.alloc_shared((bN, bM), dtype)
            dk, dv = T.alloc_fragment((bN, D), "float32"), T.alloc_fragment((bN, D), "float32")
            dq, dq_s = T.alloc_fragment((bM, D), "float32"), T.alloc_shared((bM, D), "float32")
            T.copy(K[b, g, bx * bN, 0], k)
            T.copy(V[b, g, bx * bN, 0], v)
            T.clear(dk)
            T.clear(dv)
            first = bx * bN // bM
            for n in T.Pipelined((T.ceildiv(S, bM) - first) * R, num_stages=stages):
                m, h = (first + n // R) * bM, g * R + n % R
                T.copy(Q[b, h, m, 0], q)
                T.copy(dO[b, h, m, 0], do)
                T.copy(logs[b, h, m], log)
                T.copy(delta[b, h, m], mean)
                T.gemm(k, q, s, transpose_B=True, clear_accum=True)
                T.gemm(v, do, ds, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(bN, bM):
                    seen = m + j >= bx * bN + i
                    s[i, j] = T.if_then_else(seen, T.exp2(s[i, j] * scale - log[j]), 0.0)
                T.copy(s, p)
                T.gemm(p, do, dv)
                for i, j in T.Parallel(bN, bM):
                    ds[i, j] = s[i, j] * (ds[i, j] - mean[j])
                T.copy(ds, dp)
                T.copy(dp, dp_s)
                T.gemm(dp, q, dk)
                T.gemm(dp_s, k, dq, transpose_A=True, clear_accum=True)
                T.copy(dq, dq_s)
                T.atomic_add(totals[b, h, m, 0], dq_s)
            for i, d in T.Parallel(bN, D):
                dk[i, d] = dk[i, d] / D**0.5
            T.copy(dk, dK[b, g, bx * bN, 0])
            T.copy(dv, dV[b, g, bx * bN, 0])
        scaled(totals, dQ, (B, H, S, D))

    return main
