__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(int* d, const unsigned* a, const unsigned* b, const int* c) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
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
    const signed char* __restrict__ A,
    const signed char* __restrict__ B,
    int* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  signed char* const A_shared_stages = (signed char*)smem;
  signed char* const B_shared_stages = (signed char*)(smem + 2048);
  int C_local[8];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        C_local[r * 4 + r_1 * 2 + v] = 0;
      }
    }
  }
  if (by * 32 + 32 <= 48) {
    if (tid < 64) {
      cp_async_cg_shared_global_16(&A_shared_stages[(tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16], &A[(by * 32 + (tid >> 1)) * 96 + (tid & 1) * 16]);
    }
  }
  else if (tid < 64) {
    cp_async_cg_shared_global_16_zfill(&A_shared_stages[(tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16], &A[(by * 32 + (tid >> 1)) * 96 + (tid & 1) * 16], by * 32 + (tid >> 1) < 48 ? 16 : 0);
  }
  if (bx * 32 + 32 <= 40) {
    if (tid < 64) {
      cp_async_cg_shared_global_16(&B_shared_stages[(tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16], &B[(bx * 32 + (tid >> 1)) * 96 + (tid & 1) * 16]);
    }
  }
  else if (tid < 64) {
    cp_async_cg_shared_global_16_zfill(&B_shared_stages[(tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16], &B[(bx * 32 + (tid >> 1)) * 96 + (tid & 1) * 16], bx * 32 + (tid >> 1) < 40 ? 16 : 0);
  }
  cp_async_commit_group();
  for (int k = 0; k < 3; ++k) {
    cp_async_wait_group_0();
    __syncthreads();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      if (by * 32 + 32 <= 48) {
        if (tid < 64) {
          cp_async_cg_shared_global_16((signed char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16) * 1u)), &A[(by * 32 + (tid >> 1)) * 96 + (k * 32 + (tid & 1) * 16 + 32)]);
        }
      }
      else if (tid < 64) {
        cp_async_cg_shared_global_16_zfill((signed char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16) * 1u)), &A[(by * 32 + (tid >> 1)) * 96 + (k * 32 + (tid & 1) * 16 + 32)], by * 32 + (tid >> 1) < 48 ? 16 : 0);
      }
      if (bx * 32 + 32 <= 40) {
        if (tid < 64) {
          cp_async_cg_shared_global_16((signed char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 1)) * 96 + (k * 32 + (tid & 1) * 16 + 32)]);
        }
      }
      else if (tid < 64) {
        cp_async_cg_shared_global_16_zfill((signed char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 32 + ((tid & 1) ^ ((tid & 15) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 1)) * 96 + (k * 32 + (tid & 1) * 16 + 32)], bx * 32 + (tid >> 1) < 40 ? 16 : 0);
      }
    }
    cp_async_commit_group();
    const int lane = tid & 31;
    const int warp_row = ((tid >> 5) >> 1) * 16;
    const int warp_column = ((tid >> 5) & 1) * 16;
    unsigned a_words[4];
    unsigned b_words[4];
    const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
    const int a_k = ((lane >> 3) >> 1) * 16;
    const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
    const int b_k = ((lane >> 3) & 1) * 16;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 1024 + a_line * 32 + ((a_k >> 4) ^ ((a_line & 7) >> 2)) * 16]);
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[0], &B_shared_stages[slot * 1024 + b_line * 32 + ((b_k >> 4) ^ ((b_line & 7) >> 2)) * 16]);
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4]);
    }
  }
  cp_async_wait_group_0();
  if (by < 1 && bx < 1) {
    const int i0 = (tid >> 6) * 16 + ((tid & 31) >> 2);
    const int i1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        __align__(16) int C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = C_local[r_2 * 4 + r_3 * 2 + v_1];
        }
        *(uint2*)(&C[(by * 32 + i0) * 40 + (bx * 32 + i1)] + (r_3 * 320 + r_2 * 8)) = *(const uint2*)&C_v[0];
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
        if (by * 32 + (r_5 * 8 + i0_1) < 48 && bx * 32 + (r_4 * 8 + i1_1) < 40) {
          __align__(16) int C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = C_local[r_4 * 4 + r_5 * 2 + v_2];
          }
          *(uint2*)(&C[(by * 32 + i0_1) * 40 + (bx * 32 + i1_1)] + (r_5 * 320 + r_4 * 8)) = *(const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
