"""Products of matrices that lie anywhere: one launch reads their addresses from tables."""

import numpy as np
import tilelang
import tilelang.language as T


def grouped(groups, K, N, block_M=32, block_N=32, block_K=32, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def main(
        a_ptrs: T.Tensor([groups], T.ptr),
        b_ptrs: T.Tensor([groups], T.ptr),
        c_ptrs: T.Tensor([groups], T.ptr),
        rows: T.Tensor([groups], "int32"),
        most: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(most, block_M), groups, threads=128) as (bx, by, bz):
            A = T.make_tensor(a_ptrs[bz], (rows[bz], K), dtype)
            B = T.make_tensor(b_ptrs[bz], (K, N), dtype)
            C = T.make_tensor(c_ptrs[bz], (rows[bz], N), accum_dtype)
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.clamp(C_local[i, j], min_val=-4.0, max_val=4.0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


rows, K, N = [33, 1, 70], 45, 61
rng = np.random.default_rng(0)
a = [rng.standard_normal((m, K)).astype("float16") for m in rows]
b = [rng.standard_normal((K, N)).astype("float16") for _ in rows]
c = [np.full((m, N), np.nan, "float32") for m in rows]
kernel = tilelang.compile(grouped(len(rows), K, N), target="c")
addresses = [np.array([x.ctypes.data for x in arrays], "int64") for arrays in (a, b, c)]
kernel(*addresses, np.array(rows, "int32"), max(rows))
for x, y, z in zip(a, b, c, strict=True):
    exact = np.clip(x.astype("float64") @ y.astype("float64"), -4, 4)
    np.testing.assert_allclose(z, exact, rtol=1e-4, atol=1e-3)
print("right", kernel.get_kernel_source().count("\n"), "lines")
