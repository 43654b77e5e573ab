#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v8 __attribute__((vector_size(8), may_alias));
typedef unsigned v16 __attribute__((vector_size(16), may_alias));
typedef _Float16 f16x4 __attribute__((vector_size(8), may_alias));
typedef float f32x16 __attribute__((vector_size(64), aligned(16), may_alias));
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
static __device__ inline unsigned short f16_of_f32(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }

extern "C" __global__ void __launch_bounds__(128) gemm_kernel(
    const unsigned short* __restrict__ A,
    const unsigned short* __restrict__ B,
    unsigned short* __restrict__ C
) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int by = (int)__builtin_amdgcn_workgroup_id_y();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  unsigned short* const A_shared_stages = (unsigned short*)smem;
  unsigned short* const B_shared_stages = (unsigned short*)(smem + 8192);
  alignas(16) float C_local[32];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        C_local[r * 16 + r_1 * 4 + v] = 0.0f;
      }
    }
  }
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 8;
  #pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    *(v16*)&A_shared_stages[r_2 * 1024 + i0 * 32 + ((i1 >> 3) ^ ((i0 & 7) >> 1)) * 8] = *(const v16*)&A[i0 * 96 + i1 + r_2 * 3072];
  }
  const int i0_1 = tid >> 3;
  const int i1_1 = (tid & 7) * 8;
  #pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    *(v16*)&B_shared_stages[r_3 * 1024 + i0_1 * 64 + ((i1_1 >> 3) ^ (i0_1 & 7)) * 8] = *(const v16*)&B[i0_1 * 64 + i1_1 + r_3 * 1024];
  }
  for (int k = 0; k < 3; ++k) {
    block_barrier();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      const int i0_2 = tid >> 2;
      const int i1_2 = (tid & 3) * 8;
      #pragma unroll
      for (int r_4 = 0; r_4 < 2; ++r_4) {
        *(v16*)&A_shared_stages[slot_ahead * 2048 + r_4 * 1024 + i0_2 * 32 + ((i1_2 >> 3) ^ ((i0_2 & 7) >> 1)) * 8] = *(const v16*)&A[i0_2 * 96 + i1_2 + k * 32 + r_4 * 3072 + 32];
      }
      const int i0_3 = tid >> 3;
      const int i1_3 = (tid & 7) * 8;
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        *(v16*)&B_shared_stages[slot_ahead * 2048 + r_5 * 1024 + i0_3 * 64 + ((i1_3 >> 3) ^ (i0_3 & 7)) * 8] = *(const v16*)&B[i0_3 * 64 + i1_3 + k * 2048 + r_5 * 1024 + 2048];
      }
    }
    const int lane = tid & 63;
    const int lane_group = lane >> 5;
    const int lane_line = lane & 31;
    const int wave_row = (tid >> 6) * 32;
    const int wave_column = 0;
    alignas(16) unsigned short a_values[4];
    alignas(16) unsigned short b_values[8];
    alignas(16) unsigned short A_shared_stages_v[4];
    *(v8*)&A_shared_stages_v[0] = *(const v8*)&A_shared_stages[slot * 2048 + wave_row * 32 + lane_line * 32 + (((wave_row + lane_line) & 7) >> 1) * 8 + lane_group * 4];
    #pragma unroll
    for (int a_e = 0; a_e < 4; ++a_e) {
      a_values[a_e] = A_shared_stages_v[a_e];
    }
    #pragma unroll
    for (int b_tile = 0; b_tile < 2; ++b_tile) {
      #pragma unroll
      for (int b_e = 0; b_e < 4; ++b_e) {
        b_values[b_tile * 4 + b_e] = B_shared_stages[slot * 2048 + lane_group * 256 + b_e * 64 + ((b_tile * 4 + ((wave_column + lane_line) >> 3)) ^ (lane_group * 4 + b_e)) * 8 + ((wave_column + lane_line) & 7)];
      }
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      *(f32x16*)&C_local[column_tile * 16] = __builtin_amdgcn_mfma_f32_32x32x8f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile * 4], *(f32x16*)&C_local[column_tile * 16], 0, 0, 0);
    }
    alignas(16) unsigned short A_shared_stages_v_1[4];
    *(v8*)&A_shared_stages_v_1[0] = *(const v8*)&A_shared_stages[slot * 2048 + wave_row * 32 + lane_line * 32 + (1 ^ (((wave_row + lane_line) & 7) >> 1)) * 8 + lane_group * 4];
    #pragma unroll
    for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
      a_values[a_e_1] = A_shared_stages_v_1[a_e_1];
    }
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      #pragma unroll
      for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
        b_values[b_tile_1 * 4 + b_e_1] = B_shared_stages[slot * 2048 + lane_group * 256 + b_e_1 * 64 + ((b_tile_1 * 4 + ((wave_column + lane_line) >> 3)) ^ (lane_group * 4 + b_e_1)) * 8 + ((wave_column + lane_line) & 7) + 512];
      }
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      *(f32x16*)&C_local[column_tile_1 * 16] = __builtin_amdgcn_mfma_f32_32x32x8f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_1 * 4], *(f32x16*)&C_local[column_tile_1 * 16], 0, 0, 0);
    }
    alignas(16) unsigned short A_shared_stages_v_2[4];
    *(v8*)&A_shared_stages_v_2[0] = *(const v8*)&A_shared_stages[slot * 2048 + wave_row * 32 + lane_line * 32 + (2 ^ (((wave_row + lane_line) & 7) >> 1)) * 8 + lane_group * 4];
    #pragma unroll
    for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
      a_values[a_e_2] = A_shared_stages_v_2[a_e_2];
    }
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      #pragma unroll
      for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
        b_values[b_tile_2 * 4 + b_e_2] = B_shared_stages[slot * 2048 + lane_group * 256 + b_e_2 * 64 + ((b_tile_2 * 4 + ((wave_column + lane_line) >> 3)) ^ (lane_group * 4 + b_e_2)) * 8 + ((wave_column + lane_line) & 7) + 1024];
      }
    }
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
      *(f32x16*)&C_local[column_tile_2 * 16] = __builtin_amdgcn_mfma_f32_32x32x8f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_2 * 4], *(f32x16*)&C_local[column_tile_2 * 16], 0, 0, 0);
    }
    alignas(16) unsigned short A_shared_stages_v_3[4];
    *(v8*)&A_shared_stages_v_3[0] = *(const v8*)&A_shared_stages[slot * 2048 + wave_row * 32 + lane_line * 32 + (3 ^ (((wave_row + lane_line) & 7) >> 1)) * 8 + lane_group * 4];
    #pragma unroll
    for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
      a_values[a_e_3] = A_shared_stages_v_3[a_e_3];
    }
    #pragma unroll
    for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
      #pragma unroll
      for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
        b_values[b_tile_3 * 4 + b_e_3] = B_shared_stages[slot * 2048 + lane_group * 256 + b_e_3 * 64 + ((b_tile_3 * 4 + ((wave_column + lane_line) >> 3)) ^ (lane_group * 4 + b_e_3)) * 8 + ((wave_column + lane_line) & 7) + 1536];
      }
    }
    #pragma unroll
    for (int column_tile_3 = 0; column_tile_3 < 2; ++column_tile_3) {
      *(f32x16*)&C_local[column_tile_3 * 16] = __builtin_amdgcn_mfma_f32_32x32x8f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_3 * 4], *(f32x16*)&C_local[column_tile_3 * 16], 0, 0, 0);
    }
  }
  const int i0_4 = (tid >> 6) * 32 + ((tid & 63) >> 5) * 4;
  const int i1_4 = tid & 31;
  #pragma unroll
  for (int r_6 = 0; r_6 < 2; ++r_6) {
    #pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      #pragma unroll
      for (int v_1 = 0; v_1 < 4; ++v_1) {
        C[i0_4 * 64 + i1_4 + (r_7 * 8 + v_1) * 64 + r_6 * 32] = f16_of_f32(C_local[r_6 * 16 + r_7 * 4 + v_1]);
      }
    }
  }
}
