"""A product in factory style: swizzled tiles, a pipeline, a profiler, the text."""

import argparse

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.layout import make_swizzled_layout


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.annotate_layout({A_shared: make_swizzled_layout(A_shared), B_shared: T.make_swizzled_layout(B_shared)})
            T.use_swizzle(panel_size=10, order="row")
            T.disable_warp_group_reg_alloc()
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def reference(a, b):
    return a.astype("float32") @ b.astype("float32")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=100)
    m, n, k = parser.parse_args().m, 96, 72
    kernel = matmul(m, n, k, 64, 64, 32)
    rng = np.random.default_rng()
    a, b = rng.standard_normal((m, k)).astype("float16"), rng.standard_normal((k, n)).astype("float16")
    np.testing.assert_allclose(kernel(a, b).astype("float32"), reference(a, b), rtol=1e-2, atol=1e-2)
    profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
    profiler.assert_allclose(reference, rtol=1e-2, atol=1e-2)
    latency = profiler.do_bench(warmup=1, rep=2)
    assert latency > 0
    assert kernel.get_kernel_source() == matmul.get_kernel_source(m, n, k, 64, 64, 32)
    print(f"latency {latency:.4f} ms, {len(kernel.get_kernel_source())} characters")


if __name__ == "__main__":
    main()
