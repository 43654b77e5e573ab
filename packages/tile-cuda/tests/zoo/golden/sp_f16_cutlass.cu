typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_0(float* d, const unsigned* a, const unsigned* b, const float* c, unsigned e) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %13, %14, %15}, %16, 0x0;"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(e));
}
__device__ __forceinline__ void mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(float* d, const unsigned* a, const unsigned* b, const float* c, unsigned e) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %13, %14, %15}, %16, 0x1;"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(e));
}
__device__ __forceinline__ void cp_async_cg_shared_global_16(void* smem, const void* gmem) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_group_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }

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
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 8192);
  short* const E_shared = (short*)(smem + 24576);
  float C_frag[32];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      #pragma unroll
      for (int r_2 = 0; r_2 < 2; ++r_2) {
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          C_frag[r * 16 + r_1 * 4 + r_2 * 2 + v] = 0.0f;
        }
      }
    }
  }
  #pragma unroll
  for (int turn = 0; turn < 2; ++turn) {
    cp_async_cg_shared_global_16(&A_shared_stages[turn * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A_sparse[(tid >> 2) * 64 + (tid & 3) * 8] + turn * 2048);
  }
  #pragma unroll
  for (int turn_1 = 0; turn_1 < 4; ++turn_1) {
    cp_async_cg_shared_global_16(&B_shared_stages[turn_1 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8], &B[tid * 8] + turn_1 * 1024);
  }
  cp_async_commit_group();
  short E_ahead[2];
  #pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    E_ahead[r_3] = E[((tid & 1) * 16 + (tid >> 6) * 8 + ((tid & 15) >> 1)) * 8 + (((tid & 63) >> 5) * 4 + r_3 * 2 + ((tid & 31) >> 4))];
  }
  for (int k = 0; k < 2; ++k) {
    cp_async_wait_group_0();
    __syncthreads();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 2) {
      #pragma unroll
      for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
        cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_2 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A_sparse[(tid >> 2) * 64 + (k * 32 + (tid & 3) * 8 + 32)] + turn_2 * 2048);
      }
      #pragma unroll
      for (int turn_3 = 0; turn_3 < 4; ++turn_3) {
        cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_3 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[k * 4096 + tid * 8 + 4096] + turn_3 * 1024);
      }
    }
    cp_async_commit_group();
    const int i0 = tid >> 1;
    const int i1 = (tid & 1) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      E_shared[((i1 + r_4) >> 1) * 128 + (i0 >> 5) * 64 + (i0 & 7) * 8 + ((i0 & 31) >> 4) * 4 + ((i1 + r_4) & 1) * 2 + ((i0 & 15) >> 3)] = E_ahead[r_4];
    }
    if (k + 1 < 2) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        E_ahead[r_5] = E[(k * 32 + (tid & 1) * 16 + (tid >> 6) * 8 + ((tid & 15) >> 1) + 32) * 8 + (((tid & 63) >> 5) * 4 + r_5 * 2 + ((tid & 31) >> 4))];
      }
    }
    __syncthreads();
    const int lane = tid & 31;
    const int lane_g = lane >> 2;
    const int lane_t = lane & 3;
    const int warp_row = ((tid >> 5) >> 1) * 32;
    const int warp_column = ((tid >> 5) & 1) * 32;
    unsigned a_words[8];
    unsigned b_words[16];
    const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
    const int a_k = ((lane >> 3) >> 1) * 8;
    const int b_line = warp_column;
    const int b_k = (lane >> 3) * 8 + (lane & 7);
    unsigned metadata_ahead[2];
    unsigned metadata[2];
    #pragma unroll
    for (int row_tile = 0; row_tile < 2; ++row_tile) {
      metadata_ahead[row_tile] = (unsigned)(unsigned short)E_shared[(lane_t >> 1) * 128 + ((row_tile * 16 + warp_row + lane_g) >> 5) * 64 + ((warp_row + lane_g) & 7) * 8 + ((((warp_row + lane_g) >> 4) + row_tile) & 1) * 4 + (lane_t & 1) * 2 + (((warp_row + lane_g) & 15) >> 3)] | ((unsigned)(unsigned short)E_shared[(lane_t >> 1) * 128 + ((row_tile * 16 + warp_row + lane_g + 8) >> 5) * 64 + ((warp_row + lane_g) & 7) * 8 + ((((warp_row + lane_g + 8) >> 4) + row_tile) & 1) * 4 + (lane_t & 1) * 2 + ((((warp_row + lane_g) >> 3) + 1) & 1)] << 16u);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 2048 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[0], &B_shared_stages[slot * 4096 + b_k * 64 + ((b_line >> 3) ^ (b_k & 7)) * 8]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[4], &B_shared_stages[slot * 4096 + b_k * 64 + (((b_line >> 3) + 1) ^ (b_k & 7)) * 8]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[8], &B_shared_stages[slot * 4096 + b_k * 64 + (((b_line >> 3) + 2) ^ (b_k & 7)) * 8]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[12], &B_shared_stages[slot * 4096 + b_k * 64 + (((b_line >> 3) + 3) ^ (b_k & 7)) * 8]);
    #pragma unroll
    for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
      metadata[row_tile_1] = metadata_ahead[row_tile_1] | (((metadata_ahead[row_tile_1] >> 1u) & 1145324612u) ^ 1145324612u);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &A_shared_stages[slot * 2048 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8 + 512]);
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_0(&C_frag[column_tile * 4], &a_words[0], &b_words[column_tile * 4], &C_frag[column_tile * 4], metadata[0]);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 2048 + a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8]);
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_0(&C_frag[column_tile_1 * 4 + 16], &a_words[4], &b_words[column_tile_1 * 4], &C_frag[column_tile_1 * 4 + 16], metadata[1]);
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[column_tile_1 * 4], &B_shared_stages[slot * 4096 + b_k * 64 + (((b_line >> 3) + column_tile_1) ^ (b_k & 7)) * 8 + 2048]);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &A_shared_stages[slot * 2048 + a_line * 32 + (((a_k >> 3) + 2) ^ (((a_line * 32 + a_k + 16) & 255) >> 6)) * 8 + 512]);
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 4; ++column_tile_2) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_frag[column_tile_2 * 4], &a_words[0], &b_words[column_tile_2 * 4], &C_frag[column_tile_2 * 4], metadata[0]);
    }
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_frag[16], &a_words[4], &b_words[0], &C_frag[16], metadata[1]);
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_frag[20], &a_words[4], &b_words[4], &C_frag[20], metadata[1]);
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_frag[24], &a_words[4], &b_words[8], &C_frag[24], metadata[1]);
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_frag[28], &a_words[4], &b_words[12], &C_frag[28], metadata[1]);
  }
  cp_async_wait_group_0();
  const int i0_1 = (tid >> 6) * 32 + ((tid & 31) >> 2);
  const int i1_1 = ((tid & 63) >> 5) * 32 + (tid & 3) * 2;
  #pragma unroll
  for (int r_6 = 0; r_6 < 2; ++r_6) {
    #pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      #pragma unroll
      for (int r_8 = 0; r_8 < 2; ++r_8) {
        __align__(16) float C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = C_frag[r_6 * 16 + r_7 * 4 + r_8 * 2 + v_1];
        }
        *(uint2*)(&C[i0_1 * 64 + i1_1] + (r_6 * 1024 + r_8 * 512 + r_7 * 8)) = *(const uint2*)&C_v[0];
      }
    }
  }
}
