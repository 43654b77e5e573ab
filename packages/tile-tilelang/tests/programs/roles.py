"""Named groups of threads, each with its half; register hints have no effect."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def halves(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((2, M, N), "float32")):
        with T.Kernel(1, threads=256):
            left, right = T.alloc_shared((M, N), "float32"), T.alloc_shared((M, N), "float32")
            with T.ws(0):
                T.set_max_nreg(40, 0)
                T.copy(A, left)
                for i, j in T.Parallel(M, N):
                    C[0, i, j] = left[M - 1 - i, j]
            with T.ws(1):
                T.set_max_nreg(200, 1)
                T.copy(B, right)
                for i, j in T.Parallel(M, N):
                    C[1, i, j] = right[i, N - 1 - j] + 1

    return main


a, b = np.random.default_rng().standard_normal((2, 32, 64)).astype("float32")
c = halves(32, 64)(a, b)
np.testing.assert_array_equal(c[0], a[::-1])
np.testing.assert_array_equal(c[1], b[:, ::-1] + np.float32(1))
print("groups of threads: right")
