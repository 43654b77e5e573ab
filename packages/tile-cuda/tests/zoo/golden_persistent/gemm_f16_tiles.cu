typedef unsigned short f16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ unsigned shfl_sync_bfly_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
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
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void wgmma_fence_sync_aligned() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_commit_group_sync_aligned() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }
__device__ __forceinline__ void turn_quad_b32(unsigned short* w, int lane) {
  unsigned x[4];
  for (int i = 0; i < 4; ++i) x[i] = *(const unsigned*)&w[2 * i];
  const bool odd1 = (lane & 1) != 0;
  const unsigned y10 = shfl_sync_bfly_b32(odd1 ? x[0] : x[1], 1, 31, 0xffffffffu);
  if (odd1) x[0] = y10; else x[1] = y10;
  const unsigned y12 = shfl_sync_bfly_b32(odd1 ? x[2] : x[3], 1, 31, 0xffffffffu);
  if (odd1) x[2] = y12; else x[3] = y12;
  const bool odd2 = (lane & 2) != 0;
  const unsigned y20 = shfl_sync_bfly_b32(odd2 ? x[0] : x[2], 2, 31, 0xffffffffu);
  if (odd2) x[0] = y20; else x[2] = y20;
  const unsigned y21 = shfl_sync_bfly_b32(odd2 ? x[1] : x[3], 2, 31, 0xffffffffu);
  if (odd2) x[1] = y21; else x[3] = y21;
  for (int i = 0; i < 4; ++i) *(unsigned*)&w[2 * i] = x[i];
}
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

extern "C" __global__ void __launch_bounds__(160) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int worker = blockIdx.x;
  const int tid = threadIdx.x;
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 12288);
  float C_local[32];
  __align__(16) f16 C_local_staged[32];
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 24576);
  unsigned long long* const k_free = (unsigned long long*)(smem + 24608);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[2], 1);
    mbarrier_init_shared_cta_b64(&k_free[0], 4);
    mbarrier_init_shared_cta_b64(&k_free[1], 4);
    mbarrier_init_shared_cta_b64(&k_free[2], 4);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (tid == 128) {
    for (int turn = 0; turn < (int)((unsigned)(14 - worker) / 3u); ++turn) {
      const int tile = worker + turn * 3;
      const int by = max(min((int)((unsigned)tile / 3u), 3), 0);
      const int bx = max(min((int)((unsigned)tile % 3u), 2), 0);
      for (int k_ahead = 0; k_ahead < 5; ++k_ahead) {
        const int slot = (unsigned)(turn * 5 + k_ahead) % 3u;
        mbarrier_wait_parity(&k_free[slot], ((int)((unsigned)(turn * 5 + k_ahead) / 3u) + 1) & 1);
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot], 8192);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot * 2048], &A_descriptor, k_ahead * 32, by * 64, &k_arrived[slot]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot * 2048], &B_descriptor, k_ahead * 32, bx * 64, &k_arrived[slot]);
      }
    }
  }
  if (tid < 128) {
    const int number = tid;
    for (int turn_1 = 0; turn_1 < (int)((unsigned)(14 - worker) / 3u); ++turn_1) {
      const int tile_1 = worker + turn_1 * 3;
      const int by_1 = max(min((int)((unsigned)tile_1 / 3u), 3), 0);
      const int bx_1 = max(min((int)((unsigned)tile_1 % 3u), 2), 0);
      for (int k = 0; k < 5; ++k) {
        const int slot_1 = (unsigned)(turn_1 * 5 + k) % 3u;
        mbarrier_wait_parity(&k_arrived[slot_1], (int)((unsigned)(turn_1 * 5 + k) / 3u) & 1);
        const int warpgroup_m = 0;
        const int warpgroup_n = 0;
        wgmma_fence_sync_aligned();
        wgmma_m64n64k16_f32_f16_f16_ss(&C_local[0], &A_shared_stages[slot_1 * 2048 + warpgroup_m * 2048], 16, 512, 2, 0, &B_shared_stages[slot_1 * 2048 + warpgroup_n * 2048], 16, 512, 2, 0, k == 0 ? 0 : 1);
        wgmma_m64n64k16_f32_f16_f16_ss(&C_local[0], &A_shared_stages[slot_1 * 2048 + warpgroup_m * 2048], 16, 512, 2, 2, &B_shared_stages[slot_1 * 2048 + warpgroup_n * 2048], 16, 512, 2, 2, 1);
        wgmma_commit_group_sync_aligned();
        wgmma_wait_group_sync_aligned_1();
        if (k > 0) {
          if ((number & 31) == 0) {
            mbarrier_arrive_shared_cta_b64(&k_free[(int)((unsigned)(turn_1 * 5 + k + 2) % 3u)]);
          }
        }
      }
      wgmma_wait_group_sync_aligned_0();
      keep_f32_32(&C_local[0]);
      if ((number & 31) == 0) {
        mbarrier_arrive_shared_cta_b64(&k_free[(int)((unsigned)(turn_1 * 5 + 1) % 3u)]);
      }
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int group = 0; group < 2; ++group) {
          #pragma unroll
          for (int tile_2 = 0; tile_2 < 4; ++tile_2) {
            #pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
              C_local_staged[group * 16 + r * 8 + tile_2 * 2 + pair] = cvt_rn_f16_f32(C_local[group * 16 + tile_2 * 4 + r * 2 + pair]);
            }
          }
          turn_quad_b32((unsigned short*)&C_local_staged[group * 16 + r * 8], number & 3);
        }
      }
      if (turn_1 < 3 && worker < 2) {
        const int i0 = (number >> 5) * 16 + ((number & 31) >> 2);
        const int i1 = (number & 3) * 8;
        #pragma unroll
        for (int r_1 = 0; r_1 < 2; ++r_1) {
          #pragma unroll
          for (int r_2 = 0; r_2 < 2; ++r_2) {
            __align__(16) f16 C_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
              C_v[v] = C_local_staged[r_1 * 16 + r_2 * 8 + v];
            }
            *(uint4*)(&C[(by_1 * 64 + i0) * 136 + (bx_1 * 64 + i1)] + (r_2 * 1088 + r_1 * 32)) = *(const uint4*)&C_v[0];
          }
        }
      }
      else {
        const int i0_1 = (number >> 5) * 16 + ((number & 31) >> 2);
        const int i1_1 = (number & 3) * 8;
        #pragma unroll
        for (int r_3 = 0; r_3 < 2; ++r_3) {
          #pragma unroll
          for (int r_4 = 0; r_4 < 2; ++r_4) {
            if (by_1 * 64 + (r_4 * 8 + i0_1) < 200 && bx_1 * 64 + (r_3 * 32 + i1_1) < 136) {
              __align__(16) f16 C_v_1[8];
              #pragma unroll
              for (int v_1 = 0; v_1 < 8; ++v_1) {
                C_v_1[v_1] = C_local_staged[r_3 * 16 + r_4 * 8 + v_1];
              }
              *(uint4*)(&C[(by_1 * 64 + i0_1) * 136 + (bx_1 * 64 + i1_1)] + (r_4 * 1088 + r_3 * 32)) = *(const uint4*)&C_v_1[0];
            }
          }
        }
      }
    }
  }
}
