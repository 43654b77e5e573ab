__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32_ue4m3(float* d, const unsigned* a, const unsigned* b, const float* c, unsigned a_scale, unsigned short a_byte, unsigned short a_thread, unsigned b_scale, unsigned short b_byte, unsigned short b_thread) {
  asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13}, %14, { %15, %16 }, %17, { %18, %19 };"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(a_scale), "h"(a_byte), "h"(a_thread), "r"(b_scale), "h"(b_byte), "h"(b_thread));
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
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 8192);
  unsigned char* const rows_stages = (unsigned char*)(smem + 12288);
  unsigned char* const columns_stages = (unsigned char*)(smem + 13312);
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
    cp_async_cg_shared_global_16(&A_shared_stages[turn * 2048 + (tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16], &A[(tid >> 2) * 192 + (tid & 3) * 16] + turn * 6144);
  }
  if (bx * 32 + 32 <= 40) {
    cp_async_cg_shared_global_16(&B_shared_stages[(tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16], &B[(bx * 32 + (tid >> 2)) * 192 + (tid & 3) * 16]);
  }
  else {
    cp_async_cg_shared_global_16_zfill(&B_shared_stages[(tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16], &B[(bx * 32 + (tid >> 2)) * 192 + (tid & 3) * 16], bx * 32 + (tid >> 2) < 40 ? 16 : 0);
  }
  if (tid < 64) {
    cp_async_ca_shared_global_8(&rows_stages[tid * 8], &A_scale[tid * 24]);
  }
  if (bx * 32 + 32 <= 40) {
    if (tid < 32) {
      cp_async_ca_shared_global_8(&columns_stages[tid * 8], &B_scale[(bx * 32 + tid) * 24]);
    }
  }
  else if (tid < 32) {
    cp_async_ca_shared_global_8_zfill(&columns_stages[tid * 8], &B_scale[(bx * 32 + tid) * 24], bx * 32 + tid < 40 ? 8 : 0);
  }
  cp_async_commit_group();
  for (int k = 0; k < 3; ++k) {
    cp_async_wait_group_0();
    __syncthreads();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      #pragma unroll
      for (int turn_1 = 0; turn_1 < 2; ++turn_1) {
        cp_async_cg_shared_global_16((unsigned char*)((char*)A_shared_stages + ((unsigned)(slot_ahead * 4096) + (unsigned)(turn_1 * 2048 + (tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16) * 1u)), &A[(tid >> 2) * 192 + (k * 64 + (tid & 3) * 16 + 64)] + turn_1 * 6144);
      }
      if (bx * 32 + 32 <= 40) {
        cp_async_cg_shared_global_16((unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 2)) * 192 + (k * 64 + (tid & 3) * 16 + 64)]);
      }
      else {
        cp_async_cg_shared_global_16_zfill((unsigned char*)((char*)B_shared_stages + ((unsigned)(slot_ahead * 2048) + (unsigned)((tid >> 2) * 64 + ((tid & 3) ^ ((tid & 31) >> 3)) * 16) * 1u)), &B[(bx * 32 + (tid >> 2)) * 192 + (k * 64 + (tid & 3) * 16 + 64)], bx * 32 + (tid >> 2) < 40 ? 16 : 0);
      }
      if (tid < 64) {
        cp_async_ca_shared_global_8((unsigned char*)((char*)rows_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 8) * 1u)), &A_scale[tid * 24 + (k * 8 + 8)]);
      }
      if (bx * 32 + 32 <= 40) {
        if (tid < 32) {
          cp_async_ca_shared_global_8((unsigned char*)((char*)columns_stages + ((unsigned)(slot_ahead * 256) + (unsigned)(tid * 8) * 1u)), &B_scale[(bx * 32 + tid) * 24 + (k * 8 + 8)]);
        }
      }
      else if (tid < 32) {
        cp_async_ca_shared_global_8_zfill((unsigned char*)((char*)columns_stages + ((unsigned)(slot_ahead * 256) + (unsigned)(tid * 8) * 1u)), &B_scale[(bx * 32 + tid) * 24 + (k * 8 + 8)], bx * 32 + tid < 40 ? 8 : 0);
      }
    }
    cp_async_commit_group();
    const int lane = tid & 31;
    const int lane_g = lane >> 2;
    const int lane_t = lane & 3;
    const int warp_row = (tid >> 5) * 16;
    const int warp_column = 0;
    unsigned a_scales[2];
    unsigned b_scales[8];
    *(unsigned*)&a_scales[0] = *(const unsigned*)&rows_stages[slot * 512 + (lane_t & 1) * 64 + warp_row * 8 + lane_g * 8];
    a_scales[0] = a_scales[0] & 2139062143u;
    *(unsigned*)&a_scales[1] = *(const unsigned*)&rows_stages[slot * 512 + (lane_t & 1) * 64 + warp_row * 8 + lane_g * 8 + 4];
    a_scales[1] = a_scales[1] & 2139062143u;
    #pragma unroll
    for (int scale_tile = 0; scale_tile < 4; ++scale_tile) {
      *(unsigned*)&b_scales[scale_tile * 2] = *(const unsigned*)(unsigned char*)((char*)columns_stages + ((unsigned)(slot * 256 + warp_column * 8 + lane_g * 8) + (unsigned)(scale_tile * 64) * 1u));
      b_scales[scale_tile * 2] = b_scales[scale_tile * 2] & 2139062143u;
      *(unsigned*)&b_scales[scale_tile * 2 + 1] = *(const unsigned*)(unsigned char*)((char*)columns_stages + ((unsigned)(slot * 256 + warp_column * 8 + lane_g * 8) + (unsigned)(scale_tile * 64 + 4) * 1u));
      b_scales[scale_tile * 2 + 1] = b_scales[scale_tile * 2 + 1] & 2139062143u;
    }
    unsigned a_words[8];
    unsigned b_words[16];
    const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
    const int a_k = ((lane >> 3) >> 1) * 32;
    const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
    const int b_k = ((lane >> 3) & 1) * 32;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot * 4096 + a_line * 64 + ((a_k >> 5) ^ ((a_line & 7) >> 1)) * 16]);
    #pragma unroll
    for (int b_tile = 0; b_tile < 2; ++b_tile) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile * 4], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 2048 + b_line * 64 + ((b_k >> 5) ^ ((b_line & 7) >> 1)) * 16) + (unsigned)(b_tile * 1024) * 1u)));
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &A_shared_stages[slot * 4096 + a_line * 64 + (((a_k >> 5) + 2) ^ ((a_line & 7) >> 1)) * 16]);
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_1 * 4 + 8], (unsigned char*)((char*)B_shared_stages + ((unsigned)(slot * 2048 + b_line * 64 + (((b_k >> 5) + 2) ^ ((b_line & 7) >> 1)) * 16) + (unsigned)(b_tile_1 * 1024) * 1u)));
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 4; ++column_tile) {
      mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32_ue4m3(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4], a_scales[0], 0, 0, b_scales[column_tile * 2], 0, 0);
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 4; ++column_tile_1) {
      mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32_ue4m3(&C_local[column_tile_1 * 4], &a_words[4], &b_words[column_tile_1 * 2 + 8], &C_local[column_tile_1 * 4], a_scales[1], 0, 0, b_scales[column_tile_1 * 2 + 1], 0, 0);
    }
  }
  cp_async_wait_group_0();
  if (bx < 1) {
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
        *(uint2*)(&C[i0 * 40 + (bx * 32 + i1)] + (r_3 * 320 + r_2 * 8)) = *(const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int i1_1 = (tid & 3) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 4; ++r_4) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        if (bx * 32 + (r_4 * 8 + i1_1) < 40) {
          __align__(16) float C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = C_local[r_4 * 4 + r_5 * 2 + v_2];
          }
          *(uint2*)(&C[i0_1 * 40 + (bx * 32 + i1_1)] + (r_5 * 320 + r_4 * 8)) = *(const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
