#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v8 __attribute__((vector_size(8), may_alias));
typedef long i64 __attribute__((may_alias));
typedef float f32x4 __attribute__((vector_size(16), may_alias));
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))

extern "C" __global__ void __launch_bounds__(128) gemm_kernel(
    const unsigned char* __restrict__ A,
    const unsigned char* __restrict__ B,
    float* __restrict__ C
) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int by = (int)__builtin_amdgcn_workgroup_id_y();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  unsigned char* const A_shared_stages = (unsigned char*)smem;
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 2048);
  alignas(16) float C_local[8];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      C_local[r * 4 + v] = 0.0f;
    }
  }
  if (by < 1) {
    const int i0 = tid >> 2;
    const int i1 = (tid & 3) * 8;
    *(v8*)&A_shared_stages[i0 * 32 + ((i1 >> 4) ^ ((i0 & 7) >> 2)) * 16 + (i1 & 15)] = *(const v8*)&A[(by * 32 + i0) * 64 + i1];
  }
  else {
    const int i0_1 = tid >> 2;
    const int i1_1 = (tid & 3) * 8;
    if (by * 32 + i0_1 < 40) {
      *(v8*)&A_shared_stages[i0_1 * 32 + ((i1_1 >> 4) ^ ((i0_1 & 7) >> 2)) * 16 + (i1_1 & 15)] = *(const v8*)&A[(by * 32 + i0_1) * 64 + i1_1];
    }
    else {
      alignas(16) unsigned char A_shared_stages_v[8];
      #pragma unroll
      for (int r_1 = 0; r_1 < 8; ++r_1) {
        A_shared_stages_v[r_1] = 0;
      }
      *(v8*)&A_shared_stages[i0_1 * 32 + ((i1_1 >> 4) ^ ((i0_1 & 7) >> 2)) * 16 + (i1_1 & 15)] = *(const v8*)&A_shared_stages_v[0];
    }
  }
  const int i0_2 = tid >> 2;
  const int i1_2 = (tid & 3) * 8;
  if (bx * 32 + i0_2 < 24) {
    *(v8*)&B_shared_stages[i0_2 * 32 + ((i1_2 >> 4) ^ ((i0_2 & 7) >> 2)) * 16 + (i1_2 & 15)] = *(const v8*)&B[i0_2 * 64 + i1_2];
  }
  else {
    alignas(16) unsigned char B_shared_stages_v[8];
    #pragma unroll
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      B_shared_stages_v[r_2] = 0;
    }
    *(v8*)&B_shared_stages[i0_2 * 32 + ((i1_2 >> 4) ^ ((i0_2 & 7) >> 2)) * 16 + (i1_2 & 15)] = *(const v8*)&B_shared_stages_v[0];
  }
  for (int k = 0; k < 2; ++k) {
    block_barrier();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 2) {
      if (by < 1) {
        const int i0_3 = tid >> 2;
        const int i1_3 = (tid & 3) * 8;
        *(v8*)&A_shared_stages[slot_ahead * 1024 + i0_3 * 32 + ((i1_3 >> 4) ^ ((i0_3 & 7) >> 2)) * 16 + (i1_3 & 15)] = *(const v8*)&A[(by * 32 + i0_3) * 64 + i1_3 + k * 32 + 32];
      }
      else {
        const int i0_4 = tid >> 2;
        const int i1_4 = (tid & 3) * 8;
        if (by * 32 + i0_4 < 40) {
          *(v8*)&A_shared_stages[slot_ahead * 1024 + i0_4 * 32 + ((i1_4 >> 4) ^ ((i0_4 & 7) >> 2)) * 16 + (i1_4 & 15)] = *(const v8*)&A[(by * 32 + i0_4) * 64 + i1_4 + k * 32 + 32];
        }
        else {
          alignas(16) unsigned char A_shared_stages_v_1[8];
          #pragma unroll
          for (int r_3 = 0; r_3 < 8; ++r_3) {
            A_shared_stages_v_1[r_3] = 0;
          }
          *(v8*)&A_shared_stages[slot_ahead * 1024 + i0_4 * 32 + ((i1_4 >> 4) ^ ((i0_4 & 7) >> 2)) * 16 + (i1_4 & 15)] = *(const v8*)&A_shared_stages_v_1[0];
        }
      }
      const int i0_5 = tid >> 2;
      const int i1_5 = (tid & 3) * 8;
      if (bx * 32 + i0_5 < 24) {
        *(v8*)&B_shared_stages[slot_ahead * 1024 + i0_5 * 32 + ((i1_5 >> 4) ^ ((i0_5 & 7) >> 2)) * 16 + (i1_5 & 15)] = *(const v8*)&B[i0_5 * 64 + i1_5 + k * 32 + 32];
      }
      else {
        alignas(16) unsigned char B_shared_stages_v_1[8];
        #pragma unroll
        for (int r_4 = 0; r_4 < 8; ++r_4) {
          B_shared_stages_v_1[r_4] = 0;
        }
        *(v8*)&B_shared_stages[slot_ahead * 1024 + i0_5 * 32 + ((i1_5 >> 4) ^ ((i0_5 & 7) >> 2)) * 16 + (i1_5 & 15)] = *(const v8*)&B_shared_stages_v_1[0];
      }
    }
    const int lane = tid & 63;
    const int lane_group = lane >> 4;
    const int lane_line = lane & 15;
    const int wave_row = (tid >> 6) * 16;
    const int wave_column = 0;
    alignas(16) unsigned char a_values[8];
    alignas(16) unsigned char b_values[16];
    alignas(16) unsigned char A_shared_stages_v_2[8];
    *(v8*)&A_shared_stages_v_2[0] = *(const v8*)&A_shared_stages[slot * 1024 + wave_row * 32 + lane_line * 32 + ((lane_group >> 1) ^ (((wave_row + lane_line) & 7) >> 2)) * 16 + (lane_group & 1) * 8];
    #pragma unroll
    for (int a_e = 0; a_e < 8; ++a_e) {
      a_values[a_e] = A_shared_stages_v_2[a_e];
    }
    #pragma unroll
    for (int b_tile = 0; b_tile < 2; ++b_tile) {
      alignas(16) unsigned char B_shared_stages_v_2[8];
      *(v8*)&B_shared_stages_v_2[0] = *(const v8*)&B_shared_stages[slot * 1024 + b_tile * 512 + wave_column * 32 + lane_line * 32 + ((lane_group >> 1) ^ (((wave_column + lane_line) & 7) >> 2)) * 16 + (lane_group & 1) * 8];
      #pragma unroll
      for (int b_e = 0; b_e < 8; ++b_e) {
        b_values[b_tile * 8 + b_e] = B_shared_stages_v_2[b_e];
      }
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      *(f32x4*)&C_local[column_tile * 4] = __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(*(const i64*)&a_values[0], *(const i64*)&b_values[column_tile * 8], *(f32x4*)&C_local[column_tile * 4], 0, 0, 0);
    }
  }
  const int i0_6 = (tid >> 4) * 4;
  const int i1_6 = tid & 15;
  #pragma unroll
  for (int r_5 = 0; r_5 < 2; ++r_5) {
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      if (by * 32 + (i0_6 + v_1) < 40 && bx * 32 + (r_5 * 16 + i1_6) < 24) {
        C[(by * 32 + i0_6) * 24 + i1_6 + v_1 * 24 + r_5 * 16] = C_local[r_5 * 4 + v_1];
      }
    }
  }
}
