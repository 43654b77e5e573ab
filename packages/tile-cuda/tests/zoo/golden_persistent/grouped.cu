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
__device__ __forceinline__ int mov_b32_opaque(int x) { int d; asm("mov.b32 %0, %1;" : "=r"(d) : "r"(x)); return d; }
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
__device__ __forceinline__ void cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, int at2, void* barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(at2), "r"(shared_address(barrier))
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

extern "C" __global__ void __launch_bounds__(160) grouped(
    const f16* __restrict__ X,
    const f16* __restrict__ W,
    const int* __restrict__ ends_of,
    f16* __restrict__ Y,
    const __grid_constant__ CUtensorMap X_descriptor,
    const __grid_constant__ CUtensorMap W_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int worker = blockIdx.x;
  const int tid = threadIdx.x;
  f16* const x_stages = (f16*)smem;
  f16* const w_stages = (f16*)(smem + 12288);
  float y[32];
  int left;
  int group;
  int first;
  int end;
  int begin;
  unsigned long long* const t_arrived = (unsigned long long*)(smem + 24576);
  unsigned long long* const t_free = (unsigned long long*)(smem + 24608);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&t_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&t_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&t_arrived[2], 1);
    mbarrier_init_shared_cta_b64(&t_free[0], 4);
    mbarrier_init_shared_cta_b64(&t_free[1], 4);
    mbarrier_init_shared_cta_b64(&t_free[2], 4);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (tid == 128) {
    int t_copied;
    t_copied = 0;
    for (int turn = 0; turn < (int)((unsigned)(26 - worker) / 3u); ++turn) {
      const int tile = worker + turn * 3;
      const int panel = (unsigned)tile / 12u;
      const int inside = (unsigned)tile % 12u;
      const int rows = max(min(4, 8 - panel * 4), 1);
      const int by = max(min(panel * 4 + (int)((unsigned)inside % (unsigned)rows), 7), 0);
      const int bx = max(min((int)((unsigned)inside / (unsigned)rows), 2), 0);
      int left_1;
      left_1 = by;
      int group_1;
      group_1 = 0;
      int first_1;
      first_1 = 0;
      int end_1;
      end_1 = 0;
      int begin_1;
      begin_1 = 0;
      for (int g = 0; g < 4; ++g) {
        const int tiles = (unsigned)((int)((unsigned)ends_of[g] - (unsigned)begin_1) >> 6) + (unsigned)min((int)((unsigned)ends_of[g] - (unsigned)begin_1) & 63, 1);
        if (left_1 >= 0 && left_1 < tiles) {
          group_1 = g;
          first_1 = (unsigned)begin_1 + (unsigned)left_1 * 64u;
          end_1 = ends_of[g];
        }
        left_1 = (unsigned)left_1 - (unsigned)tiles;
        begin_1 = ends_of[g];
      }
      if (first_1 < end_1) {
        const int t_copied_first = max(min(t_copied, 5), 0);
        for (int t_ahead = 0; t_ahead < 5; ++t_ahead) {
          const int slot = (unsigned)(t_copied_first + t_ahead) % 3u;
          mbarrier_wait_parity(&t_free[slot], ((int)((unsigned)(t_copied_first + t_ahead) / 3u) + 1) & 1);
          mbarrier_arrive_expect_tx_shared_cta_b64(&t_arrived[slot], 8192);
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&x_stages[slot * 2048], &X_descriptor, t_ahead * 32, first_1, &t_arrived[slot]);
          cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&w_stages[slot * 2048], &W_descriptor, t_ahead * 32, bx * 64, group_1, &t_arrived[slot]);
        }
        t_copied = (unsigned)(t_copied_first + 5) % 6u;
      }
    }
  }
  if (tid < 128) {
    const int number = tid;
    int t_computed;
    t_computed = 0;
    for (int turn_1 = 0; turn_1 < (int)((unsigned)(26 - worker) / 3u); ++turn_1) {
      const int tile_1 = worker + turn_1 * 3;
      const int panel_1 = (unsigned)tile_1 / 12u;
      const int inside_1 = (unsigned)tile_1 % 12u;
      const int rows_1 = max(min(4, 8 - panel_1 * 4), 1);
      const int by_1 = max(min(panel_1 * 4 + (int)((unsigned)inside_1 % (unsigned)rows_1), 7), 0);
      const int bx_1 = max(min((int)((unsigned)inside_1 / (unsigned)rows_1), 2), 0);
      left = by_1;
      group = 0;
      first = 0;
      end = 0;
      begin = 0;
      for (int g_1 = 0; g_1 < 4; ++g_1) {
        const int tiles_1 = (unsigned)((int)((unsigned)ends_of[g_1] - (unsigned)begin) >> 6) + (unsigned)min((int)((unsigned)ends_of[g_1] - (unsigned)begin) & 63, 1);
        if (left >= 0 && left < tiles_1) {
          group = g_1;
          first = (unsigned)begin + (unsigned)left * 64u;
          end = ends_of[g_1];
        }
        left = (unsigned)left - (unsigned)tiles_1;
        begin = ends_of[g_1];
      }
      if (first < end) {
        const int t_computed_first = max(min(t_computed, 5), 0);
        for (int t = 0; t < 5; ++t) {
          const int slot_1 = (unsigned)(t_computed_first + t) % 3u;
          mbarrier_wait_parity(&t_arrived[slot_1], (int)((unsigned)(t_computed_first + t) / 3u) & 1);
          const int warpgroup_m = 0;
          const int warpgroup_n = 0;
          wgmma_fence_sync_aligned();
          wgmma_m64n64k16_f32_f16_f16_ss(&y[0], &x_stages[slot_1 * 2048 + warpgroup_m * 2048], 16, 512, 2, 0, &w_stages[slot_1 * 2048 + warpgroup_n * 2048], 16, 512, 2, 0, t == 0 ? 0 : 1);
          wgmma_m64n64k16_f32_f16_f16_ss(&y[0], &x_stages[slot_1 * 2048 + warpgroup_m * 2048], 16, 512, 2, 2, &w_stages[slot_1 * 2048 + warpgroup_n * 2048], 16, 512, 2, 2, 1);
          wgmma_commit_group_sync_aligned();
          wgmma_wait_group_sync_aligned_1();
          if (t > 0) {
            if ((number & 31) == 0) {
              mbarrier_arrive_shared_cta_b64(&t_free[(int)((unsigned)(t_computed_first + t + 2) % 3u)]);
            }
          }
        }
        wgmma_wait_group_sync_aligned_0();
        keep_f32_32(&y[0]);
        if ((number & 31) == 0) {
          mbarrier_arrive_shared_cta_b64(&t_free[(int)((unsigned)(t_computed_first + 1) % 3u)]);
        }
        t_computed = (unsigned)(t_computed_first + 5) % 6u;
        __align__(16) f16 y_staged[32];
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
          #pragma unroll
          for (int group_2 = 0; group_2 < 2; ++group_2) {
            #pragma unroll
            for (int tile_2 = 0; tile_2 < 4; ++tile_2) {
              #pragma unroll
              for (int pair = 0; pair < 2; ++pair) {
                y_staged[group_2 * 16 + r * 8 + tile_2 * 2 + pair] = cvt_rn_f16_f32(y[group_2 * 16 + tile_2 * 4 + r * 2 + pair]);
              }
            }
            turn_quad_b32((unsigned short*)&y_staged[group_2 * 16 + r * 8], number & 3);
          }
        }
        if ((long long)first >= 0LL && (long long)first + 63LL < 193LL && bx_1 * 64 + 63 < 136) {
          const int i = (number >> 5) * 16 + ((number & 31) >> 2);
          const int j = (number & 3) * 8;
          #pragma unroll
          for (int r_1 = 0; r_1 < 2; ++r_1) {
            #pragma unroll
            for (int r_2 = 0; r_2 < 2; ++r_2) {
              if ((int)((unsigned)first + (unsigned)(r_2 * 8 + i)) < end) {
                __align__(16) f16 Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                  Y_v[v] = y_staged[r_1 * 16 + r_2 * 8 + v];
                }
                *(uint4*)(&Y[(first + i) * 136 + (bx_1 * 64 + j)] + (r_2 * 1088 + r_1 * 32)) = *(const uint4*)&Y_v[0];
              }
            }
          }
        }
        else {
          const int i_1 = (number >> 5) * 16 + ((number & 31) >> 2);
          const int j_1 = (number & 3) * 8;
          #pragma unroll
          for (int r_3 = 0; r_3 < 2; ++r_3) {
            #pragma unroll
            for (int r_4 = 0; r_4 < 2; ++r_4) {
              if ((int)((unsigned)first + (unsigned)(r_4 * 8 + i_1)) < end) {
                if ((int)((unsigned)first + (unsigned)(r_4 * 8 + i_1)) >= 0 && (int)((unsigned)first + (unsigned)(r_4 * 8 + i_1)) < 193 && bx_1 * 64 + (r_3 * 32 + j_1) < 136) {
                  __align__(16) f16 Y_v_1[8];
                  #pragma unroll
                  for (int v_1 = 0; v_1 < 8; ++v_1) {
                    Y_v_1[v_1] = y_staged[r_3 * 16 + r_4 * 8 + v_1];
                  }
                  *(uint4*)(&Y[mov_b32_opaque((int)((unsigned)first + (unsigned)(r_4 * 8 + i_1)) * 136 + (bx_1 * 64 + j_1))] + r_3 * 32) = *(const uint4*)&Y_v_1[0];
                }
              }
            }
          }
        }
      }
    }
  }
}
