typedef unsigned short f16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory"); }
__device__ __forceinline__ void mbarrier_init_shared_cta_b64(void* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
      :
      : "r"(shared_address(barrier)), "r"(arrivals)
      : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_shared_cta_b64(void* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
      :
      : "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_expect_tx_shared_cta_b64(void* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
      :
      : "r"(shared_address(barrier)), "r"(bytes)
      : "memory");
}
__device__ __forceinline__ unsigned mbarrier_try_wait_parity_shared_cta_b64(void* barrier, int parity) {
  unsigned ended;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(ended)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return ended;
}
__device__ __forceinline__ void mbarrier_wait_parity(void* barrier, int parity) { while (!mbarrier_try_wait_parity_shared_cta_b64(barrier, parity)) {} }
__device__ __forceinline__ void barrier_cluster_arrive_release() { asm volatile("barrier.cluster.arrive.release;" : : : "memory"); }
__device__ __forceinline__ void barrier_cluster_wait_acquire() { asm volatile("barrier.cluster.wait.acquire;" : : : "memory"); }
__device__ __forceinline__ void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;"
      :
      :
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, void* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(void* smem, const CUtensorMap* map, int at0, int at1, void* barrier, unsigned short blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(void* place, int columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
      :
      : "r"(shared_address(place)), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_dealloc_cta_group_1_sync_aligned_b32(unsigned address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
      :
      : "r"(address), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
      :
      :
      : "memory");
}
__device__ __forceinline__ void tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(void* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
      :
      : "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_multicast_cluster_b64(void* barrier, unsigned short blocks) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      :
      : "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() { asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() { asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_wait_ld_sync_aligned() { asm volatile("tcgen05.wait::ld.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_ld_sync_aligned_32x32b_x16_b32_f32(float* d, unsigned address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
      : "r"(address)
      : "memory");
}
__device__ __forceinline__ void tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(float* d, unsigned address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(address)
      : "memory");
}
__device__ __forceinline__ unsigned long long tensor_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void tcgen05_mma_cta_group_1_kind_f16(unsigned address, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, unsigned kind, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
      :
      : "r"(address), "l"(tensor_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(tensor_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(kind), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void keep_f32_48(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
      :
      : "memory");
}
__device__ __forceinline__ void keep_f32_64(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      :
      : "memory");
}

extern "C" __global__ void __launch_bounds__(192) __cluster_dims__(2, 1, 1) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int worker = blockIdx.x;
  const int tid = threadIdx.x;
  unsigned* const tensor_columns = (unsigned*)(smem + 47168);
  if (tid < 32) {
    tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(&tensor_columns[0], 512);
    tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned();
  }
  f16* const A_shared_stages = (f16*)(smem + 30720);
  f16* const B_shared_stages = (f16*)smem;
  float C_local_piece[64];
  float C_local_piece_1[48];
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 47104);
  unsigned long long* const k_free = (unsigned long long*)(smem + 47120);
  unsigned long long* const sums_ready = (unsigned long long*)(smem + 47136);
  unsigned long long* const sums_free = (unsigned long long*)(smem + 47152);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&k_free[0], 2);
    mbarrier_init_shared_cta_b64(&k_free[1], 2);
    mbarrier_init_shared_cta_b64(&sums_ready[0], 1);
    mbarrier_init_shared_cta_b64(&sums_ready[1], 1);
    mbarrier_init_shared_cta_b64(&sums_free[0], 128);
    mbarrier_init_shared_cta_b64(&sums_free[1], 128);
  }
  fence_mbarrier_init_release_cluster();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (tid == 128) {
    for (int turn = 0; turn < 2; ++turn) {
      const int tile = (worker >> 1) + turn;
      const int by = max(min((tile >> 1) * 2 + (worker & 1 & 1), 1), 0);
      const int bx = max(min(tile & 1, 1), 0);
      for (int k_ahead = 0; k_ahead < 3; ++k_ahead) {
        const int slot = (turn * 3 + k_ahead) & 1;
        mbarrier_wait_parity(&k_free[slot], (((turn * 3 + k_ahead) >> 1) + 1) & 1);
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot], 23552);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot * 4096], &A_descriptor, k_ahead * 32, by * 128, &k_arrived[slot]);
        if ((worker & 1) == 0) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[slot * 7680], &B_descriptor, k_ahead * 32, bx * 240, &k_arrived[slot], 3);
        }
        if ((worker & 1) == 1) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[slot * 7680 + 3840], &B_descriptor, k_ahead * 32, bx * 240 + 120, &k_arrived[slot], 3);
        }
      }
    }
    mbarrier_wait_parity(&k_free[0], (((2 - (worker >> 1)) * 3 - 2) >> 1) & 1);
    mbarrier_wait_parity(&k_free[1], (((2 - (worker >> 1)) * 3 - 1) >> 1) & 1);
  }
  if (tid == 160) {
    for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
      mbarrier_wait_parity(&sums_free[turn_1], ((turn_1 >> 1) + 1) & 1);
      tcgen05_fence_after_thread_sync();
      for (int k_issued = 0; k_issued < 3; ++k_issued) {
        const int slot_1 = (turn_1 * 3 + k_issued) & 1;
        mbarrier_wait_parity(&k_arrived[slot_1], ((turn_1 * 3 + k_issued) >> 1) & 1);
        tcgen05_fence_after_thread_sync();
        const unsigned columns = tensor_columns[0] + (unsigned)(turn_1 & 1) * 240u;
        tcgen05_fence_after_thread_sync();
        tcgen05_mma_cta_group_1_kind_f16(columns, &A_shared_stages[slot_1 * 4096], 16, 512, 4, 0, &B_shared_stages[slot_1 * 7680], 16, 512, 4, 0, 138149904u, k_issued == 0 ? 0 : 1);
        tcgen05_mma_cta_group_1_kind_f16(columns, &A_shared_stages[slot_1 * 4096], 16, 512, 4, 2, &B_shared_stages[slot_1 * 7680], 16, 512, 4, 2, 138149904u, 1);
        tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_multicast_cluster_b64(&k_free[slot_1], 3);
      }
      tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&sums_ready[turn_1]);
    }
  }
  if (tid < 128) {
    const int number = tid;
    for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
      const int tile_1 = (worker >> 1) + turn_2;
      const int by_1 = max(min((tile_1 >> 1) * 2 + (worker & 1 & 1), 1), 0);
      const int bx_1 = max(min(tile_1 & 1, 1), 0);
      mbarrier_wait_parity(&sums_ready[turn_2], (turn_2 >> 1) & 1);
      tcgen05_fence_after_thread_sync();
      for (int piece = 0; piece < 3; ++piece) {
        tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece[0], tensor_columns[0] + (unsigned)((number >> 5) & 3) * 2097152u + (unsigned)((turn_2 & 1) * 240 + piece * 64));
        tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece[32], tensor_columns[0] + (unsigned)((number >> 5) & 3) * 2097152u + (unsigned)((turn_2 & 1) * 240 + piece * 64) + 32u);
        tcgen05_wait_ld_sync_aligned();
        keep_f32_64(&C_local_piece[0]);
        if (turn_2 * 240 + piece * 64 < 201) {
          bar_sync(1, 128);
          const int i0 = number;
          __align__(16) f16 C_v[64];
          #pragma unroll
          for (int r = 0; r < 64; ++r) {
            C_v[r] = cvt_rn_f16_f32(C_local_piece[r]);
          }
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64)] = *(const uint4*)&C_v[0];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 8)] = *(const uint4*)&C_v[8];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 16)] = *(const uint4*)&C_v[16];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 24)] = *(const uint4*)&C_v[24];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 32)] = *(const uint4*)&C_v[32];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 40)] = *(const uint4*)&C_v[40];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 48)] = *(const uint4*)&C_v[48];
          *(uint4*)&C[(by_1 * 128 + i0) * 264 + (bx_1 * 240 + piece * 64 + 56)] = *(const uint4*)&C_v[56];
        }
        else {
          bar_sync(1, 128);
          const int i0_1 = number;
          if (bx_1 * 240 + piece * 64 + 63 < 264) {
            __align__(16) f16 C_v_1[64];
            #pragma unroll
            for (int r_1 = 0; r_1 < 64; ++r_1) {
              C_v_1[r_1] = cvt_rn_f16_f32(C_local_piece[r_1]);
            }
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64)] = *(const uint4*)&C_v_1[0];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 8)] = *(const uint4*)&C_v_1[8];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 16)] = *(const uint4*)&C_v_1[16];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 24)] = *(const uint4*)&C_v_1[24];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 32)] = *(const uint4*)&C_v_1[32];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 40)] = *(const uint4*)&C_v_1[40];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 48)] = *(const uint4*)&C_v_1[48];
            *(uint4*)&C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + 56)] = *(const uint4*)&C_v_1[56];
          }
          else {
            #pragma unroll
            for (int r_2 = 0; r_2 < 64; ++r_2) {
              if (bx_1 * 240 + piece * 64 + r_2 < 264) {
                C[(by_1 * 128 + i0_1) * 264 + (bx_1 * 240 + piece * 64 + r_2)] = cvt_rn_f16_f32(C_local_piece[r_2]);
              }
            }
          }
        }
      }
      tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece_1[0], tensor_columns[0] + (unsigned)((number >> 5) & 3) * 2097152u + (unsigned)((turn_2 & 1) * 240 + 192));
      tcgen05_ld_sync_aligned_32x32b_x16_b32_f32(&C_local_piece_1[32], tensor_columns[0] + (unsigned)((number >> 5) & 3) * 2097152u + (unsigned)((turn_2 & 1) * 240 + 192) + 32u);
      tcgen05_wait_ld_sync_aligned();
      keep_f32_48(&C_local_piece_1[0]);
      tcgen05_fence_before_thread_sync();
      mbarrier_arrive_shared_cta_b64(&sums_free[turn_2]);
      if (turn_2 < 1) {
        bar_sync(1, 128);
        const int i0_2 = number;
        __align__(16) f16 C_v_2[48];
        #pragma unroll
        for (int r_3 = 0; r_3 < 48; ++r_3) {
          C_v_2[r_3] = cvt_rn_f16_f32(C_local_piece_1[r_3]);
        }
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 192)] = *(const uint4*)&C_v_2[0];
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 200)] = *(const uint4*)&C_v_2[8];
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 208)] = *(const uint4*)&C_v_2[16];
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 216)] = *(const uint4*)&C_v_2[24];
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 224)] = *(const uint4*)&C_v_2[32];
        *(uint4*)&C[(by_1 * 128 + i0_2) * 264 + (bx_1 * 240 + 232)] = *(const uint4*)&C_v_2[40];
      }
      else {
        bar_sync(1, 128);
        const int i0_3 = number;
        if (bx_1 * 240 + 192 + 47 < 264) {
          __align__(16) f16 C_v_3[48];
          #pragma unroll
          for (int r_4 = 0; r_4 < 48; ++r_4) {
            C_v_3[r_4] = cvt_rn_f16_f32(C_local_piece_1[r_4]);
          }
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 192)] = *(const uint4*)&C_v_3[0];
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 200)] = *(const uint4*)&C_v_3[8];
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 208)] = *(const uint4*)&C_v_3[16];
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 216)] = *(const uint4*)&C_v_3[24];
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 224)] = *(const uint4*)&C_v_3[32];
          *(uint4*)&C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + 232)] = *(const uint4*)&C_v_3[40];
        }
        else {
          #pragma unroll
          for (int r_5 = 0; r_5 < 48; ++r_5) {
            if (bx_1 * 240 + 192 + r_5 < 264) {
              C[(by_1 * 128 + i0_3) * 264 + (bx_1 * 240 + r_5 + 192)] = cvt_rn_f16_f32(C_local_piece_1[r_5]);
            }
          }
        }
      }
    }
  }
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  __syncthreads();
  if (tid < 32) {
    tcgen05_dealloc_cta_group_1_sync_aligned_b32(tensor_columns[0], 512);
  }
}
