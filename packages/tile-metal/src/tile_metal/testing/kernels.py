"""Programs of the cases in ``cases.py``, in ordinary source."""

# Parameters of kernels are annotated with shapes, which type checkers do not support.
# mypy: ignore-errors
# ruff: noqa: ANN202

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tile_core.language as T

F32 = "float32"
LOG2_E = 1.4426950408889634


def product(
    M: int, N: int, K: int, dtype: str, *, transposed: bool = False, activated: bool = False, block: int = 64
) -> Any:
    """Return ``A @ B``, with B transposed, or ``silu(A @ B + bias)``."""
    block_M = min(block, max(8, M))

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K) if transposed else (K, N), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, 32), dtype)
            B_s = T.alloc_shared((block, 32) if transposed else (32, block), dtype)
            C_f = T.alloc_fragment((block_M, block), F32)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=1):
                T.copy(A[by * block_M, k * 32], A_s)
                if transposed:
                    T.copy(B[bx * block, k * 32], B_s)
                else:
                    T.copy(B[k * 32, bx * block], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=transposed)
            if activated:
                for i, j in T.Parallel(block_M, block):
                    y = C_f[i, j] + T.cast(bias[bx * block + j], F32)
                    C_f[i, j] = y * T.sigmoid(y)
            T.copy(C_f, C[by * block_M, bx * block])

    return main


def vector(N: int, K: int, dtype: str) -> Any:
    """Return ``y = W @ x``."""

    @T.prim_func
    def main(x: T.Tensor((K,), dtype), W: T.Tensor((N, K), dtype), y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 8), threads=64) as bx:
            total = T.alloc_reducer((8,), F32, "sum")
            for k in T.serial(T.ceildiv(K, 512)):
                for i, j in T.Parallel(8, 512):
                    total[i] += T.cast(x[k * 512 + j], F32) * T.cast(W[bx * 8 + i, k * 512 + j], F32)
            T.finalize_reducer(total)
            T.copy(total, y[bx * 8])

    return main


def attention(heads: int, queries: int, keys: int, dim: int, causal: bool, dtype: str) -> Any:
    """Return attention; in a causal mask the last query sees the last key."""
    rows = columns = 32
    scale, past = LOG2_E / dim**0.5, keys - queries

    @T.prim_func
    def main(
        Q: T.Tensor((heads, queries, dim), dtype),
        K: T.Tensor((heads, keys, dim), dtype),
        V: T.Tensor((heads, keys, dim), dtype),
        Out: T.Tensor((heads, queries, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(queries, rows), heads, threads=128) as (bx, h):
            Q_s, K_s = T.alloc_shared((rows, dim), dtype), T.alloc_shared((columns, dim), dtype)
            V_s = T.alloc_shared((columns, dim), dtype)
            scores, weights = T.alloc_fragment((rows, columns), F32), T.alloc_fragment((rows, columns), dtype)
            out = T.alloc_fragment((rows, dim), F32)
            top, before = T.alloc_fragment((rows,), F32), T.alloc_fragment((rows,), F32)
            part, total = T.alloc_fragment((rows,), F32), T.alloc_fragment((rows,), F32)
            T.copy(Q[h, bx * rows : (bx + 1) * rows, :], Q_s)
            T.clear(out)
            T.clear(total)
            T.fill(top, -T.infinity(F32))
            seen = T.min(keys, (bx + 1) * rows + past) if causal else keys
            for n in T.Pipelined(T.ceildiv(seen, columns), num_stages=1):
                T.copy(K[h, n * columns : (n + 1) * columns, :], K_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(rows, columns):
                    visible = n * columns + j < keys
                    if causal:
                        visible = T.all_of(visible, bx * rows + i + past >= n * columns + j)
                    scores[i, j] = T.if_then_else(visible, scores[i, j] * scale, -T.infinity(F32))
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                scores[...] = T.exp2(scores - top[:, None])
                T.reduce_sum(scores, part, dim=1)
                total[...] = total * T.exp2(before - top) + part
                T.copy(scores, weights)
                out *= T.exp2(before - top)[:, None]
                T.copy(V[h, n * columns : (n + 1) * columns, :], V_s)
                T.gemm(weights, V_s, out)
            out /= total[:, None]
            T.copy(out, Out[h, bx * rows : (bx + 1) * rows, :])

    return main


def rows(M: int, N: int, dtype: str, kind: str) -> Any:
    """Return a function of whole rows: ``softmax``, ``rms_norm``, ``layer_norm`` or ``cumsum``."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as bx:
            x = T.alloc_fragment((1, N), F32)
            total = T.alloc_fragment((1,), F32)
            T.copy(X[bx, 0], x)
            if kind == "softmax":
                T.reduce_max(x, total, dim=1)
                x[...] = T.exp(x - total[:, None])
                T.reduce_sum(x, total, dim=1)
                x /= total[:, None]
            if kind == "layer_norm":
                T.reduce_sum(x, total, dim=1)
                x[...] = x - (total / N)[:, None]
            if kind.endswith("norm"):
                square = T.alloc_fragment((1, N), F32)
                square[...] = x * x
                T.reduce_sum(square, total, dim=1)
                x[...] = x * T.rsqrt(total / N + 1e-5)[:, None] * T.cast(W, F32)
            if kind == "cumsum":
                T.cumsum(x, dim=1)
            T.copy(x, Y[bx, 0])

    return main


def reduction(M: int, N: int, dtype: str, kind: str) -> Any:
    """Return the ``sum`` or ``max`` of each row."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(M, threads=128) as bx:
            x, total = T.alloc_fragment((1, N), F32), T.alloc_fragment((1,), F32)
            T.copy(X[bx, 0], x)
            (T.reduce_sum if kind == "sum" else T.reduce_max)(x, total, dim=1)
            T.copy(total, Y[bx])

    return main


def elements(n: int, dtype: str, function: Callable[..., Any]) -> Any:
    """Return ``Z = function(X, Y)``, computed in float32."""

    @T.prim_func
    def main(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype), Z: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 1024), threads=256) as bx:
            for i in T.Parallel(1024):
                at = bx * 1024 + i
                Z[at] = function(T.cast(X[at], F32), T.cast(Y[at], F32))

    return main


def transposed(M: int, N: int, dtype: str) -> Any:
    """Return the transpose of a matrix."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=256) as (bx, by):
            x = T.alloc_shared((32, 32), dtype)
            T.copy(X[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                Y[bx * 32 + i, by * 32 + j] = x[j, i]

    return main


def gathered(rows: int, width: int, count: int, dtype: str) -> Any:
    """Return rows of a matrix by their numbers."""

    @T.prim_func
    def main(X: T.Tensor((rows, width), dtype), at: T.Tensor((count,), "int32"), Y: T.Tensor((count, width), dtype)):
        with T.Kernel(T.ceildiv(count, 16), threads=128) as bx:
            for i, j in T.Parallel(16, width):
                Y[bx * 16 + i, j] = X[at[bx * 16 + i], j]

    return main
