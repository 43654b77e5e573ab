"""Kernels for the tests of this folder, written as users write theirs."""

from __future__ import annotations

import tile_core.language as T


def scale(M, N, dtype="float32"):
    @T.prim_func
    def scale(A: T.Tensor((M, N), dtype), s: T.float32, B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 16), threads=32) as bx:
            tile = T.alloc_shared((16, 64), dtype)
            for j in T.serial(T.ceildiv(N, 64)):
                T.copy(A[bx * 16, j * 64], tile)
                for i, k in T.Parallel(16, 64):
                    tile[i, k] = tile[i, k] * s
                T.copy(tile, B[bx * 16, j * 64])

    return scale


def scalars(dtype):
    @T.prim_func
    def scalars(x: getattr(T, dtype), B: T.Tensor((4,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = x

    return scalars


def halving():
    @T.prim_func
    def halving(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(8, threads=32) as bx:
            x = T.alloc_local((1,), "int32")
            n = T.alloc_local((1,), "int32")
            x[0] = A[bx]
            n[0] = 0
            while x[0] > 0:
                x[0] = x[0] // 2
                n[0] = n[0] + 1
            B[bx] = n[0]

    return halving


def two_launches(n):
    @T.prim_func
    def two_launches(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] + T.float32(1)
        with T.Kernel(T.ceildiv(n, 64), threads=32) as bx:
            for i in T.Parallel(64):
                C[bx * 64 + i] = B[bx * 64 + i] * T.float32(2)

    return two_launches
