"""Programs of the layers: products with a weight of constant extents."""

# Parameters of kernels are annotated with shapes, which type checkers do not support.
# mypy: ignore-errors
# ruff: noqa: ANN202

from __future__ import annotations

import functools
from typing import Any

import tile_core.language as T
from tile_core import sparse
from tile_torch.launching import TorchKernel, kernel

BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 64
THREADS, STAGES = 128, 3


@functools.cache
def product(M: int | None, N: int, K: int | None, dtype: str, transpose_A: bool, transpose_B: bool) -> TorchKernel:
    """Return the product of two matrices; a call gives the extent that is ``None``."""
    m = T.dynamic("m")
    rows, inner = (m if extent is None else extent for extent in (M, K))
    A_shape, B_shape = (inner, rows) if transpose_A else (rows, inner), (N, inner) if transpose_B else (inner, N)
    A_tile = (BLOCK_K, BLOCK_M) if transpose_A else (BLOCK_M, BLOCK_K)
    B_tile = (BLOCK_N, BLOCK_K) if transpose_B else (BLOCK_K, BLOCK_N)

    @T.prim_func
    def product(A: T.Tensor(A_shape, dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((rows, N), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(rows, BLOCK_M), threads=THREADS) as (bx, by):
            A_s, B_s = T.alloc_shared(A_tile, dtype), T.alloc_shared(B_tile, dtype)
            C_f = T.alloc_fragment((BLOCK_M, BLOCK_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(inner, BLOCK_K), num_stages=STAGES):
                if transpose_A:
                    T.copy(A[k * BLOCK_K, by * BLOCK_M], A_s)
                else:
                    T.copy(A[by * BLOCK_M, k * BLOCK_K], A_s)
                if transpose_B:
                    T.copy(B[bx * BLOCK_N, k * BLOCK_K], B_s)
                else:
                    T.copy(B[k * BLOCK_K, bx * BLOCK_N], B_s)
                T.gemm(A_s, B_s, C_f, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(C_f, C[by * BLOCK_M, bx * BLOCK_N])

    return kernel(product)


@functools.cache
def sparse_product(N: int, K: int, dtype: str) -> TorchKernel:
    """Return the product with a compressed weight, padded to whole words of metadata."""
    m, e = T.dynamic("m"), sparse.E_FACTOR_MAP[dtype]["int16"]
    padded = -(-K // e) * e

    @T.prim_func
    def sparse_product(
        X: T.Tensor((m, K), dtype),
        V: T.Tensor((N, padded // 2), dtype),
        E: T.Tensor((N, padded // e), "int16"),
        Y: T.Tensor((m, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(m, BLOCK_M), T.ceildiv(N, BLOCK_N), threads=THREADS) as (bx, by):
            V_s, E_s = T.alloc_shared((BLOCK_N, BLOCK_K // 2), dtype), T.alloc_shared((BLOCK_N, BLOCK_K // e), "int16")
            X_s = T.alloc_shared((BLOCK_M, BLOCK_K), dtype)
            Y_f = T.alloc_fragment((BLOCK_N, BLOCK_M), "float32")
            T.clear(Y_f)
            for k in T.Pipelined(T.ceildiv(K, BLOCK_K), num_stages=STAGES):
                T.copy(V[by * BLOCK_N, k * BLOCK_K // 2], V_s)
                T.copy(E[by * BLOCK_N, k * BLOCK_K // e], E_s)
                T.copy(X[bx * BLOCK_M, k * BLOCK_K], X_s)
                T.gemm_sp(V_s, E_s, X_s, Y_f, transpose_B=True)
            for i, j in T.Parallel(BLOCK_M, BLOCK_N):
                Y[bx * BLOCK_M + i, by * BLOCK_N + j] = Y_f[j, i]

    return kernel(sparse_product)


@functools.cache
def scaled_product(N: int, K: int, dtype: str) -> TorchKernel:
    """Return the product of 8-bit floats with a scale for each row."""
    m = T.dynamic("m")

    @T.prim_func
    def scaled_product(
        X: T.Tensor((m, K), dtype),
        a: T.Tensor((m,), "float32"),
        W: T.Tensor((N, K), dtype),
        b: T.Tensor((N,), "float32"),
        Y: T.Tensor((m, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(m, BLOCK_M), threads=THREADS) as (bx, by):
            X_s, W_s = T.alloc_shared((BLOCK_M, BLOCK_K), dtype), T.alloc_shared((BLOCK_N, BLOCK_K), dtype)
            Y_f = T.alloc_fragment((BLOCK_M, BLOCK_N), "float32")
            T.clear(Y_f)
            for k in T.Pipelined(T.ceildiv(K, BLOCK_K), num_stages=STAGES):
                T.copy(X[by * BLOCK_M, k * BLOCK_K], X_s)
                T.copy(W[bx * BLOCK_N, k * BLOCK_K], W_s)
                T.gemm(X_s, W_s, Y_f, transpose_B=True)
            for i, j in T.Parallel(BLOCK_M, BLOCK_N):
                Y_f[i, j] *= a[by * BLOCK_M + i] * b[bx * BLOCK_N + j]
            T.copy(Y_f, Y[by * BLOCK_M, bx * BLOCK_N])

    return kernel(scaled_product)


@functools.cache
def four_bit_product(N: int, K: int, group: int, dtype: str) -> TorchKernel:
    """Return the product with integers of four bits, scaled in groups along K."""
    m, groups = T.dynamic("m"), -(-K // group)

    @T.prim_func
    def four_bit_product(
        X: T.Tensor((m, K), dtype),
        W: T.Tensor((N, K), "int4"),
        S: T.Tensor((N, groups), dtype),
        Y: T.Tensor((m, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(m, BLOCK_M), threads=THREADS) as (bx, by):
            X_s, W_s = T.alloc_shared((BLOCK_M, BLOCK_K), dtype), T.alloc_shared((BLOCK_N, BLOCK_K), dtype)
            Y_f = T.alloc_fragment((BLOCK_M, BLOCK_N), "float32")
            T.clear(Y_f)
            for k in T.Pipelined(T.ceildiv(K, BLOCK_K), num_stages=STAGES):
                T.copy(X[by * BLOCK_M, k * BLOCK_K], X_s)
                for i, j in T.Parallel(BLOCK_N, BLOCK_K):
                    n, c = bx * BLOCK_N + i, k * BLOCK_K + j
                    W_s[i, j] = T.cast(W[n, c], dtype) * S[n, c // group]
                T.gemm(X_s, W_s, Y_f, transpose_B=True)
            T.copy(Y_f, Y[by * BLOCK_M, bx * BLOCK_N])

    return kernel(four_bit_product)


def type_name(kind: Any) -> str:
    """Return the name of an element type of torch, as programs write it."""
    return str(kind).rpartition(".")[2]
