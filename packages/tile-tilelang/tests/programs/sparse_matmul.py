"""A 2:4 sparse product: NumPy compressor, 16-bit metadata, three stages, a profiler."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul_sp(M, N, K, block_M, block_N, block_K, num_stages, accum_dtype="float32"):
    @T.prim_func
    def main(
        A_sparse: T.Tensor((M, K // 2), "float16"),
        E: T.Tensor((M, K // 16), "int16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K // 2), "float16")
            E_shared = T.alloc_shared((block_M, block_K // 16), "int16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            T.use_swizzle(panel_size=4)
            T.no_set_max_nreg()
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A_sparse[by * block_M, k * block_K // 2], A_shared)
                T.copy(E[by * block_M, k * block_K // 16], E_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm_sp(A_shared, E_shared, B_shared, C_local, policy=T.GemmWarpPolicy.Square)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def compress(a):
    """Keep the two largest of every four.

    A pair of positions is 4 bits, and four of them are a word.
    """
    groups = a.reshape(a.shape[0], -1, 4)
    positions = np.sort(np.argsort(-np.abs(groups), axis=2, kind="stable")[:, :, :2], axis=2)
    kept = np.take_along_axis(groups, positions, axis=2)
    nibbles = (positions[:, :, 0] | positions[:, :, 1] << 2).reshape(a.shape[0], -1, 4).astype("uint16")
    words = (nibbles << np.array([0, 4, 8, 12], "uint16")).sum(axis=2, dtype="uint16")
    dense = np.zeros_like(groups)
    np.put_along_axis(dense, positions, kept, axis=2)
    return kept.reshape(a.shape[0], -1), words.view("int16"), dense.reshape(a.shape)


def main():
    rng = np.random.default_rng()
    for m, n, k in ((96, 64, 128), (65, 40, 192)):
        a, b = rng.standard_normal((m, k)).astype("float16"), rng.standard_normal((k, n)).astype("float16")
        sparse, e, dense = compress(a)
        kernel = matmul_sp(m, n, k, 64, 64, 64, 3)
        expected = dense.astype("float32") @ b.astype("float32")
        np.testing.assert_allclose(kernel(sparse, e, b), expected, rtol=1e-2, atol=1e-2)
        latency = tilelang.profiler.do_bench(lambda: kernel(sparse, e, b), warmup=1, rep=2)  # noqa: B023
        print(f"{m} x {n} x {k}: {latency:.4f} ms")


if __name__ == "__main__":
    main()
