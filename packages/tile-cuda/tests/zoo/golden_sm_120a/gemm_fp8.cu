__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e5m2_f32(float* d, const unsigned* a, const unsigned* b, const float* c) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
__device__ __forceinline__ void cp_async_cg_shared_global_16(void* smem, const void* gmem) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_group_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }

extern "C" __global__ void __launch_bounds__(128) gemm(
    const unsigned char* __restrict__ A,
    const unsigned char* __restrict__ B,
    float* __restrict__ C
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  unsigned char* const A_shared_stages = (unsigned char*)smem;
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 8192);
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
  #pragma unroll
  for (int turn = 0; turn < 2; ++turn) {
    cp_async_cg_shared_global_16(&A_shared_stages[turn * 2048 + (tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16], &A[(tid >> 2) * 128 + (tid & 3) * 16] + turn * 4096);
  }
  cp_async_cg_shared_global_16(&B_shared_stages[(tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16], &B[(tid >> 2) * 128 + (tid & 3) * 16]);
  cp_async_commit_group();
  const int lane = tid & 31;
  const int warp_row = (tid >> 5) * 16;
  const int warp_column = 0;
  unsigned a_words[8];
  unsigned b_words[16];
  const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
  const int a_k = ((lane >> 3) >> 1) * 16;
  const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
  const int b_k = ((lane >> 3) & 1) * 16;
  cp_async_wait_group_0();
  __syncthreads();
  const int slot_next = 0 & 1;
  ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot_next * 4096 + a_line * 64 + ((a_k >> 4) ^ ((a_line & 7) >> 1)) * 16]);
  #pragma unroll
  for (int b_tile = 0; b_tile < 2; ++b_tile) {
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile * 4], &B_shared_stages[slot_next * 2048 + b_tile * 1024 + b_line * 64 + ((b_k >> 4) ^ ((b_line & 7) >> 1)) * 16]);
  }
  for (int k = 0; k < 2; ++k) {
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 2) {
      #pragma unroll
      for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
        cp_async_cg_shared_global_16((unsigned char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_1 * 2048 + (tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16) * 1u)), &A[(tid >> 2) * 128 + (k * 64 + (tid & 3) * 16 + 64)] + turn_1 * 4096);
      }
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], (unsigned char*)((char*)A_shared_stages + ((unsigned)(slot * 4096) + (unsigned)(a_line * 64 + (((a_k >> 4) + 2) ^ ((a_line & 7) >> 1)) * 16) * 1u)));
    if (k + 1 < 2) {
      cp_async_cg_shared_global_16((unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16) * 1u)), &B[(tid >> 2) * 128 + (k * 64 + (tid & 3) * 16 + 64)]);
    }
    cp_async_commit_group();
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_1 * 4 + 8], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 2048) + (unsigned)(b_tile_1 * 1024 + b_line * 64 + (((b_k >> 4) + 2) ^ ((b_line & 7) >> 1)) * 16) * 1u)));
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e5m2_f32(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4]);
    }
    cp_async_wait_group_0();
    __syncthreads();
    const int slot_next_1 = k + 1 < 2 ? (k + 1) & 1 : k & 1;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], (unsigned char*)((char*)A_shared_stages + ((unsigned)(slot_next_1 * 4096) + (unsigned)(a_line * 64 + ((a_k >> 4) ^ ((a_line & 7) >> 1)) * 16) * 1u)));
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_2 * 4], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 2048) + (unsigned)(b_tile_2 * 1024 + b_line * 64 + ((b_k >> 4) ^ ((b_line & 7) >> 1)) * 16) * 1u)));
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e5m2_f32(&C_local[column_tile_1 * 4], &a_words[4], &b_words[column_tile_1 * 2 + 8], &C_local[column_tile_1 * 4]);
    }
  }
  cp_async_wait_group_0();
  const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
  const int i1 = (tid & 3) * 2;
  #pragma unroll
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    #pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      __align__(16) float C_v[2];
      #pragma unroll
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_v[v_1] = C_local[r_2 * 4 + r_3 * 2 + v_1];
      }
      *(uint2*)(&C[i0 * 32 + i1] + (r_3 * 256 + r_2 * 8)) = *(const uint2*)&C_v[0];
    }
  }
}
