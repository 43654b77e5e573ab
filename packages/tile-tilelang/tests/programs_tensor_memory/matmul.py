"""An accumulator in tensor memory: each product signals its completion at a barrier."""

import tilelang
import tilelang.language as T


def matmul(M, N, K, block_M, block_N, block_K, dtype, out_dtype, accum_dtype, num_stages, explicit=True, serial=False):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out_dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_tmem = T.alloc_tmem([block_M, block_N], accum_dtype)
            mbar = T.alloc_barrier(1)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)

            trips = T.ceildiv(K, block_K)
            for k in T.serial(trips) if serial else T.Pipelined(trips, num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                if explicit:
                    T.tcgen05_gemm(
                        A_shared, B_shared, C_tmem, transpose_B=True, mbar=mbar, clear_accum=k == 0, use_2cta=False
                    )
                else:
                    T.gemm(A_shared, B_shared, C_tmem, False, True, mbar=mbar, wg_wait=-1, clear_accum=k == 0)
                T.mbarrier_wait_parity(mbar, k % 2)
            T.tcgen05_after_thread_sync()

            T.copy(C_tmem, C_local)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])
            T.deallocate_tmem(C_tmem)

    return main


shape = (260, 136, 192, 128, 64, 64, "bfloat16", "bfloat16", "float")
explicit = matmul(*shape, num_stages=2)
other_form = matmul(*shape, num_stages=0, explicit=False, serial=True)
for program in (explicit, other_form):
    kernel = tilelang.compile(program, out_idx=[2], target="cuda -arch=sm_100a")
    source = kernel.get_kernel_source()
    assert "tcgen05_mma_cta_group_1_kind_f16(columns" in source
    print(len(source.splitlines()), "lines")
