"""Kernels for the backend ``text_backend``."""

import tile_core.language as T


def scaled(factor=2.0, n=None):
    n = T.dynamic("n") if n is None else n

    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * T.float32(factor)

    return scale
