"""Named barriers: a producer fills two slots, a consumer multiplies them, by phases."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def product(M, N, K, block_K=32, stages=2, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=256):
            A_shared = T.alloc_shared((stages, M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, N), dtype)
            C_local = T.alloc_fragment((M, N), "float32")
            loaded = T.alloc_barrier([128] * stages)
            freed = T.alloc_barrier([128] * stages)
            with T.ws(1):
                T.clear(C_local)
            for k in range(K // block_K):
                slot, phase = k % stages, k // stages
                with T.ws(0):
                    T.mbarrier_wait_parity(freed[slot], (phase + 1) % 2)
                    T.copy(A[0, k * block_K], A_shared[slot, :, :])
                    T.copy(B[k * block_K, 0], B_shared[slot, :, :])
                    T.mbarrier_arrive(loaded[slot])
                with T.ws(1):
                    T.mbarrier_wait_parity(loaded[slot], phase % 2)
                    T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    T.mbarrier_arrive(freed[slot])
            with T.ws(1):
                T.copy(C_local, C)

    return main


rng = np.random.default_rng()
a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((64, 256), (256, 64)))
c = product(64, 64, 256)(a, b)
np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
print("barriers with names: right")
