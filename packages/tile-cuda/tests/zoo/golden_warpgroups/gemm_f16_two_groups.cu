typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
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
__device__ __forceinline__ void cp_async_wait_group_1() { asm volatile("cp.async.wait_group 1;" : : : "memory"); }
__device__ __forceinline__ void fence_proxy_async_shared_cta() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void wgmma_fence_sync_aligned() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_commit_group_sync_aligned() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }
__device__ __forceinline__ void keep_f32_64(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      :
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n128k16_f32_f16_f16_ss_tb(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(adds)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(256) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 24576);
  float C_local[64];
  if (by * 128 + 128 <= 130) {
    #pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 128 + (tid >> 2)) * 200 + (tid & 3) * 8] + turn * 12800);
    }
  }
  else {
    #pragma unroll
    for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_1 * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 128 + (tid >> 2)) * 200 + (tid & 3) * 8] + turn_1 * 12800, by * 128 + turn_1 * 64 + (tid >> 2) < 130 ? 16 : 0);
    }
  }
  if (bx * 128 + 128 <= 136) {
    #pragma unroll
    for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
      cp_async_cg_shared_global_16(&B_shared_stages[((tid & 15) >> 3) * 2048 + turn_2 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8], &B[(tid >> 4) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_2 * 2176);
    }
  }
  else {
    #pragma unroll
    for (int turn_3 = 0; turn_3 < 2; ++turn_3) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[((tid & 15) >> 3) * 2048 + turn_3 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8], &B[(tid >> 4) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_3 * 2176, bx * 128 + (tid & 15) * 8 < 136 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  if (by * 128 + 128 <= 130) {
    #pragma unroll
    for (int turn_4 = 0; turn_4 < 2; ++turn_4) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn_4 * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 4096], &A[(by * 128 + (tid >> 2)) * 200 + ((tid & 3) * 8 + 32)] + turn_4 * 12800);
    }
  }
  else {
    #pragma unroll
    for (int turn_5 = 0; turn_5 < 2; ++turn_5) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_5 * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 4096], &A[(by * 128 + (tid >> 2)) * 200 + ((tid & 3) * 8 + 32)] + turn_5 * 12800, by * 128 + turn_5 * 64 + (tid >> 2) < 130 ? 16 : 0);
    }
  }
  if (bx * 128 + 128 <= 136) {
    #pragma unroll
    for (int turn_6 = 0; turn_6 < 2; ++turn_6) {
      cp_async_cg_shared_global_16(&B_shared_stages[((tid & 15) >> 3) * 2048 + turn_6 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8 + 4096], &B[((tid >> 4) + 32) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_6 * 2176);
    }
  }
  else {
    #pragma unroll
    for (int turn_7 = 0; turn_7 < 2; ++turn_7) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[((tid & 15) >> 3) * 2048 + turn_7 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8 + 4096], &B[((tid >> 4) + 32) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_7 * 2176, bx * 128 + (tid & 15) * 8 < 136 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  for (int k = 0; k < 7; ++k) {
    cp_async_wait_group_1();
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int slot = (unsigned)k % 3u;
    const int warpgroup = warp >> 2;
    const int warpgroup_m = warpgroup;
    const int warpgroup_n = 0;
    wgmma_fence_sync_aligned();
    wgmma_m64n128k16_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 4096 + warpgroup_m * 2048], 16, 512, 2, 0, &B_shared_stages[slot * 4096 + warpgroup_n * 128], 4096, 1024, 1, 0, k == 0 ? 0 : 1);
    wgmma_m64n128k16_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 4096 + warpgroup_m * 2048], 16, 512, 2, 2, &B_shared_stages[slot * 4096 + warpgroup_n * 128], 4096, 1024, 1, 128, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_1();
    __syncthreads();
    const int slot_ahead = (unsigned)(k + 2) % 3u;
    if (k + 2 < 7) {
      if (by * 128 + 128 <= 130 && k * 32 + 64 + 32 <= 200) {
        #pragma unroll
        for (int turn_8 = 0; turn_8 < 2; ++turn_8) {
          cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_8 * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 128 + (tid >> 2)) * 200 + (k * 32 + (tid & 3) * 8 + 64)] + turn_8 * 12800);
        }
      }
      else {
        #pragma unroll
        for (int turn_9 = 0; turn_9 < 2; ++turn_9) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_9 * 2048 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 128 + (tid >> 2)) * 200 + (k * 32 + (tid & 3) * 8 + 64)] + turn_9 * 12800, by * 128 + turn_9 * 64 + (tid >> 2) < 130 && k * 32 + (tid & 3) * 8 + 64 < 200 ? 16 : 0);
        }
      }
      if (k * 32 + 64 + 32 <= 200 && bx * 128 + 128 <= 136) {
        #pragma unroll
        for (int turn_10 = 0; turn_10 < 2; ++turn_10) {
          cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(((tid & 15) >> 3) * 2048 + turn_10 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8) * 2u)), &B[(k * 32 + (tid >> 4) + 64) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_10 * 2176);
        }
      }
      else {
        #pragma unroll
        for (int turn_11 = 0; turn_11 < 2; ++turn_11) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(((tid & 15) >> 3) * 2048 + turn_11 * 1024 + (tid >> 4) * 64 + ((tid & 7) ^ ((tid & 127) >> 4)) * 8) * 2u)), &B[(k * 32 + (tid >> 4) + 64) * 136 + (bx * 128 + (tid & 15) * 8)] + turn_11 * 2176, k * 32 + turn_11 * 16 + (tid >> 4) + 64 < 200 && bx * 128 + (tid & 15) * 8 < 136 ? 16 : 0);
        }
      }
    }
    cp_async_commit_group();
  }
  wgmma_wait_group_sync_aligned_0();
  keep_f32_64(&C_local[0]);
  cp_async_wait_group_0();
  if (by < 1 && bx < 1) {
    const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1 = (tid & 3) * 2;
    #pragma unroll
    for (int r = 0; r < 16; ++r) {
      #pragma unroll
      for (int r_1 = 0; r_1 < 2; ++r_1) {
        __align__(16) f16 C_v[2];
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          C_v[v] = cvt_rn_f16_f32(C_local[r * 4 + r_1 * 2 + v]);
        }
        *(unsigned*)(&C[(by * 128 + i0) * 136 + (bx * 128 + i1)] + (r_1 * 1088 + r * 8)) = *(const unsigned*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_1 = (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 16; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        if (by * 128 + (r_3 * 8 + i0_1) < 130 && bx * 128 + (r_2 * 8 + i1_1) < 136) {
          __align__(16) f16 C_v_1[2];
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            C_v_1[v_1] = cvt_rn_f16_f32(C_local[r_2 * 4 + r_3 * 2 + v_1]);
          }
          *(unsigned*)(&C[(by * 128 + i0_1) * 136 + (bx * 128 + i1_1)] + (r_3 * 1088 + r_2 * 8)) = *(const unsigned*)&C_v_1[0];
        }
      }
    }
  }
}
