"""Ordinary programs of a model's layers: elementwise, norms, reductions, layouts and conversions."""

# Annotations of kernels are shapes and names of element types, no types.
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tile_core.language as T


def elementwise(M: int, N: int, dtype: str, inputs: int, function: Callable[..., Any], out: str = "") -> Any:
    """Return a program that applies a function of ``inputs`` tensors to each element, computed in ``float32``."""
    kinds = [T.Tensor((M, N), dtype)] * inputs

    def cast(x: Any) -> Any:
        return T.cast(x, "float32") if dtype != "float32" else x

    if inputs == 1:

        @T.prim_func
        def main(X: kinds[0], Y: T.Tensor((M, N), out or dtype)) -> None:
            with T.Kernel(T.ceildiv(M, 8), threads=256) as bx:
                for i, j in T.Parallel(8, N):
                    Y[bx * 8 + i, j] = function(cast(X[bx * 8 + i, j]))
    else:

        @T.prim_func
        def main(X: kinds[0], Z: kinds[1], Y: T.Tensor((M, N), out or dtype)) -> None:
            with T.Kernel(T.ceildiv(M, 8), threads=256) as bx:
                for i, j in T.Parallel(8, N):
                    Y[bx * 8 + i, j] = function(cast(X[bx * 8 + i, j]), cast(Z[bx * 8 + i, j]))

    return main


def residual_rms(M: int, N: int, dtype: str) -> Any:
    """Return RMS norm of a total with a residual, which is stored, too."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), R: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype),
             Y: T.Tensor((M, N), dtype), S: T.Tensor((M, N), dtype)) -> None:  # fmt: skip
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((N,), "float32")
            t = T.alloc_fragment((1,), "float32")
            sq = T.alloc_fragment((N,), "float32")
            for j in T.Parallel(N):
                x[j] = T.cast(X[r, j], "float32") + T.cast(R[r, j], "float32")
            T.copy(x, S[r, :])
            sq[...] = x * x
            T.reduce_sum(sq, t, dim=0)
            x[...] = x * T.rsqrt(t[0] / N + 1e-6) * T.cast(W, "float32")
            T.copy(x, Y[r, :])

    return main


def layer_norm(M: int, N: int, dtype: str) -> Any:
    """Return layer norm with weights and a bias."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
             Y: T.Tensor((M, N), dtype)) -> None:  # fmt: skip
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((N,), "float32")
            sq = T.alloc_fragment((N,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            var = T.alloc_fragment((1,), "float32")
            T.copy(X[r, :], x)
            T.reduce_sum(x, mean, dim=0)
            x[...] = x - mean[0] / N
            sq[...] = x * x
            T.reduce_sum(sq, var, dim=0)
            x[...] = x * T.rsqrt(var[0] / N + 1e-5) * T.cast(W, "float32") + T.cast(B, "float32")
            T.copy(x, Y[r, :])

    return main


def softmax(M: int, N: int, dtype: str, causal: bool = False, log: bool = False) -> Any:
    """Return softmax of rows, of the first r + 1 elements of row r, or its logarithm."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((N,), "float32")
            e = T.alloc_fragment((N,), "float32")
            m = T.alloc_fragment((1,), "float32")
            z = T.alloc_fragment((1,), "float32")
            T.copy(X[r, :], x)
            if causal:
                for j in T.Parallel(N):
                    x[j] = T.if_then_else(j <= r, x[j], -T.infinity("float32"))
            T.reduce_max(x, m, dim=0)
            e[...] = T.exp(x - m[0])
            T.reduce_sum(e, z, dim=0)
            if log:
                x[...] = x - m[0] - T.log(z[0])
            else:
                x[...] = e / z[0]
            T.copy(x, Y[r, :])

    return main


def reduced(M: int, N: int, dtype: str, op: str) -> Any:
    """Return a reduction of rows by the op of this name."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), "float32")) -> None:
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((N,), "float32")
            t = T.alloc_fragment((1,), "float32")
            T.copy(X[r, :], x)
            getattr(T, op)(x, t, dim=0)
            T.copy(t, Y[r : r + 1])

    return main


def column_sum(M: int, N: int, dtype: str, block: int = 64) -> Any:
    """Return the totals of columns, as of a bias' gradient."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N,), "float32")) -> None:
        with T.Kernel(T.ceildiv(N, block), threads=256) as bx:
            x = T.alloc_fragment((64, block), "float32")
            t = T.alloc_fragment((block,), "float32")
            T.clear(t)
            for k in T.Pipelined(T.ceildiv(M, 64), num_stages=2):
                T.copy(X[k * 64, bx * block], x)
                T.reduce_sum(x, t, dim=0, clear=False)
            T.copy(t, Y[bx * block])

    return main


def argmax(M: int, N: int, dtype: str) -> Any:
    """Return the index of each row's largest element."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), "int64")) -> None:
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((1, N), "float32")
            at = T.alloc_fragment((1,), "int32")
            T.copy(X[r, 0], x)
            T.argmax(x, at, dim=1)
            Y[r] = T.cast(at[0], "int64")

    return main


def scanned(M: int, N: int, dtype: str) -> Any:
    """Return running totals of rows."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_shared((1, N), "float32")
            T.copy(X[r, 0], x)
            T.cumsum(x, dim=1)
            T.copy(x, Y[r, 0])

    return main


def transposed(M: int, N: int, dtype: str, block: int = 64) -> Any:
    """Return a transposition through tiles."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N, M), dtype)) -> None:
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            x = T.alloc_shared((block, block), dtype)
            y = T.alloc_shared((block, block), dtype)
            T.copy(X[by * block, bx * block], x)
            T.transpose(x, y)
            T.copy(y, Y[bx * block, by * block])

    return main


def heads_first(B: int, S: int, H: int, D: int, dtype: str) -> Any:
    """Return the permutation of (batch, sequence, heads, depth) to (batch, heads, sequence, depth)."""

    @T.prim_func
    def main(X: T.Tensor((B, S, H, D), dtype), Y: T.Tensor((B, H, S, D), dtype)) -> None:
        with T.Kernel(T.ceildiv(S, 64), H, B, threads=128) as (bx, h, b):
            x = T.alloc_shared((64, D), dtype)
            T.copy(X[b, bx * 64 : bx * 64 + 64, h, :], x)
            T.copy(x, Y[b, h, bx * 64 : bx * 64 + 64, :])

    return main


def rope(B: int, S: int, H: int, D: int, dtype: str) -> Any:
    """Return rotary embeddings of halves of a head."""

    @T.prim_func
    def main(X: T.Tensor((B, S, H, D), dtype), C: T.Tensor((S, D // 2), "float32"), N: T.Tensor((S, D // 2), "float32"),
             Y: T.Tensor((B, S, H, D), dtype)) -> None:  # fmt: skip
        with T.Kernel(S, B, threads=128) as (s, b):
            for h, d in T.Parallel(H, D // 2):
                low, high = T.cast(X[b, s, h, d], "float32"), T.cast(X[b, s, h, D // 2 + d], "float32")
                Y[b, s, h, d] = low * C[s, d] - high * N[s, d]
                Y[b, s, h, D // 2 + d] = high * C[s, d] + low * N[s, d]

    return main


def embedding(V: int, N: int, rows: int, dtype: str) -> Any:
    """Return the rows of a table that indices name."""

    @T.prim_func
    def main(E: T.Tensor((V, N), dtype), I: T.Tensor((rows,), "int32"), Y: T.Tensor((rows, N), dtype)) -> None:  # noqa: E741
        with T.Kernel(rows, threads=128) as r:
            T.copy(E[I[r], :], Y[r, :])

    return main


def quantized(M: int, N: int, dtype: str) -> Any:
    """Return rows in ``int8`` with a scale for each."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Q: T.Tensor((M, N), "int8"), S: T.Tensor((M,), "float32")) -> None:
        with T.Kernel(M, threads=256) as r:
            x = T.alloc_fragment((N,), "float32")
            top = T.alloc_fragment((1,), "float32")
            T.copy(X[r, :], x)
            T.reduce_absmax(x, top, dim=0)
            scale = T.max(top[0], 1e-8) / 127.0
            S[r] = scale
            for j in T.Parallel(N):
                Q[r, j] = T.cast(T.round(x[j] / scale), "int8")

    return main


def dequantized(M: int, N: int, dtype: str) -> Any:
    """Return floats of ``int8`` rows with scales."""

    @T.prim_func
    def main(Q: T.Tensor((M, N), "int8"), S: T.Tensor((M,), "float32"), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(M, threads=256) as r:
            for j in T.Parallel(N):
                Y[r, j] = T.cast(T.cast(Q[r, j], "float32") * S[r], dtype)

    return main
