__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0(float* d, const unsigned* a, const unsigned* b, const float* c, unsigned a_scale, unsigned short a_byte, unsigned short a_thread, unsigned b_scale, unsigned short b_byte, unsigned short b_thread) {
  asm("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13}, %14, { %15, %16 }, %17, { %18, %19 };"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(a_scale), "h"(a_byte), "h"(a_thread), "r"(b_scale), "h"(b_byte), "h"(b_thread));
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

extern "C" __global__ void __launch_bounds__(128) scaled(
    const unsigned char* __restrict__ A,
    const unsigned char* __restrict__ A_scale,
    const unsigned char* __restrict__ B,
    const unsigned char* __restrict__ B_scale,
    float* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  unsigned char* const A_shared_stages = (unsigned char*)smem;
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 16384);
  unsigned char* const rows = (unsigned char*)(smem + 24576);
  unsigned char* const columns = (unsigned char*)(smem + 24832);
  float C_local[16];
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
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
    for (int turn = 0; turn < 4; ++turn) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16], &A[(by * 64 + (tid >> 3)) * 320 + (tid & 7) * 16] + turn * 5120);
    }
  }
  else {
    #pragma unroll
    for (int turn_1 = 0; turn_1 < 4; ++turn_1) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_1 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16], &A[(by * 64 + (tid >> 3)) * 320 + (tid & 7) * 16] + turn_1 * 5120, by * 64 + turn_1 * 16 + (tid >> 3) < 65 ? 16 : 0);
    }
  }
  if (bx * 32 + 32 <= 40) {
    #pragma unroll
    for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
      cp_async_cg_shared_global_16(&B_shared_stages[turn_2 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16], &B[(bx * 32 + (tid >> 3)) * 320 + (tid & 7) * 16] + turn_2 * 5120);
    }
  }
  else {
    #pragma unroll
    for (int turn_3 = 0; turn_3 < 2; ++turn_3) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[turn_3 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16], &B[(bx * 32 + (tid >> 3)) * 320 + (tid & 7) * 16] + turn_3 * 5120, bx * 32 + turn_3 * 16 + (tid >> 3) < 40 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  unsigned char B_scale_ahead;
  if (bx < 1 || (1 <= bx && bx * 32 + (tid >> 2) < 40)) {
    B_scale_ahead = B_scale[(bx * 32 + (tid >> 2)) * 10 + (tid & 3)];
  }
  for (int k = 0; k < 3; ++k) {
    cp_async_wait_group_0();
    __syncthreads();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      if (by * 64 + 64 <= 65 && k * 128 + 128 + 128 <= 320) {
        #pragma unroll
        for (int turn_4 = 0; turn_4 < 4; ++turn_4) {
          cp_async_cg_shared_global_16((unsigned char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_4 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16) * 1u)), &A[(by * 64 + (tid >> 3)) * 320 + (k * 128 + (tid & 7) * 16 + 128)] + turn_4 * 5120);
        }
      }
      else {
        #pragma unroll
        for (int turn_5 = 0; turn_5 < 4; ++turn_5) {
          cp_async_cg_shared_global_16_zfill((unsigned char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 8192) + (unsigned)(turn_5 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16) * 1u)), &A[(by * 64 + (tid >> 3)) * 320 + (k * 128 + (tid & 7) * 16 + 128)] + turn_5 * 5120, by * 64 + turn_5 * 16 + (tid >> 3) < 65 && k * 128 + (tid & 7) * 16 + 128 < 320 ? 16 : 0);
        }
      }
      if (bx * 32 + 32 <= 40 && k * 128 + 128 + 128 <= 320) {
        #pragma unroll
        for (int turn_6 = 0; turn_6 < 2; ++turn_6) {
          cp_async_cg_shared_global_16((unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_6 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 3)) * 320 + (k * 128 + (tid & 7) * 16 + 128)] + turn_6 * 5120);
        }
      }
      else {
        #pragma unroll
        for (int turn_7 = 0; turn_7 < 2; ++turn_7) {
          cp_async_cg_shared_global_16_zfill((unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_7 * 2048 + (tid >> 3) * 128 + ((tid & 7) ^ ((tid & 63) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 3)) * 320 + (k * 128 + (tid & 7) * 16 + 128)] + turn_7 * 5120, bx * 32 + turn_7 * 16 + (tid >> 3) < 40 && k * 128 + (tid & 7) * 16 + 128 < 320 ? 16 : 0);
        }
      }
    }
    cp_async_commit_group();
    if (by < 1 && k < 2) {
      const int i0 = tid >> 1;
      const int i1 = (tid & 1) * 2;
      *(unsigned short*)&rows[i0 * 4 + i1] = *(const unsigned short*)&A_scale[(by * 64 + i0) * 10 + (k * 4 + i1)];
    }
    else {
      const int i0_1 = tid >> 1;
      const int i1_1 = (tid & 1) * 2;
      if (by * 64 + i0_1 < 65 && k * 4 + i1_1 < 10) {
        *(unsigned short*)&rows[i0_1 * 4 + i1_1] = *(const unsigned short*)&A_scale[(by * 64 + i0_1) * 10 + (k * 4 + i1_1)];
      }
      else {
        __align__(16) unsigned char rows_v[2];
        #pragma unroll
        for (int r_2 = 0; r_2 < 2; ++r_2) {
          rows_v[r_2] = 0;
        }
        *(unsigned short*)&rows[i0_1 * 4 + i1_1] = *(const unsigned short*)&rows_v[0];
      }
    }
    if (bx < 1 && k < 2) {
      const int i0_2 = tid >> 2;
      const int i1_2 = tid & 3;
      columns[i0_2 * 4 + i1_2] = B_scale_ahead;
    }
    else {
      const int i0_3 = tid >> 2;
      const int i1_3 = tid & 3;
      columns[i0_3 * 4 + i1_3] = bx * 32 + i0_3 < 40 && k * 4 + i1_3 < 10 ? B_scale_ahead : (unsigned char)0;
    }
    if (k + 1 < 3) {
      if ((bx < 1 && k + 1 < 2) || ((1 <= bx || 2 <= k + 1) && (bx * 32 + (tid >> 2) < 40 && (k + 1) * 2 + ((tid & 3) >> 1) < 5))) {
        B_scale_ahead = B_scale[(bx * 32 + (tid >> 2)) * 10 + (k * 4 + (tid & 3) + 4)];
      }
    }
    __syncthreads();
    const int lane = tid & 31;
    const int lane_g = lane >> 2;
    const int lane_t = lane & 3;
    const int warp_row = (tid >> 5) * 16;
    const int warp_column = 0;
    unsigned a_scales;
    unsigned b_scales[4];
    *(unsigned*)&a_scales = *(const unsigned*)&rows[(lane_t & 1) * 32 + warp_row * 4 + lane_g * 4];
    #pragma unroll
    for (int scale_tile = 0; scale_tile < 4; ++scale_tile) {
      *(unsigned*)&b_scales[scale_tile] = *(const unsigned*)(unsigned char*)((char*)columns + ((unsigned)(warp_column * 4 + lane_g * 4) + (unsigned)(scale_tile * 32) * 1u));
    }
    unsigned a_words[8];
    unsigned b_words[16];
    const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
    const int a_k = ((lane >> 3) >> 1) * 16;
    const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
    const int b_k = ((lane >> 3) & 1) * 16;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 8192 + a_line * 128 + ((a_k >> 4) ^ (a_line & 7)) * 16]);
    #pragma unroll
    for (int b_tile = 0; b_tile < 2; ++b_tile) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile * 4], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 4096 + b_line * 128 + ((b_k >> 4) ^ (b_line & 7)) * 16) + (unsigned)(b_tile * 2048) * 1u)));
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &A_shared_stages[slot * 8192 + a_line * 128 + (((a_k >> 4) + 2) ^ (a_line & 7)) * 16]);
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_1 * 4 + 8], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 4096 + b_line * 128 + (((b_k >> 4) + 2) ^ (b_line & 7)) * 16) + (unsigned)(b_tile_1 * 2048) * 1u)));
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4], a_scales, 0, 0, b_scales[column_tile], 0, 0);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 8192 + a_line * 128 + (((a_k >> 4) + 4) ^ (a_line & 7)) * 16]);
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_2 * 4], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 4096 + b_line * 128 + (((b_k >> 4) + 4) ^ (b_line & 7)) * 16) + (unsigned)(b_tile_2 * 2048) * 1u)));
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0(&C_local[column_tile_1 * 4], &a_words[4], &b_words[column_tile_1 * 2 + 8], &C_local[column_tile_1 * 4], a_scales, 1, 0, b_scales[column_tile_1], 1, 0);
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &A_shared_stages[slot * 8192 + a_line * 128 + (((a_k >> 4) + 6) ^ (a_line & 7)) * 16]);
    #pragma unroll
    for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_3 * 4 + 8], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 4096 + b_line * 128 + (((b_k >> 4) + 6) ^ (b_line & 7)) * 16) + (unsigned)(b_tile_3 * 2048) * 1u)));
    }
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 4; ++column_tile_2) {
      mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0(&C_local[column_tile_2 * 4], &a_words[0], &b_words[column_tile_2 * 2], &C_local[column_tile_2 * 4], a_scales, 2, 0, b_scales[column_tile_2], 2, 0);
    }
    #pragma unroll
    for (int column_tile_3 = 0; column_tile_3 < 4; ++column_tile_3) {
      mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0(&C_local[column_tile_3 * 4], &a_words[4], &b_words[column_tile_3 * 2 + 8], &C_local[column_tile_3 * 4], a_scales, 3, 0, b_scales[column_tile_3], 3, 0);
    }
  }
  cp_async_wait_group_0();
  if (by < 1 && bx < 1) {
    const int i0_4 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_4 = (tid & 3) * 2;
    #pragma unroll
    for (int r_3 = 0; r_3 < 4; ++r_3) {
      #pragma unroll
      for (int r_4 = 0; r_4 < 2; ++r_4) {
        __align__(16) float C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = C_local[r_3 * 4 + r_4 * 2 + v_1];
        }
        *(uint2*)(&C[(by * 64 + i0_4) * 40 + (bx * 32 + i1_4)] + (r_4 * 320 + r_3 * 8)) = *(const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_5 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_5 = (tid & 3) * 2;
    #pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      #pragma unroll
      for (int r_6 = 0; r_6 < 2; ++r_6) {
        if (by * 64 + (r_6 * 8 + i0_5) < 65 && bx * 32 + (r_5 * 8 + i1_5) < 40) {
          __align__(16) float C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = C_local[r_5 * 4 + r_6 * 2 + v_2];
          }
          *(uint2*)(&C[(by * 64 + i0_5) * 40 + (bx * 32 + i1_5)] + (r_6 * 320 + r_5 * 8)) = *(const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
