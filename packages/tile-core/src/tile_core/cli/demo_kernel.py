"""The kernel that ``tile demo`` and ``tile doctor`` compile: a GEMM in ordinary tile code."""

# Parameters of kernels are annotated with shapes, which type checkers do not know.
# mypy: ignore-errors
# ruff: noqa: ANN202

from __future__ import annotations

from typing import Any

import tile_core.language as T


def matmul(M: int, N: int, K: int, block_M: int = 128, block_N: int = 128, block_K: int = 32) -> Any:
    """Return ``C = A @ B`` in float32, computed in blocks of ``block_M x block_N``."""
    f32 = T.float32

    @T.prim_func
    def gemm(A: T.Tensor((M, K), f32), B: T.Tensor((K, N), f32), C: T.Tensor((M, N), f32)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), f32)
            B_s = T.alloc_shared((block_K, block_N), f32)
            C_f = T.alloc_fragment((block_M, block_N), f32)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm
