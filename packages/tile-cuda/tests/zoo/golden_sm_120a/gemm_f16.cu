typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
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
__device__ __forceinline__ void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float* d, const unsigned* a, const unsigned* b, const float* c) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
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

extern "C" __global__ void __launch_bounds__(128) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 12288);
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
  if (by * 64 + 64 <= 131) {
    #pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 64 + (tid >> 2)) * 200 + (tid & 3) * 8] + turn * 6400);
    }
  }
  else {
    #pragma unroll
    for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_1 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 64 + (tid >> 2)) * 200 + (tid & 3) * 8] + turn_1 * 6400, by * 64 + turn_1 * 32 + (tid >> 2) < 131 ? 16 : 0);
    }
  }
  if (bx * 64 + 64 <= 72) {
    #pragma unroll
    for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
      cp_async_cg_shared_global_16(&B_shared_stages[turn_2 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8], &B[(tid >> 3) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_2 * 1152);
    }
  }
  else {
    #pragma unroll
    for (int turn_3 = 0; turn_3 < 2; ++turn_3) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[turn_3 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8], &B[(tid >> 3) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_3 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  if (by * 64 + 64 <= 131) {
    #pragma unroll
    for (int turn_4 = 0; turn_4 < 2; ++turn_4) {
      cp_async_cg_shared_global_16(&A_shared_stages[turn_4 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 2048], &A[(by * 64 + (tid >> 2)) * 200 + ((tid & 3) * 8 + 32)] + turn_4 * 6400);
    }
  }
  else {
    #pragma unroll
    for (int turn_5 = 0; turn_5 < 2; ++turn_5) {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[turn_5 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8 + 2048], &A[(by * 64 + (tid >> 2)) * 200 + ((tid & 3) * 8 + 32)] + turn_5 * 6400, by * 64 + turn_5 * 32 + (tid >> 2) < 131 ? 16 : 0);
    }
  }
  if (bx * 64 + 64 <= 72) {
    #pragma unroll
    for (int turn_6 = 0; turn_6 < 2; ++turn_6) {
      cp_async_cg_shared_global_16(&B_shared_stages[turn_6 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8 + 2048], &B[((tid >> 3) + 32) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_6 * 1152);
    }
  }
  else {
    #pragma unroll
    for (int turn_7 = 0; turn_7 < 2; ++turn_7) {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[turn_7 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8 + 2048], &B[((tid >> 3) + 32) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_7 * 1152, bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
    }
  }
  cp_async_commit_group();
  const int lane = tid & 31;
  const int warp_row = ((tid >> 5) >> 1) * 32;
  const int warp_column = ((tid >> 5) & 1) * 32;
  unsigned a_words[16];
  unsigned b_words[16];
  const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
  const int a_k = ((lane >> 3) >> 1) * 8;
  const int b_line = warp_column + ((lane >> 3) >> 1) * 8;
  const int b_k = ((lane >> 3) & 1) * 8 + (lane & 7);
  cp_async_wait_group_1();
  __syncthreads();
  const int slot_next = 0u % 3u;
  #pragma unroll
  for (int a_tile = 0; a_tile < 2; ++a_tile) {
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[a_tile * 4], &A_shared_stages[slot_next * 2048 + a_tile * 512 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
  }
  #pragma unroll
  for (int b_tile = 0; b_tile < 2; ++b_tile) {
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[b_tile * 4], &B_shared_stages[slot_next * 2048 + b_k * 64 + ((b_tile * 2 + (b_line >> 3)) ^ (b_k & 7)) * 8]);
  }
  for (int k = 0; k < 7; ++k) {
    const int slot = (unsigned)k % 3u;
    const int slot_ahead = (unsigned)(k + 2) % 3u;
    if (k + 2 < 7) {
      if (by * 64 + 64 <= 131 && k * 32 + 64 + 32 <= 200) {
        #pragma unroll
        for (int turn_8 = 0; turn_8 < 2; ++turn_8) {
          cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_8 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 64 + (tid >> 2)) * 200 + (k * 32 + (tid & 3) * 8 + 64)] + turn_8 * 6400);
        }
      }
      else {
        #pragma unroll
        for (int turn_9 = 0; turn_9 < 2; ++turn_9) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_9 * 1024 + (tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 64 + (tid >> 2)) * 200 + (k * 32 + (tid & 3) * 8 + 64)] + turn_9 * 6400, by * 64 + turn_9 * 32 + (tid >> 2) < 131 && k * 32 + (tid & 3) * 8 + 64 < 200 ? 16 : 0);
        }
      }
    }
    #pragma unroll
    for (int a_tile_1 = 0; a_tile_1 < 2; ++a_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[a_tile_1 * 4 + 8], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(a_tile_1 * 512 + a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    }
    if (k + 2 < 7) {
      if (k * 32 + 64 + 32 <= 200 && bx * 64 + 64 <= 72) {
        #pragma unroll
        for (int turn_10 = 0; turn_10 < 2; ++turn_10) {
          cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_10 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[(k * 32 + (tid >> 3) + 64) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_10 * 1152);
        }
      }
      else {
        #pragma unroll
        for (int turn_11 = 0; turn_11 < 2; ++turn_11) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_11 * 1024 + (tid >> 3) * 64 + ((tid & 7) ^ ((tid & 63) >> 3)) * 8) * 2u)), &B[(k * 32 + (tid >> 3) + 64) * 72 + (bx * 64 + (tid & 7) * 8)] + turn_11 * 1152, k * 32 + turn_11 * 16 + (tid >> 3) + 64 < 200 && bx * 64 + (tid & 7) * 8 < 72 ? 16 : 0);
        }
      }
    }
    cp_async_commit_group();
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[b_tile_1 * 4 + 8], (f16*)((char*)B_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(b_k * 64 + ((b_tile_1 * 2 + (b_line >> 3)) ^ (b_k & 7)) * 8 + 1024) * 2u)));
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      #pragma unroll
      for (int row_tile = 0; row_tile < 2; ++row_tile) {
        mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[((column_tile & 1) == 0 ? row_tile : 1 - row_tile) * 16 + column_tile * 4], &a_words[((column_tile & 1) == 0 ? row_tile : 1 - row_tile) * 4], &b_words[column_tile * 2], &C_local[((column_tile & 1) == 0 ? row_tile : 1 - row_tile) * 16 + column_tile * 4]);
      }
    }
    cp_async_wait_group_1();
    __syncthreads();
    const int slot_next_1 = k + 1 < 7 ? (int)((unsigned)(k + 1) % 3u) : (int)((unsigned)k % 3u);
    #pragma unroll
    for (int a_tile_2 = 0; a_tile_2 < 2; ++a_tile_2) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[a_tile_2 * 4], (f16*)((char*)A_shared_stages + ((unsigned)(slot_next_1 * 4096) + (unsigned)(a_tile_2 * 512 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    }
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[b_tile_2 * 4], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 4096) + (unsigned)(b_k * 64 + ((b_tile_2 * 2 + (b_line >> 3)) ^ (b_k & 7)) * 8) * 2u)));
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      #pragma unroll
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[((column_tile_1 & 1) == 0 ? row_tile_1 : 1 - row_tile_1) * 16 + column_tile_1 * 4], &a_words[((column_tile_1 & 1) == 0 ? row_tile_1 : 1 - row_tile_1) * 4 + 8], &b_words[column_tile_1 * 2 + 8], &C_local[((column_tile_1 & 1) == 0 ? row_tile_1 : 1 - row_tile_1) * 16 + column_tile_1 * 4]);
      }
    }
  }
  cp_async_wait_group_0();
  if (by < 2 && bx < 1) {
    const int i0 = (tid >> 6) * 32 + ((tid & 31) >> 2);
    const int i1 = ((tid & 63) >> 5) * 32 + (tid & 3) * 2;
    #pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      #pragma unroll
      for (int r_4 = 0; r_4 < 4; ++r_4) {
        #pragma unroll
        for (int r_5 = 0; r_5 < 2; ++r_5) {
          __align__(16) f16 C_v[2];
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            C_v[v_1] = cvt_rn_f16_f32(C_local[r_3 * 16 + r_4 * 4 + r_5 * 2 + v_1]);
          }
          *(unsigned*)(&C[(by * 64 + i0) * 72 + (bx * 64 + i1)] + (r_3 * 1152 + r_5 * 576 + r_4 * 8)) = *(const unsigned*)&C_v[0];
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
          if (by * 64 + (r_6 * 16 + r_8 * 8 + i0_1) < 131 && bx * 64 + (r_7 * 8 + i1_1) < 72) {
            __align__(16) f16 C_v_1[2];
            #pragma unroll
            for (int v_2 = 0; v_2 < 2; ++v_2) {
              C_v_1[v_2] = cvt_rn_f16_f32(C_local[r_6 * 16 + r_7 * 4 + r_8 * 2 + v_2]);
            }
            *(unsigned*)(&C[(by * 64 + i0_1) * 72 + (bx * 64 + i1_1)] + (r_6 * 1152 + r_8 * 576 + r_7 * 8)) = *(const unsigned*)&C_v_1[0];
          }
        }
      }
    }
  }
}
