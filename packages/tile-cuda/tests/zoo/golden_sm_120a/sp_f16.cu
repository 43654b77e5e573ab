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
  short* const E_shared_stages = (short*)(smem + 12288);
  f16* const B_shared_stages = (f16*)(smem + 13824);
  float C_local[32];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      #pragma unroll
      for (int r_2 = 0; r_2 < 2; ++r_2) {
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          C_local[r * 16 + r_1 * 4 + r_2 * 2 + v] = 0.0f;
        }
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
  cp_async_wait_group_1();
  __syncthreads();
  const int slot_next = 0u % 3u;
  #pragma unroll
  for (int row_tile = 0; row_tile < 2; ++row_tile) {
    metadata_ahead[row_tile] = (unsigned)(unsigned short)E_shared_stages[slot_next * 256 + row_tile * 64 + warp_row * 4 + lane_g * 4 + lane_t] | ((unsigned)(unsigned short)E_shared_stages[slot_next * 256 + row_tile * 64 + warp_row * 4 + lane_g * 4 + lane_t + 32] << 16u);
  }
  ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot_next * 2048 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
  ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[0], &B_shared_stages[slot_next * 4096 + b_k * 64 + ((b_line >> 3) ^ (b_k & 7)) * 8]);
  ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[4], &B_shared_stages[slot_next * 4096 + b_k * 64 + (((b_line >> 3) + 1) ^ (b_k & 7)) * 8]);
  ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[8], &B_shared_stages[slot_next * 4096 + b_k * 64 + (((b_line >> 3) + 2) ^ (b_k & 7)) * 8]);
  ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[12], &B_shared_stages[slot_next * 4096 + b_k * 64 + (((b_line >> 3) + 3) ^ (b_k & 7)) * 8]);
  int ring;
  ring = 0;
  for (int k = 0; k < 3; ++k) {
    const int ring_here = ring;
    const int slot = ring_here;
    const int slot_ahead = ring_here < 1 ? (int)((unsigned)ring_here + 2u) : (int)((unsigned)ring_here - 1u);
    if (k + 2 < 3) {
      if (by * 64 + 64 <= 65) {
        #pragma unroll
        for (int turn_8 = 0; turn_8 < 2; ++turn_8) {
          cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_8 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A_sparse[(by * 64 + (tid >> 2)) * 96 + (k * 32 + (tid & 3) * 8 + 64)] + turn_8 * 3072);
        }
      }
      else {
        #pragma unroll
        for (int turn_9 = 0; turn_9 < 2; ++turn_9) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_9 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A_sparse[(by * 64 + (tid >> 2)) * 96 + (k * 32 + (tid & 3) * 8 + 64)] + turn_9 * 3072, by * 64 + turn_9 * 32 + (tid >> 2) < 65 ? 16 : 0);
        }
      }
      if (by * 64 + 64 <= 65) {
        if (tid < 64) {
          cp_async_ca_shared_global_8((short*)((char*)E_shared_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 4) * 2u)), &E[(by * 64 + tid) * 12 + (k * 4 + 8)]);
        }
      }
      else if (tid < 64) {
        cp_async_ca_shared_global_8_zfill((short*)((char*)E_shared_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 4) * 2u)), &E[(by * 64 + tid) * 12 + (k * 4 + 8)], by * 64 + tid < 65 ? 8 : 0);
      }
      if (bx * 64 + 64 <= 72) {
        #pragma unroll
        for (int turn_10 = 0; turn_10 < 4; ++turn_10) {
          cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_10 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[(k * 64 + (tid >> 3) + 128) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_10 * 1152);
        }
      }
      else {
        #pragma unroll
        for (int turn_11 = 0; turn_11 < 4; ++turn_11) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_11 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[(k * 64 + (tid >> 3) + 128) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_11 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
        }
      }
    }
    cp_async_commit_group();
    #pragma unroll
    for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
      metadata[row_tile_1] = metadata_ahead[row_tile_1] | (((metadata_ahead[row_tile_1] >> 1u) & 1145324612u) ^ 1145324612u);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8 + 512) * 2u)));
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_0(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 4], &C_local[column_tile * 4], metadata[0]);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_0(&C_local[column_tile_1 * 4 + 16], &a_words[4], &b_words[column_tile_1 * 4], &C_local[column_tile_1 * 4 + 16], metadata[1]);
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[column_tile_1 * 4], (f16*)((char*)B_shared_stages + ((unsigned)(slot * 8192) + (unsigned)(b_k * 64 + (((b_line >> 3) + column_tile_1) ^ (b_k & 7)) * 8 + 2048) * 2u)));
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(a_line * 32 + (((a_k >> 3) + 2) ^ (((a_line * 32 + a_k + 16) & 255) >> 6)) * 8 + 512) * 2u)));
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 4; ++column_tile_2) {
      mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_local[column_tile_2 * 4], &a_words[0], &b_words[column_tile_2 * 4], &C_local[column_tile_2 * 4], metadata[0]);
    }
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_local[16], &a_words[4], &b_words[0], &C_local[16], metadata[1]);
    cp_async_wait_group_1();
    __syncthreads();
    const int common = ring_here < 2 ? (int)((unsigned)ring_here + 1u) : (int)((unsigned)ring_here - 2u);
    const int slot_next_1 = k + 1 < 3 ? common : ring_here;
    #pragma unroll
    for (int row_tile_2 = 0; row_tile_2 < 2; ++row_tile_2) {
      metadata_ahead[row_tile_2] = (unsigned)(unsigned short)*(short*)((char*)E_shared_stages + ((unsigned)(slot_next_1 * 512) + (unsigned)(row_tile_2 * 64 + warp_row * 4 + lane_g * 4 + lane_t) * 2u)) | ((unsigned)(unsigned short)*(short*)((char*)E_shared_stages + ((unsigned)(slot_next_1 * 512) + (unsigned)(row_tile_2 * 64 + warp_row * 4 + lane_g * 4 + lane_t + 32) * 2u)) << 16u);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], (f16*)((char*)A_shared_stages + ((unsigned)(slot_next_1 * 4096) + (unsigned)(a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[0], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 8192) + (unsigned)(b_k * 64 + ((b_line >> 3) ^ (b_k & 7)) * 8) * 2u)));
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_local[20], &a_words[4], &b_words[4], &C_local[20], metadata[1]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[4], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 8192) + (unsigned)(b_k * 64 + (((b_line >> 3) + 1) ^ (b_k & 7)) * 8) * 2u)));
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_local[24], &a_words[4], &b_words[8], &C_local[24], metadata[1]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[8], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 8192) + (unsigned)(b_k * 64 + (((b_line >> 3) + 2) ^ (b_k & 7)) * 8) * 2u)));
    mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32_1(&C_local[28], &a_words[4], &b_words[12], &C_local[28], metadata[1]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[12], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 8192) + (unsigned)(b_k * 64 + (((b_line >> 3) + 3) ^ (b_k & 7)) * 8) * 2u)));
    ring = common;
  }
  cp_async_wait_group_0();
  if (by < 1 && bx < 1) {
    const int i0 = (tid >> 6) * 32 + ((tid & 31) >> 2);
    const int i1 = ((tid & 63) >> 5) * 32 + (tid & 3) * 2;
    #pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      #pragma unroll
      for (int r_4 = 0; r_4 < 4; ++r_4) {
        #pragma unroll
        for (int r_5 = 0; r_5 < 2; ++r_5) {
          __align__(16) float C_v[2];
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            C_v[v_1] = C_local[r_3 * 16 + r_4 * 4 + r_5 * 2 + v_1];
          }
          *(uint2*)(&C[(by * 64 + i0) * 72 + (bx * 64 + i1)] + (r_3 * 1152 + r_5 * 576 + r_4 * 8)) = *(const uint2*)&C_v[0];
        }
      }
    }
  }
  else {
    const int i0_1 = (tid >> 6) * 32 + ((tid & 31) >> 2);
    const int i1_1 = ((tid & 63) >> 5) * 32 + (tid & 3) * 2;
    #pragma unroll
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      #pragma unroll
      for (int r_7 = 0; r_7 < 4; ++r_7) {
        #pragma unroll
        for (int r_8 = 0; r_8 < 2; ++r_8) {
          if (by * 64 + (r_6 * 16 + r_8 * 8 + i0_1) < 65 && bx * 64 + (r_7 * 8 + i1_1) < 72) {
            __align__(16) float C_v_1[2];
            #pragma unroll
            for (int v_2 = 0; v_2 < 2; ++v_2) {
              C_v_1[v_2] = C_local[r_6 * 16 + r_7 * 4 + r_8 * 2 + v_2];
            }
            *(uint2*)(&C[(by * 64 + i0_1) * 72 + (bx * 64 + i1_1)] + (r_6 * 1152 + r_8 * 576 + r_7 * 8)) = *(const uint2*)&C_v_1[0];
          }
        }
      }
    }
  }
}
