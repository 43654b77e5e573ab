typedef unsigned short f16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ unsigned elect_sync() {
  unsigned mine;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
      : "=r"(mine)
      :
      : "memory");
  return mine;
}
__device__ __forceinline__ void mbarrier_init_shared_cta_b64(void* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
      :
      : "r"(shared_address(barrier)), "r"(arrivals)
      : "memory");
}
__device__ __forceinline__ void mbarrier_inval_shared_cta_b64(void* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];"
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
__device__ __forceinline__ void mbarrier_arrive_shared_cluster_b64(void* barrier, int rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
      :
      : "r"(shared_address(barrier)), "r"(rank)
      : "memory");
}
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
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void wgmma_fence_sync_aligned() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_commit_group_sync_aligned() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }
__device__ __forceinline__ void keep_f32_32(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      :
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n64k16_f32_f16_f16_ss(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(adds)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(2, 1, 1) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 12288);
  float C_local[32];
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 24576);
  unsigned long long* const k_free = (unsigned long long*)(smem + 24608);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[2], 1);
  }
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_free[0], 8);
    mbarrier_init_shared_cta_b64(&k_free[1], 8);
    mbarrier_init_shared_cta_b64(&k_free[2], 8);
  }
  fence_mbarrier_init_release_cluster();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 8192);
    if ((bx & 1) == 0) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[0], &A_descriptor, 0, by * 64, &k_arrived[0], 3);
    }
    if ((bx & 1) == 1) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[1024], &A_descriptor, 0, by * 64 + 32, &k_arrived[0], 3);
    }
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, 0, bx * 64, &k_arrived[0]);
  }
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[1], 8192);
    if ((bx & 1) == 0) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[2048], &A_descriptor, 32, by * 64, &k_arrived[1], 3);
    }
    if ((bx & 1) == 1) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[3072], &A_descriptor, 32, by * 64 + 32, &k_arrived[1], 3);
    }
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[2048], &B_descriptor, 32, bx * 64, &k_arrived[1]);
  }
  for (int k = 0; k < 5; ++k) {
    const int slot = (unsigned)k % 3u;
    mbarrier_wait_parity(&k_arrived[slot], (int)((unsigned)k / 3u) & 1);
    const int warpgroup_m = 0;
    const int warpgroup_n = 0;
    wgmma_fence_sync_aligned();
    wgmma_m64n64k16_f32_f16_f16_ss(&C_local[0], &A_shared_stages[slot * 2048 + warpgroup_m * 2048], 16, 512, 2, 0, &B_shared_stages[slot * 2048 + warpgroup_n * 2048], 16, 512, 2, 0, k == 0 ? 0 : 1);
    wgmma_m64n64k16_f32_f16_f16_ss(&C_local[0], &A_shared_stages[slot * 2048 + warpgroup_m * 2048], 16, 512, 2, 2, &B_shared_stages[slot * 2048 + warpgroup_n * 2048], 16, 512, 2, 2, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_1();
    if (k - 1 >= 0) {
      if ((tid & 31) < 2) {
        mbarrier_arrive_shared_cluster_b64(&k_free[(int)((unsigned)(k + 2) % 3u)], (bx & 1) ^ (tid & 31));
      }
    }
    const int slot_ahead = (unsigned)(k + 2) % 3u;
    if (k + 2 < 5) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_wait_parity(&k_free[slot_ahead], ((int)((unsigned)(k + 2) / 3u) - 1) & 1);
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 8192);
        if ((bx & 1) == 0) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[slot_ahead * 2048], &A_descriptor, k * 32 + 64, by * 64, &k_arrived[slot_ahead], 3);
        }
        if ((bx & 1) == 1) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[slot_ahead * 2048 + 1024], &A_descriptor, k * 32 + 64, by * 64 + 32, &k_arrived[slot_ahead], 3);
        }
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 2048], &B_descriptor, k * 32 + 64, bx * 64, &k_arrived[slot_ahead]);
      }
    }
  }
  wgmma_wait_group_sync_aligned_0();
  keep_f32_32(&C_local[0]);
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
    mbarrier_inval_shared_cta_b64(&k_arrived[2]);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_free[0]);
    mbarrier_inval_shared_cta_b64(&k_free[1]);
    mbarrier_inval_shared_cta_b64(&k_free[2]);
  }
  if (by < 3 && bx < 3) {
    const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1 = (tid & 3) * 2;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      #pragma unroll
      for (int r_1 = 0; r_1 < 2; ++r_1) {
        __align__(16) f16 C_v[2];
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          C_v[v] = cvt_rn_f16_f32(C_local[r * 4 + r_1 * 2 + v]);
        }
        *(unsigned*)(&C[(by * 64 + i0) * 250 + (bx * 64 + i1)] + (r_1 * 2000 + r * 8)) = *(const unsigned*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_1 = (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        if (by * 64 + (r_3 * 8 + i0_1) < 200 && bx * 64 + (r_2 * 8 + i1_1) < 250) {
          __align__(16) f16 C_v_1[2];
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            C_v_1[v_1] = cvt_rn_f16_f32(C_local[r_2 * 4 + r_3 * 2 + v_1]);
          }
          *(unsigned*)(&C[(by * 64 + i0_1) * 250 + (bx * 64 + i1_1)] + (r_3 * 2000 + r_2 * 8)) = *(const unsigned*)&C_v_1[0];
        }
      }
    }
  }
}
