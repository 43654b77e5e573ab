typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void cp_async_ca_shared_global_8(void* smem, const void* gmem) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_ca_shared_global_8_zfill(void* smem, const void* gmem, int valid_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
      :
      : "r"(shared_address(smem)), "l"(gmem), "r"(valid_bytes)
      : "memory");
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
__device__ __forceinline__ void keep_f32_32(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      :
      : "memory");
}
__device__ __forceinline__ void read_metadata_1(const unsigned* e) {
  asm volatile("{ .reg .pred p; .reg .u32 t; mov.u32 t, %0; setp.eq.u32 p, t, 0; @p pmevent 1; }"
      :
      : "r"(e[0])
      : "memory");
}
__device__ __forceinline__ void wgmma_sp0_m64n64k32_f32_f16_f16_ss_tb(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, const unsigned* e, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %35, 0; wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, %34, 0, p, 1, 1, 0, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(e[0]), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void wgmma_sp1_m64n64k32_f32_f16_f16_ss_tb(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, const unsigned* e, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %35, 0; wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, %34, 1, p, 1, 1, 0, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(e[0]), "r"(adds)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) main_1(
    const f16* __restrict__ A_sparse,
    const short* __restrict__ E,
    const f16* __restrict__ B,
    float* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  f16* const A_shared_stages = (f16*)(smem + 24576);
  short* const E_shared_stages = (short*)(smem + 36864);
  f16* const B_shared_stages = (f16*)smem;
  float C_local[32];
  #pragma unroll
  for (int r = 0; r < 8; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        C_local[r * 4 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  if (by * 64 + 64 <= 65) {
    #pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A_sparse[(by * 64 + (tid >> 2)) * 96 + (tid & 3) * 8] + turn * 3072);
    }
  }
  else {
    #pragma unroll
    for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_1 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A_sparse[(by * 64 + (tid >> 2)) * 96 + (tid & 3) * 8] + turn_1 * 3072, by * 64 + turn_1 * 32 + (tid >> 2) < 65 ? 16 : 0);
    }
  }
  if (by * 64 + 64 <= 65) {
    if (tid < 64) {
      cp_async_ca_shared_global_8(&E_shared_stages[tid * 4], &E[(by * 64 + tid) * 12]);
    }
  }
  else if (tid < 64) {
    cp_async_ca_shared_global_8_zfill(&E_shared_stages[tid * 4], &E[(by * 64 + tid) * 12], by * 64 + tid < 65 ? 8 : 0);
  }
  if (bx * 64 + 64 <= 72) {
    #pragma unroll
    for (int turn_2 = 0; turn_2 < 4; ++turn_2) {
      cp_async_cg_shared_global_16(&B_shared_stages[turn_2 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8], &B[(tid >> 3) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_2 * 1152);
    }
  }
  else {
    #pragma unroll
    for (int turn_3 = 0; turn_3 < 4; ++turn_3) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[turn_3 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8], &B[(tid >> 3) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_3 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  if (by * 64 + 64 <= 65) {
    #pragma unroll
    for (int turn_4 = 0; turn_4 < 2; ++turn_4) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn_4 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 2048], &A_sparse[(by * 64 + (tid >> 2)) * 96 + ((tid & 3) * 8 + 32)] + turn_4 * 3072);
    }
  }
  else {
    #pragma unroll
    for (int turn_5 = 0; turn_5 < 2; ++turn_5) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_5 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 2048], &A_sparse[(by * 64 + (tid >> 2)) * 96 + ((tid & 3) * 8 + 32)] + turn_5 * 3072, by * 64 + turn_5 * 32 + (tid >> 2) < 65 ? 16 : 0);
    }
  }
  if (by * 64 + 64 <= 65) {
    if (tid < 64) {
      cp_async_ca_shared_global_8(&E_shared_stages[tid * 4 + 256], &E[(by * 64 + tid) * 12 + 4]);
    }
  }
  else if (tid < 64) {
    cp_async_ca_shared_global_8_zfill(&E_shared_stages[tid * 4 + 256], &E[(by * 64 + tid) * 12 + 4], by * 64 + tid < 65 ? 8 : 0);
  }
  if (bx * 64 + 64 <= 72) {
    #pragma unroll
    for (int turn_6 = 0; turn_6 < 4; ++turn_6) {
      cp_async_cg_shared_global_16(&B_shared_stages[turn_6 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8 + 4096], &B[((tid >> 3) + 64) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_6 * 1152);
    }
  }
  else {
    #pragma unroll
    for (int turn_7 = 0; turn_7 < 4; ++turn_7) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[turn_7 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8 + 4096], &B[((tid >> 3) + 64) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_7 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  wgmma_wait_group_sync_aligned_0();
  keep_f32_32(&C_local[0]);
  unsigned metadata;
  metadata = 1145324612u;
  unsigned metadata_odd;
  metadata_odd = 1145324612u;
  for (int k_pair = 0; k_pair < 1; ++k_pair) {
    cp_async_wait_group_1();
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int slot = (unsigned)(k_pair * 2) % 3u;
    const int lane = tid & 127;
    const int lane_g = (lane >> 5) * 16 + ((lane & 31) >> 2);
    const int lane_t = lane & 31 & 3;
    const int group_row = 0;
    const int warpgroup_m = 0;
    const int warpgroup_n = 0;
    metadata = (unsigned)(unsigned short)E_shared_stages[slot * 256 + group_row * 4 + lane_g * 4 + lane_t] | ((unsigned)(unsigned short)E_shared_stages[slot * 256 + group_row * 4 + lane_g * 4 + lane_t + 32] << 16u);
    metadata = metadata | (((metadata >> 1u) & 1145324612u) ^ 1145324612u);
    wgmma_fence_sync_aligned();
    wgmma_sp0_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 2048 + warpgroup_m * 2048], 16, 512, 2, 0, &B_shared_stages[slot * 4096 + warpgroup_n * 64], 8192, 1024, 1, 0, &metadata, 1);
    wgmma_sp1_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 2048 + warpgroup_m * 2048], 16, 512, 2, 2, &B_shared_stages[slot * 4096 + warpgroup_n * 64], 8192, 1024, 1, 256, &metadata, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_1();
    read_metadata_1(&metadata_odd);
    __syncthreads();
    const int slot_ahead = (unsigned)(k_pair * 2 + 2) % 3u;
    if (by * 64 + 64 <= 65) {
      #pragma unroll
      for (int turn_8 = 0; turn_8 < 2; ++turn_8) {
        cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_8 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A_sparse[(by * 64 + (tid >> 2)) * 96 + ((tid & 3) * 8 + 64)] + turn_8 * 3072);
      }
    }
    else {
      #pragma unroll
      for (int turn_9 = 0; turn_9 < 2; ++turn_9) {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_9 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A_sparse[(by * 64 + (tid >> 2)) * 96 + ((tid & 3) * 8 + 64)] + turn_9 * 3072, by * 64 + turn_9 * 32 + (tid >> 2) < 65 ? 16 : 0);
      }
    }
    if (by * 64 + 64 <= 65) {
      if (tid < 64) {
        cp_async_ca_shared_global_8((short*)((char*)E_shared_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 4) * 2u)), &E[(by * 64 + tid) * 12 + 8]);
      }
    }
    else if (tid < 64) {
      cp_async_ca_shared_global_8_zfill((short*)((char*)E_shared_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 4) * 2u)), &E[(by * 64 + tid) * 12 + 8], by * 64 + tid < 65 ? 8 : 0);
    }
    if (bx * 64 + 64 <= 72) {
      #pragma unroll
      for (int turn_10 = 0; turn_10 < 4; ++turn_10) {
        cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_10 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[((tid >> 3) + 128) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_10 * 1152);
      }
    }
    else {
      #pragma unroll
      for (int turn_11 = 0; turn_11 < 4; ++turn_11) {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_11 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[((tid >> 3) + 128) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_11 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
      }
    }
    cp_async_commit_group();
    cp_async_wait_group_1();
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int slot_1 = (unsigned)(k_pair * 2 + 1) % 3u;
    const int lane_1 = tid & 127;
    const int lane_g_1 = (lane_1 >> 5) * 16 + ((lane_1 & 31) >> 2);
    const int lane_t_1 = lane_1 & 31 & 3;
    const int group_row_1 = 0;
    const int warpgroup_m_1 = 0;
    const int warpgroup_n_1 = 0;
    metadata_odd = (unsigned)(unsigned short)E_shared_stages[slot_1 * 256 + group_row_1 * 4 + lane_g_1 * 4 + lane_t_1] | ((unsigned)(unsigned short)E_shared_stages[slot_1 * 256 + group_row_1 * 4 + lane_g_1 * 4 + lane_t_1 + 32] << 16u);
    metadata_odd = metadata_odd | (((metadata_odd >> 1u) & 1145324612u) ^ 1145324612u);
    wgmma_fence_sync_aligned();
    wgmma_sp0_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot_1 * 2048 + warpgroup_m_1 * 2048], 16, 512, 2, 0, &B_shared_stages[slot_1 * 4096 + warpgroup_n_1 * 64], 8192, 1024, 1, 0, &metadata_odd, 1);
    wgmma_sp1_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot_1 * 2048 + warpgroup_m_1 * 2048], 16, 512, 2, 2, &B_shared_stages[slot_1 * 4096 + warpgroup_n_1 * 64], 8192, 1024, 1, 256, &metadata_odd, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_1();
    read_metadata_1(&metadata);
    __syncthreads();
    cp_async_commit_group();
  }
  cp_async_wait_group_1();
  fence_proxy_async_shared_cta();
  __syncthreads();
  const int slot_2 = 2u % 3u;
  const int lane_2 = tid & 127;
  const int lane_g_2 = (lane_2 >> 5) * 16 + ((lane_2 & 31) >> 2);
  const int lane_t_2 = lane_2 & 31 & 3;
  const int group_row_2 = 0;
  const int warpgroup_m_2 = 0;
  const int warpgroup_n_2 = 0;
  metadata = (unsigned)(unsigned short)E_shared_stages[slot_2 * 256 + group_row_2 * 4 + lane_g_2 * 4 + lane_t_2] | ((unsigned)(unsigned short)E_shared_stages[slot_2 * 256 + group_row_2 * 4 + lane_g_2 * 4 + lane_t_2 + 32] << 16u);
  metadata = metadata | (((metadata >> 1u) & 1145324612u) ^ 1145324612u);
  wgmma_fence_sync_aligned();
  wgmma_sp0_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot_2 * 2048 + warpgroup_m_2 * 2048], 16, 512, 2, 0, &B_shared_stages[slot_2 * 4096 + warpgroup_n_2 * 64], 8192, 1024, 1, 0, &metadata, 1);
  wgmma_sp1_m64n64k32_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot_2 * 2048 + warpgroup_m_2 * 2048], 16, 512, 2, 2, &B_shared_stages[slot_2 * 4096 + warpgroup_n_2 * 64], 8192, 1024, 1, 256, &metadata, 1);
  wgmma_commit_group_sync_aligned();
  wgmma_wait_group_sync_aligned_1();
  read_metadata_1(&metadata_odd);
  __syncthreads();
  cp_async_commit_group();
  wgmma_wait_group_sync_aligned_0();
  keep_f32_32(&C_local[0]);
  read_metadata_1(&metadata);
  read_metadata_1(&metadata_odd);
  cp_async_wait_group_0();
  if (by < 1 && bx < 1) {
    const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1 = (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        __align__(16) float C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = C_local[r_2 * 4 + r_3 * 2 + v_1];
        }
        *(uint2*)(&C[(by * 64 + i0) * 72 + (bx * 64 + i1)] + (r_3 * 576 + r_2 * 8)) = *(const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_1 = (tid & 3) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 8; ++r_4) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        if (by * 64 + (r_5 * 8 + i0_1) < 65 && bx * 64 + (r_4 * 8 + i1_1) < 72) {
          __align__(16) float C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = C_local[r_4 * 4 + r_5 * 2 + v_2];
          }
          *(uint2*)(&C[(by * 64 + i0_1) * 72 + (bx * 64 + i1_1)] + (r_5 * 576 + r_4 * 8)) = *(const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
