"""Two launches in a program with a workspace: partial products, and their reduction."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def split_k(M, N, K, parts, block_M=32, block_N=32, block_K=32):
    each = -(-K // (parts * block_K))

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        partial = T.alloc_global((parts, M, N), "float32")
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), parts, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(local)
            for k in T.Pipelined(each, num_stages=2):
                T.copy(A[by * block_M, (bz * each + k) * block_K], A_shared)
                T.copy(B[(bz * each + k) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, local)
            T.copy(local, partial[bz, by * block_M, bx * block_N])
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for part in T.serial(parts):
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += partial[part, by * block_M + i, bx * block_N + j]
            T.copy(total, C[by * block_M, bx * block_N])

    return main


rng = np.random.default_rng()
a, b = rng.standard_normal((50, 300)).astype("float16"), rng.standard_normal((300, 40)).astype("float16")
c = split_k(50, 40, 300, 4)(a, b)
np.testing.assert_allclose(c, a.astype("float64") @ b.astype("float64"), rtol=1e-4, atol=1e-3)
print("two launches: right")
