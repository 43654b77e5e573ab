"""A product in the eager style: sizes come from the arguments."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, block_M: int = 64, block_N: int = 32, block_K: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


rng = np.random.default_rng()
for m, n, k in [(65, 31, 40), (64, 64, 64)]:
    a, b = rng.standard_normal((m, k)).astype("float16"), rng.standard_normal((k, n)).astype("float16")
    expected = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
    np.testing.assert_allclose(matmul(a, b), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(matmul(a, b, block_M=32), expected, rtol=1e-3, atol=1e-3)
assert matmul.get_kernel_source(a, b) == matmul.compile(a, b).kernel_source
print("eager product: right")
