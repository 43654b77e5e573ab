"""The kernels of ``tile demo`` and ``tile doctor``: a GEMM, dense and 2:4 sparse."""

# Parameters of kernels are annotated with shapes, which type checkers do not support.
# mypy: ignore-errors
# ruff: noqa: ANN202

from __future__ import annotations

from typing import Any

import tile_core.language as T


def matmul(
    M: int, N: int, K: int, block_M: int = 128, block_N: int = 128, block_K: int = 32, dtype: str = "float32"
) -> Any:
    """Return ``C = A @ B`` in float32, computed in blocks of ``block_M x block_N``."""

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm


def matmul_sp(M: int, N: int, K: int, block_M: int = 128, block_N: int = 128, block_K: int = 64) -> Any:
    """Return ``C = decompress(A_sparse, E) @ B`` in float32, for 2:4 sparse A."""
    f16, i16 = T.float16, T.int16
    e = 16  # elements of K that one int16 of metadata describes

    @T.prim_func
    def gemm_sp(
        A_sparse: T.Tensor((M, K // 2), f16),
        E: T.Tensor((M, K // e), i16),
        B: T.Tensor((K, N), f16),
        C: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K // 2), f16)
            E_s = T.alloc_shared((block_M, block_K // e), i16)
            B_s = T.alloc_shared((block_K, block_N), f16)
            C_f = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A_sparse[by * block_M, k * block_K // 2], A_s)
                T.copy(E[by * block_M, k * block_K // e], E_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm_sp
