"""A convolution as a product: im2col, and a view of the weights."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def convolution(N, C, H, W, F, K, S, D, P, block_M=32, block_N=16, block_K=16):
    OH, OW = ((size + 2 * P - D * (K - 1) - 1) // S + 1 for size in (H, W))

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), "float16"), kernel: T.Tensor((K, K, C, F), "float16"),
        out: T.Tensor((N, OH, OW, F), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (bx, by):
            data_shared = T.alloc_shared((block_M, block_K), "float16")
            kernel_shared = T.alloc_shared((block_K, block_N), "float16")
            local = T.alloc_fragment((block_M, block_N), "float32")
            flat_kernel = T.reshape(kernel, (K * K * C, F))
            flat_out = T.reshape(out, (N * OH * OW, F))
            T.clear(local)
            for k in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=2):
                T.im2col(data, data_shared, by, k, K, S, D, P)
                T.copy(flat_kernel[k * block_K, bx * block_N], kernel_shared)
                T.gemm(data_shared, kernel_shared, local)
            T.copy(local, flat_out[by * block_M, bx * block_N])

    return main


rng = np.random.default_rng()
x, w = rng.standard_normal((1, 7, 6, 16)).astype("float16"), rng.standard_normal((3, 3, 16, 20)).astype("float16")
found = convolution(1, 16, 7, 6, 20, 3, 1, 1, 1)(x, w)
padded = np.pad(x.astype("float64"), ((0, 0), (1, 1), (1, 1), (0, 0)))
expected = sum(padded[:, i : i + 7, j : j + 6] @ w[i, j].astype("float64") for i in range(3) for j in range(3))
np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
print("convolution: right")
