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

extern "C" __global__ void __launch_bounds__(128) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    int m,
    int k,
    int n
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 4096);
  float C_local[8];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        C_local[r * 4 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  const int k_trips = (k + 32 - 1) >> 5;
  if (0 < k_trips) {
    if (by * 32 + 32 <= m && 32 <= k) {
      cp_async_cg_shared_global_16(&A_shared_stages[(tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 32 + (tid >> 2)) * k + (tid & 3) * 8]);
    }
    else {
      cp_async_cg_shared_global_16_zfill(&A_shared_stages[(tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &A[(by * 32 + (tid >> 2)) * k + (tid & 3) * 8], by * 32 + (tid >> 2) < m && (tid & 3) * 8 < k ? 16 : 0);
    }
    if (32 <= k && bx * 32 + 32 <= n) {
      cp_async_cg_shared_global_16(&B_shared_stages[(tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &B[(tid >> 2) * n + (bx * 32 + (tid & 3) * 8)]);
    }
    else {
      cp_async_cg_shared_global_16_zfill(&B_shared_stages[(tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8], &B[(tid >> 2) * n + (bx * 32 + (tid & 3) * 8)], (tid >> 2) < k && bx * 32 + (tid & 3) * 8 < n ? 16 : 0);
    }
  }
  cp_async_commit_group();
  const int lane = tid & 31;
  const int warp_row = ((tid >> 5) >> 1) * 16;
  const int warp_column = ((tid >> 5) & 1) * 16;
  unsigned a_words[8];
  unsigned b_words[8];
  const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
  const int a_k = ((lane >> 3) >> 1) * 8;
  const int b_line = warp_column + ((lane >> 3) >> 1) * 8;
  const int b_k = ((lane >> 3) & 1) * 8 + (lane & 7);
  if (((k + 32 - 1) >> 5) > 0) {
    cp_async_wait_group_0();
    __syncthreads();
    const int slot_next = 0 & 1;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot_next * 1024 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[0], &B_shared_stages[slot_next * 1024 + b_k * 32 + ((b_line >> 3) ^ ((b_k & 7) >> 1)) * 8]);
  }
  for (int k_1 = 0; k_1 < ((k + 31) >> 5); ++k_1) {
    const int slot = k_1 & 1;
    const int slot_ahead = (k_1 + 1) & 1;
    if (k_1 + 1 < k_trips) {
      if (by * 32 + 32 <= m && k_1 * 32 + 32 + 32 <= k) {
        cp_async_cg_shared_global_16((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 32 + (tid >> 2)) * k + (k_1 * 32 + (tid & 3) * 8 + 32)]);
      }
      else {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &A[(by * 32 + (tid >> 2)) * k + (k_1 * 32 + (tid & 3) * 8 + 32)], by * 32 + (tid >> 2) < m && k_1 * 32 + (tid & 3) * 8 + 32 < k ? 16 : 0);
      }
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 2048) + (unsigned)(a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    if (k_1 + 1 < k_trips) {
      if (k_1 * 32 + 32 + 32 <= k && bx * 32 + 32 <= n) {
        cp_async_cg_shared_global_16((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &B[(k_1 * 32 + (tid >> 2) + 32) * n + (bx * 32 + (tid & 3) * 8)]);
      }
      else {
        cp_async_cg_shared_global_16_zfill((f16*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 32 + ((tid & 3) ^ ((tid & 31) >> 3)) * 8) * 2u)), &B[(k_1 * 32 + (tid >> 2) + 32) * n + (bx * 32 + (tid & 3) * 8)], k_1 * 32 + (tid >> 2) + 32 < k && bx * 32 + (tid & 3) * 8 < n ? 16 : 0);
      }
    }
    cp_async_commit_group();
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[4], (f16*)((char*)B_shared_stages + ((unsigned)(slot * 2048) + (unsigned)(b_k * 32 + ((b_line >> 3) ^ ((b_k & 7) >> 1)) * 8 + 512) * 2u)));
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4]);
    }
    cp_async_wait_group_0();
    __syncthreads();
    const int slot_next_1 = k_1 + 1 < ((k + 32 - 1) >> 5) ? (k_1 + 1) & 1 : k_1 & 1;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], (f16*)((char*)A_shared_stages + ((unsigned)(slot_next_1 * 2048) + (unsigned)(a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words[0], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 2048) + (unsigned)(b_k * 32 + ((b_line >> 3) ^ ((b_k & 7) >> 1)) * 8) * 2u)));
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[column_tile_1 * 4], &a_words[4], &b_words[column_tile_1 * 2 + 4], &C_local[column_tile_1 * 4]);
    }
  }
  cp_async_wait_group_0();
  if (by * 32 + 31 < m && bx * 32 + 31 < n) {
    const int i0 = (tid >> 6) * 16 + ((tid & 31) >> 2);
    const int i1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        __align__(16) f16 C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = cvt_rn_f16_f32(C_local[r_2 * 4 + r_3 * 2 + v_1]);
        }
        *(unsigned*)(&C[(by * 32 + r_3 * 8 + i0) * n + (bx * 32 + i1)] + r_2 * 8) = *(const unsigned*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 6) * 16 + ((tid & 31) >> 2);
    const int i1_1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        if (by * 32 + (r_5 * 8 + i0_1) < m && bx * 32 + (r_4 * 8 + i1_1) < n) {
          __align__(16) f16 C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = cvt_rn_f16_f32(C_local[r_4 * 4 + r_5 * 2 + v_2]);
          }
          *(unsigned*)(&C[(by * 32 + r_5 * 8 + i0_1) * n + (bx * 32 + i1_1)] + r_4 * 8) = *(const unsigned*)&C_v_1[0];
        }
      }
    }
  }
}
