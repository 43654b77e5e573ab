typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ float max_f32(float a, float b) { float d; asm("max.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
__device__ __forceinline__ unsigned shfl_sync_bfly_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ void cp_async_cg_shared_global_16(void* smem, const void* gmem) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_cg_shared_global_16_zfill(void* smem, const void* gmem, int valid_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :
      : "r"(shared_address(smem)), "l"(gmem), "r"(valid_bytes)
      : "memory");
}
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_group_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }
__device__ __forceinline__ void fence_proxy_async_shared_cta() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void wgmma_fence_sync_aligned() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_commit_group_sync_aligned() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
__device__ __forceinline__ unsigned shfl_sync_bfly_u32(unsigned x, int lane, int clamp, unsigned mask) { return shfl_sync_bfly_b32(x, lane, clamp, mask); }
__device__ __forceinline__ void keep_f32_16(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      :
      : "memory");
}
__device__ __forceinline__ void keep_f32_32(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      :
      : "memory");
}
__device__ __forceinline__ void keep_u32_16(unsigned* d) {
  asm volatile(""
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15])
      :
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n32k16_f32_f16_f16_rs_tb(float* d, const unsigned* a, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %21, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, p, 1, 1, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n64k16_f32_f16_f16_ss(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n64k16_f32_f16_f16_ss_new(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks))
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) main_1(
    const f16* __restrict__ Q,
    const f16* __restrict__ K,
    const f16* __restrict__ V,
    f16* __restrict__ Output
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int bz = blockIdx.z;
  const int tid = threadIdx.x;
  f16* const Q_shared = (f16*)smem;
  f16* const K_shared_stages = (f16*)(smem + 4096);
  f16* const V_shared_stages = (f16*)(smem + 12288);
  float scores[32];
  __align__(16) f16 weights[32];
  float output[16];
  float top[2];
  float top_before[2];
  float correction[2];
  float row_sum[2];
  float total[2];
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 8;
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    *(uint4*)&Q_shared[r * 1024 + i0 * 32 + ((i1 >> 3) ^ ((i0 & 7) >> 1)) * 8] = *(const uint4*)(&Q[i0 * 32 + i1] + r * 1024);
  }
  #pragma unroll
  for (int r_1 = 0; r_1 < 4; ++r_1) {
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        output[r_1 * 4 + r_2 * 2 + v] = 0.0f;
      }
    }
  }
  #pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    total[r_3] = 0.0f;
  }
  #pragma unroll
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    top[r_4] = __int_as_float(0xff800000);
  }
  const int n_trips = (min(96, (bx + 1) * 64 + 32) + 64 - 1) >> 6;
  fence_proxy_async_shared_cta();
  fence_proxy_async_shared_cta();
  __syncthreads();
  #pragma unroll
  for (int turn = 0; turn < 2; ++turn) {
    cp_async_cg_shared_global_16(&K_shared_stages[turn * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &K[tid * 8] + turn * 1024);
  }
  #pragma unroll
  for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
    cp_async_cg_shared_global_16(&V_shared_stages[turn_1 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &V[tid * 8] + turn_1 * 1024);
  }
  cp_async_commit_group();
  for (int n = 0; n < 2; ++n) {
    cp_async_wait_group_0();
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int slot = n & 1;
    const int slot_ahead = (n + 1) & 1;
    if (n + 1 < n_trips) {
      #pragma unroll
      for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)K_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_2 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &K[n * 2048 + tid * 8 + 2048] + turn_2 * 1024, n * 64 + turn_2 * 32 + (tid >> 2) + 64 < 96 ? 16 : 0);
      }
      #pragma unroll
      for (int turn_3 = 0; turn_3 < 2; ++turn_3) {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)V_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_3 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &V[n * 2048 + tid * 8 + 2048] + turn_3 * 1024, n * 64 + turn_3 * 32 + (tid >> 2) + 64 < 96 ? 16 : 0);
      }
    }
    cp_async_commit_group();
    const int warpgroup_m = 0;
    const int warpgroup_n = 0;
    wgmma_fence_sync_aligned();
    wgmma_m64n64k16_f32_f16_f16_ss_new(&scores[0], &Q_shared[warpgroup_m * 2048], 16, 512, 2, 0, &K_shared_stages[slot * 2048 + warpgroup_n * 2048], 16, 512, 2, 0);
    wgmma_m64n64k16_f32_f16_f16_ss(&scores[0], &Q_shared[warpgroup_m * 2048], 16, 512, 2, 2, &K_shared_stages[slot * 2048 + warpgroup_n * 2048], 16, 512, 2, 2, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_0();
    keep_f32_32(&scores[0]);
    const int i = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int j = (tid & 3) * 2;
    if (n * 64 + (56 + j + 1) < 96 && bx * 64 + i + 32 >= n * 64 + (56 + j + 1)) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 8; ++r_5) {
        #pragma unroll
        for (int r_6 = 0; r_6 < 2; ++r_6) {
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            scores[r_5 * 4 + r_6 * 2 + v_1] = scores[r_5 * 4 + r_6 * 2 + v_1] * 0.25503486f;
          }
        }
      }
    }
    else {
      #pragma unroll
      for (int r_7 = 0; r_7 < 8; ++r_7) {
        #pragma unroll
        for (int r_8 = 0; r_8 < 2; ++r_8) {
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            scores[r_7 * 4 + r_8 * 2 + v_2] = n * 64 + (r_7 * 8 + j + v_2) < 96 && bx * 64 + (r_8 * 8 + i) + 32 >= n * 64 + (r_7 * 8 + j + v_2) ? scores[r_7 * 4 + r_8 * 2 + v_2] * 0.25503486f : __int_as_float(0xff800000);
          }
        }
      }
    }
    #pragma unroll
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      top_before[r_9] = top[r_9];
    }
    float acc[2];
    #pragma unroll
    for (int r_10 = 0; r_10 < 2; ++r_10) {
      acc[r_10] = __int_as_float(0xff800000);
      #pragma unroll
      for (int r_11 = 0; r_11 < 8; ++r_11) {
        #pragma unroll
        for (int r_12 = 0; r_12 < 2; ++r_12) {
          acc[r_10] = max_f32(acc[r_10], scores[r_11 * 4 + r_10 * 2 + r_12]);
        }
      }
    }
    #pragma unroll
    for (int r_13 = 0; r_13 < 2; ++r_13) {
      const float mine = acc[r_13];
      const float other = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine), 1, 31, 0xffffffffu));
      acc[r_13] = max_f32(acc[r_13], other);
    }
    #pragma unroll
    for (int r_14 = 0; r_14 < 2; ++r_14) {
      const float mine_1 = acc[r_14];
      const float other_1 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_1), 2, 31, 0xffffffffu));
      acc[r_14] = max_f32(acc[r_14], other_1);
    }
    #pragma unroll
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      top[r_15] = max_f32(top[r_15], acc[r_15]);
    }
    #pragma unroll
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      correction[r_16] = exp2f(top_before[r_16] - top[r_16]);
    }
    #pragma unroll
    for (int r_17 = 0; r_17 < 8; ++r_17) {
      #pragma unroll
      for (int r_18 = 0; r_18 < 2; ++r_18) {
        #pragma unroll
        for (int v_3 = 0; v_3 < 2; ++v_3) {
          scores[r_17 * 4 + r_18 * 2 + v_3] = exp2f(scores[r_17 * 4 + r_18 * 2 + v_3] - top[r_18]);
        }
      }
    }
    float acc_1[2];
    #pragma unroll
    for (int r_19 = 0; r_19 < 2; ++r_19) {
      acc_1[r_19] = 0.0f;
      #pragma unroll
      for (int r_20 = 0; r_20 < 8; ++r_20) {
        #pragma unroll
        for (int r_21 = 0; r_21 < 2; ++r_21) {
          acc_1[r_19] = acc_1[r_19] + scores[r_20 * 4 + r_19 * 2 + r_21];
        }
      }
    }
    #pragma unroll
    for (int r_22 = 0; r_22 < 2; ++r_22) {
      const float mine_2 = acc_1[r_22];
      const float other_2 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_2), 1, 31, 0xffffffffu));
      acc_1[r_22] = acc_1[r_22] + other_2;
    }
    #pragma unroll
    for (int r_23 = 0; r_23 < 2; ++r_23) {
      const float mine_3 = acc_1[r_23];
      const float other_3 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_3), 2, 31, 0xffffffffu));
      acc_1[r_23] = acc_1[r_23] + other_3;
    }
    #pragma unroll
    for (int r_24 = 0; r_24 < 2; ++r_24) {
      row_sum[r_24] = acc_1[r_24];
    }
    #pragma unroll
    for (int r_25 = 0; r_25 < 2; ++r_25) {
      total[r_25] = total[r_25] * correction[r_25] + row_sum[r_25];
    }
    #pragma unroll
    for (int r_26 = 0; r_26 < 8; ++r_26) {
      #pragma unroll
      for (int r_27 = 0; r_27 < 2; ++r_27) {
        #pragma unroll
        for (int v_4 = 0; v_4 < 2; ++v_4) {
          weights[r_26 * 4 + r_27 * 2 + v_4] = cvt_rn_f16_f32(scores[r_26 * 4 + r_27 * 2 + v_4]);
        }
      }
    }
    #pragma unroll
    for (int r_28 = 0; r_28 < 4; ++r_28) {
      #pragma unroll
      for (int r_29 = 0; r_29 < 2; ++r_29) {
        #pragma unroll
        for (int v_5 = 0; v_5 < 2; ++v_5) {
          output[r_28 * 4 + r_29 * 2 + v_5] = output[r_28 * 4 + r_29 * 2 + v_5] * correction[r_29];
        }
      }
    }
    const int warpgroup_n_1 = 0;
    unsigned a_words[16];
    *(unsigned*)&a_words[0] = *(const unsigned*)&weights[0];
    *(unsigned*)&a_words[1] = *(const unsigned*)&weights[2];
    *(unsigned*)&a_words[2] = *(const unsigned*)&weights[4];
    *(unsigned*)&a_words[3] = *(const unsigned*)&weights[6];
    *(unsigned*)&a_words[4] = *(const unsigned*)&weights[8];
    *(unsigned*)&a_words[5] = *(const unsigned*)&weights[10];
    *(unsigned*)&a_words[6] = *(const unsigned*)&weights[12];
    *(unsigned*)&a_words[7] = *(const unsigned*)&weights[14];
    *(unsigned*)&a_words[8] = *(const unsigned*)&weights[16];
    *(unsigned*)&a_words[9] = *(const unsigned*)&weights[18];
    *(unsigned*)&a_words[10] = *(const unsigned*)&weights[20];
    *(unsigned*)&a_words[11] = *(const unsigned*)&weights[22];
    *(unsigned*)&a_words[12] = *(const unsigned*)&weights[24];
    *(unsigned*)&a_words[13] = *(const unsigned*)&weights[26];
    *(unsigned*)&a_words[14] = *(const unsigned*)&weights[28];
    *(unsigned*)&a_words[15] = *(const unsigned*)&weights[30];
    keep_f32_16(&output[0]);
    keep_u32_16(&a_words[0]);
    wgmma_fence_sync_aligned();
    wgmma_m64n32k16_f32_f16_f16_rs_tb(&output[0], &a_words[0], &V_shared_stages[slot * 2048 + warpgroup_n_1 * 32], 4096, 512, 2, 0, 1);
    wgmma_m64n32k16_f32_f16_f16_rs_tb(&output[0], &a_words[4], &V_shared_stages[slot * 2048 + warpgroup_n_1 * 32], 4096, 512, 2, 64, 1);
    wgmma_m64n32k16_f32_f16_f16_rs_tb(&output[0], &a_words[8], &V_shared_stages[slot * 2048 + warpgroup_n_1 * 32], 4096, 512, 2, 128, 1);
    wgmma_m64n32k16_f32_f16_f16_rs_tb(&output[0], &a_words[12], &V_shared_stages[slot * 2048 + warpgroup_n_1 * 32], 4096, 512, 2, 192, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_0();
    keep_f32_16(&output[0]);
  }
  cp_async_wait_group_0();
  #pragma unroll
  for (int r_30 = 0; r_30 < 4; ++r_30) {
    #pragma unroll
    for (int r_31 = 0; r_31 < 2; ++r_31) {
      #pragma unroll
      for (int v_6 = 0; v_6 < 2; ++v_6) {
        output[r_30 * 4 + r_31 * 2 + v_6] = __fdividef(output[r_30 * 4 + r_31 * 2 + v_6], total[r_31]);
      }
    }
  }
  const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 2);
  const int i1_1 = (tid & 3) * 2;
  #pragma unroll
  for (int r_32 = 0; r_32 < 4; ++r_32) {
    #pragma unroll
    for (int r_33 = 0; r_33 < 2; ++r_33) {
      __align__(16) f16 Output_v[2];
      #pragma unroll
      for (int v_7 = 0; v_7 < 2; ++v_7) {
        Output_v[v_7] = cvt_rn_f16_f32(output[r_32 * 4 + r_33 * 2 + v_7]);
      }
      *(unsigned*)(&Output[i0_1 * 32 + i1_1] + (r_33 * 256 + r_32 * 8)) = *(const unsigned*)&Output_v[0];
    }
  }
}
