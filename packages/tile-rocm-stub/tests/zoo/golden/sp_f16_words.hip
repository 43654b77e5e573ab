#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v4 __attribute__((may_alias));
typedef unsigned v8 __attribute__((vector_size(8), may_alias));
typedef unsigned v16 __attribute__((vector_size(16), may_alias));
typedef _Float16 f16x4 __attribute__((vector_size(8), may_alias));
typedef _Float16 f16x8 __attribute__((vector_size(16), may_alias));
typedef float f32x4 __attribute__((vector_size(16), may_alias));
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))

extern "C" __global__ void __launch_bounds__(128) main_kernel(
    const unsigned short* __restrict__ A_sparse,
    const short* __restrict__ E,
    const unsigned short* __restrict__ B,
    float* __restrict__ C
) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int by = (int)__builtin_amdgcn_workgroup_id_y();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  unsigned short* const A_shared_stages = (unsigned short*)smem;
  short* const E_shared_stages = (short*)(smem + 12288);
  unsigned short* const B_shared_stages = (unsigned short*)(smem + 13824);
  alignas(16) float C_local[8];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      C_local[r * 4 + v] = 0.0f;
    }
  }
  if (by < 1) {
    const int i0 = tid >> 4;
    const int i1 = (tid & 15) * 8;
    #pragma unroll
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      if (i1 < 96) {
        *(v16*)&A_shared_stages[r_1 * 768 + i0 * 96 + (i1 >> 5) * 32 + (((i1 & 31) >> 3) ^ (((i0 * 96 + i1) & 255) >> 6)) * 8] = *(const v16*)&A_sparse[(by * 32 + i0) * 192 + i1 + r_1 * 1536];
      }
    }
  }
  else {
    const int i0_1 = tid >> 4;
    const int i1_1 = (tid & 15) * 8;
    #pragma unroll
    for (int r_2 = 0; r_2 < 4; ++r_2) {
      if (i1_1 < 96) {
        if (by * 32 + (r_2 * 8 + i0_1) < 40) {
          *(v16*)&A_shared_stages[r_2 * 768 + i0_1 * 96 + (i1_1 >> 5) * 32 + (((i1_1 & 31) >> 3) ^ (((i0_1 * 96 + i1_1) & 255) >> 6)) * 8] = *(const v16*)&A_sparse[(by * 32 + i0_1) * 192 + i1_1 + r_2 * 1536];
        }
        else {
          alignas(16) unsigned short A_shared_stages_v[8];
          #pragma unroll
          for (int v_1 = 0; v_1 < 8; ++v_1) {
            A_shared_stages_v[v_1] = 0;
          }
          *(v16*)&A_shared_stages[r_2 * 768 + i0_1 * 96 + (i1_1 >> 5) * 32 + (((i1_1 & 31) >> 3) ^ (((i0_1 * 96 + i1_1) & 255) >> 6)) * 8] = *(const v16*)&A_shared_stages_v[0];
        }
      }
    }
  }
  if (by < 1) {
    const int i0_2 = tid >> 3;
    const int i1_2 = (tid & 7) * 2;
    #pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      if (i1_2 < 12) {
        *(v4*)&E_shared_stages[r_3 * 192 + i0_2 * 12 + i1_2] = *(const v4*)&E[(by * 32 + i0_2) * 24 + i1_2 + r_3 * 384];
      }
    }
  }
  else {
    const int i0_3 = tid >> 3;
    const int i1_3 = (tid & 7) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      if (i1_3 < 12) {
        if (by * 32 + (r_4 * 16 + i0_3) < 40) {
          *(v4*)&E_shared_stages[r_4 * 192 + i0_3 * 12 + i1_3] = *(const v4*)&E[(by * 32 + i0_3) * 24 + i1_3 + r_4 * 384];
        }
        else {
          alignas(16) short E_shared_stages_v[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            E_shared_stages_v[v_2] = 0;
          }
          *(v4*)&E_shared_stages[r_4 * 192 + i0_3 * 12 + i1_3] = *(const v4*)&E_shared_stages_v[0];
        }
      }
    }
  }
  if (bx < 1) {
    const int i0_4 = tid >> 4;
    const int i1_4 = (tid & 15) * 2;
    for (int r_5 = 0; r_5 < 24; ++r_5) {
      alignas(16) unsigned short B_shared_stages_v[2];
      #pragma unroll
      for (int v_3 = 0; v_3 < 2; ++v_3) {
        B_shared_stages_v[v_3] = B[i0_4 * 33 + bx * 32 + i1_4 + r_5 * 264 + v_3];
      }
      *(v4*)&B_shared_stages[r_5 * 256 + i0_4 * 32 + ((i1_4 >> 3) ^ (i0_4 >> 1)) * 8 + (i1_4 & 7)] = *(const v4*)&B_shared_stages_v[0];
    }
  }
  else {
    const int i0_5 = tid >> 4;
    const int i1_5 = (tid & 15) * 2;
    for (int r_6 = 0; r_6 < 24; ++r_6) {
      alignas(16) unsigned short B_shared_stages_v_1[2];
      #pragma unroll
      for (int v_4 = 0; v_4 < 2; ++v_4) {
        B_shared_stages_v_1[v_4] = bx * 32 + (i1_5 + v_4) < 33 ? B[i0_5 * 33 + bx * 32 + i1_5 + r_6 * 264 + v_4] : (unsigned short)0;
      }
      *(v4*)&B_shared_stages[r_6 * 256 + i0_5 * 32 + ((i1_5 >> 3) ^ (i0_5 >> 1)) * 8 + (i1_5 & 7)] = *(const v4*)&B_shared_stages_v_1[0];
    }
  }
  for (int k = 0; k < 2; ++k) {
    block_barrier();
    const int slot = k & 1;
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 2) {
      if (by < 1) {
        const int i0_6 = tid >> 4;
        const int i1_6 = (tid & 15) * 8;
        #pragma unroll
        for (int r_7 = 0; r_7 < 4; ++r_7) {
          if (i1_6 < 96) {
            *(v16*)&A_shared_stages[slot_ahead * 3072 + r_7 * 768 + i0_6 * 96 + (i1_6 >> 5) * 32 + (((i1_6 & 31) >> 3) ^ (((i0_6 * 96 + i1_6) & 255) >> 6)) * 8] = *(const v16*)&A_sparse[(by * 32 + i0_6) * 192 + i1_6 + k * 96 + r_7 * 1536 + 96];
          }
        }
      }
      else {
        const int i0_7 = tid >> 4;
        const int i1_7 = (tid & 15) * 8;
        #pragma unroll
        for (int r_8 = 0; r_8 < 4; ++r_8) {
          if (i1_7 < 96) {
            if (by * 32 + (r_8 * 8 + i0_7) < 40) {
              *(v16*)&A_shared_stages[slot_ahead * 3072 + r_8 * 768 + i0_7 * 96 + (i1_7 >> 5) * 32 + (((i1_7 & 31) >> 3) ^ (((i0_7 * 96 + i1_7) & 255) >> 6)) * 8] = *(const v16*)&A_sparse[(by * 32 + i0_7) * 192 + i1_7 + k * 96 + r_8 * 1536 + 96];
            }
            else {
              alignas(16) unsigned short A_shared_stages_v_1[8];
              #pragma unroll
              for (int v_5 = 0; v_5 < 8; ++v_5) {
                A_shared_stages_v_1[v_5] = 0;
              }
              *(v16*)&A_shared_stages[slot_ahead * 3072 + r_8 * 768 + i0_7 * 96 + (i1_7 >> 5) * 32 + (((i1_7 & 31) >> 3) ^ (((i0_7 * 96 + i1_7) & 255) >> 6)) * 8] = *(const v16*)&A_shared_stages_v_1[0];
            }
          }
        }
      }
      if (by < 1) {
        const int i0_8 = tid >> 3;
        const int i1_8 = (tid & 7) * 2;
        #pragma unroll
        for (int r_9 = 0; r_9 < 2; ++r_9) {
          if (i1_8 < 12) {
            *(v4*)&E_shared_stages[slot_ahead * 384 + r_9 * 192 + i0_8 * 12 + i1_8] = *(const v4*)&E[(by * 32 + i0_8) * 24 + i1_8 + k * 12 + r_9 * 384 + 12];
          }
        }
      }
      else {
        const int i0_9 = tid >> 3;
        const int i1_9 = (tid & 7) * 2;
        #pragma unroll
        for (int r_10 = 0; r_10 < 2; ++r_10) {
          if (i1_9 < 12) {
            if (by * 32 + (r_10 * 16 + i0_9) < 40) {
              *(v4*)&E_shared_stages[slot_ahead * 384 + r_10 * 192 + i0_9 * 12 + i1_9] = *(const v4*)&E[(by * 32 + i0_9) * 24 + i1_9 + k * 12 + r_10 * 384 + 12];
            }
            else {
              alignas(16) short E_shared_stages_v_1[2];
              #pragma unroll
              for (int v_6 = 0; v_6 < 2; ++v_6) {
                E_shared_stages_v_1[v_6] = 0;
              }
              *(v4*)&E_shared_stages[slot_ahead * 384 + r_10 * 192 + i0_9 * 12 + i1_9] = *(const v4*)&E_shared_stages_v_1[0];
            }
          }
        }
      }
      if (bx < 1) {
        const int i0_10 = tid >> 4;
        const int i1_10 = (tid & 15) * 2;
        for (int r_11 = 0; r_11 < 24; ++r_11) {
          alignas(16) unsigned short B_shared_stages_v_2[2];
          #pragma unroll
          for (int v_7 = 0; v_7 < 2; ++v_7) {
            B_shared_stages_v_2[v_7] = B[i0_10 * 33 + bx * 32 + i1_10 + k * 6336 + r_11 * 264 + v_7 + 6336];
          }
          *(v4*)&B_shared_stages[slot_ahead * 6144 + r_11 * 256 + i0_10 * 32 + ((i1_10 >> 3) ^ (i0_10 >> 1)) * 8 + (i1_10 & 7)] = *(const v4*)&B_shared_stages_v_2[0];
        }
      }
      else {
        const int i0_11 = tid >> 4;
        const int i1_11 = (tid & 15) * 2;
        for (int r_12 = 0; r_12 < 24; ++r_12) {
          alignas(16) unsigned short B_shared_stages_v_3[2];
          #pragma unroll
          for (int v_8 = 0; v_8 < 2; ++v_8) {
            B_shared_stages_v_3[v_8] = bx * 32 + (i1_11 + v_8) < 33 ? B[i0_11 * 33 + bx * 32 + i1_11 + k * 6336 + r_12 * 264 + v_8 + 6336] : (unsigned short)0;
          }
          *(v4*)&B_shared_stages[slot_ahead * 6144 + r_12 * 256 + i0_11 * 32 + ((i1_11 >> 3) ^ (i0_11 >> 1)) * 8 + (i1_11 & 7)] = *(const v4*)&B_shared_stages_v_3[0];
        }
      }
    }
    const int lane = tid & 63;
    const int lane_group = lane >> 4;
    const int lane_line = lane & 15;
    const int wave_row = (tid >> 6) * 16;
    const int wave_column = 0;
    alignas(16) unsigned short a_values[4];
    alignas(16) unsigned short b_values[16];
    unsigned int index;
    index = (unsigned int)(unsigned short)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + lane_group * 2] | ((unsigned int)(unsigned short)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + lane_group * 2 + 1] << 16u);
    index = index | (((index >> 1u) & 1145324612u) ^ 1145324612u);
    alignas(16) unsigned short A_shared_stages_v_2[4];
    *(v8*)&A_shared_stages_v_2[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + (lane_group >> 1) * 32 + (((lane_group & 1) * 2) ^ (((wave_row * 96 + lane_line * 96 + lane_group * 16) & 255) >> 6)) * 8];
    #pragma unroll
    for (int a_e = 0; a_e < 4; ++a_e) {
      a_values[a_e] = A_shared_stages_v_2[a_e];
    }
    #pragma unroll
    for (int b_tile = 0; b_tile < 2; ++b_tile) {
      #pragma unroll
      for (int b_e = 0; b_e < 8; ++b_e) {
        b_values[b_tile * 8 + b_e] = B_shared_stages[slot * 6144 + lane_group * 1024 + b_e * 32 + ((b_tile * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e * 32 + b_tile * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7)];
      }
    }
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      *(f32x4*)&C_local[column_tile * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile * 8], *(f32x4*)&C_local[column_tile * 4], (int)index, 0, 0);
    }
    alignas(16) unsigned short A_shared_stages_v_3[4];
    *(v8*)&A_shared_stages_v_3[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + (lane_group >> 1) * 32 + (((lane_group & 1) * 2) ^ (((wave_row * 96 + lane_line * 96 + lane_group * 16 + 4) & 255) >> 6)) * 8 + 4];
    #pragma unroll
    for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
      a_values[a_e_1] = A_shared_stages_v_3[a_e_1];
    }
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
      #pragma unroll
      for (int b_e_1 = 0; b_e_1 < 8; ++b_e_1) {
        b_values[b_tile_1 * 8 + b_e_1] = B_shared_stages[slot * 6144 + lane_group * 1024 + b_e_1 * 32 + ((b_tile_1 * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e_1 * 32 + b_tile_1 * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7) + 256];
      }
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      *(f32x4*)&C_local[column_tile_1 * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile_1 * 8], *(f32x4*)&C_local[column_tile_1 * 4], (int)index, 0, 1);
    }
    alignas(16) unsigned short A_shared_stages_v_4[4];
    *(v8*)&A_shared_stages_v_4[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + (lane_group >> 1) * 32 + (((lane_group & 1) * 2 + 1) ^ (((wave_row * 96 + lane_line * 96 + lane_group * 16 + 8) & 255) >> 6)) * 8];
    #pragma unroll
    for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
      a_values[a_e_2] = A_shared_stages_v_4[a_e_2];
    }
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      #pragma unroll
      for (int b_e_2 = 0; b_e_2 < 8; ++b_e_2) {
        b_values[b_tile_2 * 8 + b_e_2] = B_shared_stages[slot * 6144 + lane_group * 1024 + b_e_2 * 32 + ((b_tile_2 * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e_2 * 32 + b_tile_2 * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7) + 512];
      }
    }
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
      *(f32x4*)&C_local[column_tile_2 * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile_2 * 8], *(f32x4*)&C_local[column_tile_2 * 4], (int)index, 0, 2);
    }
    alignas(16) unsigned short A_shared_stages_v_5[4];
    *(v8*)&A_shared_stages_v_5[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + (lane_group >> 1) * 32 + (((lane_group & 1) * 2 + 1) ^ (((wave_row * 96 + lane_line * 96 + lane_group * 16 + 12) & 255) >> 6)) * 8 + 4];
    #pragma unroll
    for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
      a_values[a_e_3] = A_shared_stages_v_5[a_e_3];
    }
    #pragma unroll
    for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
      #pragma unroll
      for (int b_e_3 = 0; b_e_3 < 8; ++b_e_3) {
        b_values[b_tile_3 * 8 + b_e_3] = B_shared_stages[slot * 6144 + lane_group * 1024 + b_e_3 * 32 + ((b_tile_3 * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e_3 * 32 + b_tile_3 * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7) + 768];
      }
    }
    #pragma unroll
    for (int column_tile_3 = 0; column_tile_3 < 2; ++column_tile_3) {
      *(f32x4*)&C_local[column_tile_3 * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile_3 * 8], *(f32x4*)&C_local[column_tile_3 * 4], (int)index, 0, 3);
    }
    index = (unsigned int)(((int)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + (lane_group >> 1) + 8] >> (((lane_group * 2 + 32) & 3) * 4)) & 15) | ((unsigned int)(((int)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + (lane_group >> 1) + 8] >> (((lane_group * 2 + 33) & 3) * 4)) & 15) << 4u);
    index = index | (((index >> 1u) & 1145324612u) ^ 1145324612u);
    alignas(16) unsigned short A_shared_stages_v_6[4];
    *(v8*)&A_shared_stages_v_6[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + ((lane_group >> 1) ^ ((((wave_row * 96 + lane_line * 96 + lane_group * 4) >> 6) + 1) & 3)) * 8 + (lane_group & 1) * 4 + 64];
    #pragma unroll
    for (int a_e_4 = 0; a_e_4 < 4; ++a_e_4) {
      a_values[a_e_4] = A_shared_stages_v_6[a_e_4];
    }
    #pragma unroll
    for (int b_tile_4 = 0; b_tile_4 < 2; ++b_tile_4) {
      #pragma unroll
      for (int b_e_4 = 0; b_e_4 < 8; ++b_e_4) {
        b_values[b_tile_4 * 8 + b_e_4] = B_shared_stages[slot * 6144 + lane_group * 256 + b_e_4 * 32 + ((b_tile_4 * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e_4 * 32 + b_tile_4 * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7) + 4096];
      }
    }
    #pragma unroll
    for (int column_tile_4 = 0; column_tile_4 < 2; ++column_tile_4) {
      *(f32x4*)&C_local[column_tile_4 * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile_4 * 8], *(f32x4*)&C_local[column_tile_4 * 4], (int)index, 0, 0);
    }
    index = (unsigned int)(((int)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + (lane_group >> 1) + 10] >> (((lane_group * 2 + 40) & 3) * 4)) & 15) | ((unsigned int)(((int)E_shared_stages[slot * 384 + wave_row * 12 + lane_line * 12 + (lane_group >> 1) + 10] >> (((lane_group * 2 + 41) & 3) * 4)) & 15) << 4u);
    index = index | (((index >> 1u) & 1145324612u) ^ 1145324612u);
    alignas(16) unsigned short A_shared_stages_v_7[4];
    *(v8*)&A_shared_stages_v_7[0] = *(const v8*)&A_shared_stages[slot * 3072 + wave_row * 96 + lane_line * 96 + (((lane_group >> 1) + 2) ^ (((wave_row * 96 + lane_line * 96 + lane_group * 4 + 80) & 255) >> 6)) * 8 + (lane_group & 1) * 4 + 64];
    #pragma unroll
    for (int a_e_5 = 0; a_e_5 < 4; ++a_e_5) {
      a_values[a_e_5] = A_shared_stages_v_7[a_e_5];
    }
    #pragma unroll
    for (int b_tile_5 = 0; b_tile_5 < 2; ++b_tile_5) {
      #pragma unroll
      for (int b_e_5 = 0; b_e_5 < 8; ++b_e_5) {
        b_values[b_tile_5 * 8 + b_e_5] = B_shared_stages[slot * 6144 + lane_group * 256 + b_e_5 * 32 + ((b_tile_5 * 2 + ((wave_column + lane_line) >> 3)) ^ ((b_e_5 * 32 + b_tile_5 * 16 + wave_column + lane_line) >> 6)) * 8 + ((wave_column + lane_line) & 7) + 5120];
      }
    }
    #pragma unroll
    for (int column_tile_5 = 0; column_tile_5 < 2; ++column_tile_5) {
      *(f32x4*)&C_local[column_tile_5 * 4] = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(const f16x4*)&a_values[0], *(const f16x8*)&b_values[column_tile_5 * 8], *(f32x4*)&C_local[column_tile_5 * 4], (int)index, 0, 0);
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_12 = (tid >> 4) * 4;
    const int i1_12 = tid & 15;
    #pragma unroll
    for (int r_13 = 0; r_13 < 2; ++r_13) {
      #pragma unroll
      for (int v_9 = 0; v_9 < 4; ++v_9) {
        C[(by * 32 + i0_12) * 33 + bx * 32 + i1_12 + v_9 * 33 + r_13 * 16] = C_local[r_13 * 4 + v_9];
      }
    }
  }
  else {
    const int i0_13 = (tid >> 4) * 4;
    const int i1_13 = tid & 15;
    #pragma unroll
    for (int r_14 = 0; r_14 < 2; ++r_14) {
      #pragma unroll
      for (int v_10 = 0; v_10 < 4; ++v_10) {
        if (by * 32 + (i0_13 + v_10) < 40 && bx * 32 + (r_14 * 16 + i1_13) < 33) {
          C[(by * 32 + i0_13) * 33 + bx * 32 + i1_13 + v_10 * 33 + r_14 * 16] = C_local[r_14 * 4 + v_10];
        }
      }
    }
  }
}
