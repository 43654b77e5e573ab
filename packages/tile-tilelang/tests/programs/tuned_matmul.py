"""A tuned product: configurations are compared with a reference, and the fastest one is taken."""

import itertools

import numpy as np
import tilelang
import tilelang.language as T


def configurations():
    blocks, stages = [32, 64], [1, 2]
    return [{"block_M": m, "block_N": 64, "num_stages": s} for m, s in itertools.product(blocks, stages)]


def reference(a, b):
    return a.astype("float32") @ b.astype("float32").T


def inputs(params):
    rng = np.random.default_rng(1)
    return [rng.standard_normal([int(d) for d in p.shape]).astype(str(p.dtype)) for p in params[:2]]


@tilelang.autotune(
    configs=configurations(), warmup=1, rep=2, timeout=60, ref_prog=reference, supply_prog=inputs, rtol=1e-2, atol=1e-2,
    max_mismatched_ratio=0.0, cache_input_tensors=True,
)  # fmt: skip
@tilelang.jit(out_idx=[2])
def matmul(M, N, K, block_M=None, block_N=None, num_stages=None):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, 32), "float16")
            B_shared = T.alloc_shared((block_N, 32), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=num_stages):
                T.copy(A[by * block_M, k * 32], A_shared)
                T.copy(B[bx * block_N, k * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


kernel = matmul(70, 90, 64)
assert kernel.config in configurations()
assert kernel.latency > 0
rng = np.random.default_rng()
a, b = rng.standard_normal((70, 64)).astype("float16"), rng.standard_normal((90, 64)).astype("float16")
np.testing.assert_allclose(kernel(a, b), reference(a, b), rtol=1e-3, atol=1e-3)
one = matmul(70, 90, 64, block_M=32, block_N=64, num_stages=1)
np.testing.assert_allclose(one(a, b), reference(a, b), rtol=1e-3, atol=1e-3)
print(f"best {kernel.config}: {kernel.latency:.4f} ms")
