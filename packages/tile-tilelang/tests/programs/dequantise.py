"""A product with weights of four bits: unpacked by shifts, cast, and multiplied."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], target={"kind": "llvm"})
def dequantised(M, N, K, block_M=32, block_N=32, block_K=64):
    @T.macro
    def unpack(packed, scale, out):
        for i, j in T.Parallel(block_N, block_K):
            bits = (packed[i, j // 2] >> T.Cast("uint8", (j % 2) * 4)) & 15
            out[i, j] = T.cast((T.cast(bits, "float32") - 8.0) * scale[i], "float16")

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K // 2), "uint8"), S: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            scale = T.alloc_shared((block_N,), "float32")
            W_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(S[bx * block_N], scale)
            T.clear(C_local)
            for k in T.serial(T.ceildiv(K, block_K)):
                T.copy(A[by * block_M, k * block_K], A_shared, prefer_instruction="tma", annotations={"note": 1})
                T.copy(W[bx * block_N, k * (block_K // 2)], packed)
                unpack(packed, scale, W_shared)
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


M, N, K = 40, 50, 128
rng = np.random.default_rng()
a, codes = rng.standard_normal((M, K)).astype("float16"), rng.integers(0, 16, (N, K), dtype="uint8")
scale = rng.uniform(0.5, 1, N).astype("float32")
packed = codes[:, 0::2] | codes[:, 1::2] << 4
weights = ((codes.astype("float32") - 8) * scale[:, None]).astype("float16").astype("float64")
c = dequantised(M, N, K)(a, packed, scale)
np.testing.assert_allclose(c, a.astype("float64") @ weights.T, rtol=1e-4, atol=1e-2)
print("weights of four bits: right")
