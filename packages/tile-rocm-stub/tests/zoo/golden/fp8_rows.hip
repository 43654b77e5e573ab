#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v4 __attribute__((may_alias));
typedef unsigned v16 __attribute__((vector_size(16), may_alias));
typedef _Float16 f16x4 __attribute__((vector_size(8), may_alias));
typedef float f32x4 __attribute__((vector_size(16), may_alias));
typedef unsigned char unsigned_char_view __attribute__((may_alias));
static __device__ inline unsigned short bf16_of_f32(float x) { return __builtin_bit_cast(unsigned short, (__bf16)x); }
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
static __device__ inline unsigned short f16_of_f32(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }

extern "C" __global__ void __launch_bounds__(128) main_kernel(
    const unsigned char* __restrict__ A,
    const float* __restrict__ A_scale,
    const unsigned char* __restrict__ B,
    const float* __restrict__ B_scale,
    unsigned short* __restrict__ C
) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int by = (int)__builtin_amdgcn_workgroup_id_y();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  unsigned char* const A_shared = (unsigned char*)smem;
  unsigned char* const B_shared = (unsigned char*)(smem + 3072);
  if (by < 1) {
    const int i0 = tid >> 3;
    const int i1 = (tid & 7) * 16;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (i1 < 96) {
        *(v16*)&A_shared[r * 1536 + i0 * 96 + i1] = *(const v16*)&A[(by * 32 + i0) * 96 + i1 + r * 1536];
      }
    }
  }
  else {
    const int i0_1 = tid >> 3;
    const int i1_1 = (tid & 7) * 16;
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 96) {
        if (by * 32 + (r_1 * 16 + i0_1) < 33) {
          *(v16*)&A_shared[r_1 * 1536 + i0_1 * 96 + i1_1] = *(const v16*)&A[(by * 32 + i0_1) * 96 + i1_1 + r_1 * 1536];
        }
        else {
          alignas(16) unsigned char A_shared_v[16];
          #pragma unroll
          for (int v = 0; v < 16; ++v) {
            A_shared_v[v] = 0;
          }
          *(v16*)&A_shared[r_1 * 1536 + i0_1 * 96 + i1_1] = *(const v16*)&A_shared_v[0];
        }
      }
    }
  }
  if (bx < 1) {
    const int i0_2 = tid >> 3;
    const int i1_2 = (tid & 7) * 16;
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      if (i1_2 < 96) {
        *(v16*)&B_shared[r_2 * 1536 + i0_2 * 96 + i1_2] = *(const v16*)&B[(bx * 32 + i0_2) * 96 + i1_2 + r_2 * 1536];
      }
    }
  }
  else {
    const int i0_3 = tid >> 3;
    const int i1_3 = (tid & 7) * 16;
    #pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      if (i1_3 < 96) {
        if (bx * 32 + (r_3 * 16 + i0_3) < 40) {
          *(v16*)&B_shared[r_3 * 1536 + i0_3 * 96 + i1_3] = *(const v16*)&B[(bx * 32 + i0_3) * 96 + i1_3 + r_3 * 1536];
        }
        else {
          alignas(16) unsigned char B_shared_v[16];
          #pragma unroll
          for (int v_1 = 0; v_1 < 16; ++v_1) {
            B_shared_v[v_1] = 0;
          }
          *(v16*)&B_shared[r_3 * 1536 + i0_3 * 96 + i1_3] = *(const v16*)&B_shared_v[0];
        }
      }
    }
  }
  float* const A_s = (float*)(smem + 6144);
  float* const B_s = (float*)(smem + 6272);
  if (by < 1) {
    const int i0_4 = tid & 31;
    if ((tid >> 5) == 0) {
      A_s[i0_4] = A_scale[by * 32 + i0_4];
    }
  }
  else {
    const int i0_5 = tid & 31;
    if ((tid >> 5) == 0) {
      A_s[i0_5] = by * 32 + i0_5 < 33 ? A_scale[by * 32 + i0_5] : 0.0f;
    }
  }
  if (bx < 1) {
    const int i0_6 = tid & 31;
    if ((tid >> 5) == 0) {
      B_s[i0_6] = B_scale[bx * 32 + i0_6];
    }
  }
  else {
    const int i0_7 = tid & 31;
    if ((tid >> 5) == 0) {
      B_s[i0_7] = bx * 32 + i0_7 < 40 ? B_scale[bx * 32 + i0_7] : 0.0f;
    }
  }
  float C_local[8];
  unsigned_char_view* const A_shared_view = (unsigned_char_view*)A_shared;
  unsigned_char_view* const B_shared_view = (unsigned_char_view*)B_shared;
  alignas(16) float fragment[8];
  block_barrier();
  const int lane = tid & 63;
  const int lane_group = lane >> 4;
  const int lane_line = lane & 15;
  const int wave_row = (tid >> 6) * 16;
  const int wave_column = 0;
  #pragma unroll
  for (int column_tile = 0; column_tile < 2; ++column_tile) {
    #pragma unroll
    for (int low = 0; low < 4; ++low) {
      fragment[column_tile * 4 + low] = 0.0f;
    }
  }
  alignas(16) unsigned short a_values[4];
  alignas(16) unsigned short b_values[8];
  alignas(16) unsigned char A_shared_view_v[4];
  *(v4*)&A_shared_view_v[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4];
  #pragma unroll
  for (int a_e = 0; a_e < 4; ++a_e) {
    const unsigned int code = (unsigned int)A_shared_view_v[a_e];
    const unsigned int size = code & 127u;
    a_values[a_e] = f16_of_f32(__builtin_bit_cast(float, (size > 123u ? (size << 21u) + 939524096u + 939524096u : size < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size * 1.5258789e-05f) : (size << 21u) + 939524096u) | ((code & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile = 0; b_tile < 2; ++b_tile) {
    alignas(16) unsigned char B_shared_view_v[4];
    *(v4*)&B_shared_view_v[0] = *(const v4*)&B_shared_view[b_tile * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4];
    #pragma unroll
    for (int b_e = 0; b_e < 4; ++b_e) {
      const unsigned int code_1 = (unsigned int)B_shared_view_v[b_e];
      const unsigned int size_1 = code_1 & 127u;
      b_values[b_tile * 4 + b_e] = f16_of_f32(__builtin_bit_cast(float, (size_1 > 123u ? (size_1 << 21u) + 939524096u + 939524096u : size_1 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_1 * 1.5258789e-05f) : (size_1 << 21u) + 939524096u) | ((code_1 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
    *(f32x4*)&fragment[column_tile_1 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_1 * 4], *(f32x4*)&fragment[column_tile_1 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char A_shared_view_v_1[4];
  *(v4*)&A_shared_view_v_1[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4 + 16];
  #pragma unroll
  for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
    const unsigned int code_2 = (unsigned int)A_shared_view_v_1[a_e_1];
    const unsigned int size_2 = code_2 & 127u;
    a_values[a_e_1] = f16_of_f32(__builtin_bit_cast(float, (size_2 > 123u ? (size_2 << 21u) + 939524096u + 939524096u : size_2 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_2 * 1.5258789e-05f) : (size_2 << 21u) + 939524096u) | ((code_2 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
    alignas(16) unsigned char B_shared_view_v_1[4];
    *(v4*)&B_shared_view_v_1[0] = *(const v4*)&B_shared_view[b_tile_1 * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4 + 16];
    #pragma unroll
    for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
      const unsigned int code_3 = (unsigned int)B_shared_view_v_1[b_e_1];
      const unsigned int size_3 = code_3 & 127u;
      b_values[b_tile_1 * 4 + b_e_1] = f16_of_f32(__builtin_bit_cast(float, (size_3 > 123u ? (size_3 << 21u) + 939524096u + 939524096u : size_3 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_3 * 1.5258789e-05f) : (size_3 << 21u) + 939524096u) | ((code_3 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
    *(f32x4*)&fragment[column_tile_2 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_2 * 4], *(f32x4*)&fragment[column_tile_2 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char A_shared_view_v_2[4];
  *(v4*)&A_shared_view_v_2[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4 + 32];
  #pragma unroll
  for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
    const unsigned int code_4 = (unsigned int)A_shared_view_v_2[a_e_2];
    const unsigned int size_4 = code_4 & 127u;
    a_values[a_e_2] = f16_of_f32(__builtin_bit_cast(float, (size_4 > 123u ? (size_4 << 21u) + 939524096u + 939524096u : size_4 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_4 * 1.5258789e-05f) : (size_4 << 21u) + 939524096u) | ((code_4 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
    alignas(16) unsigned char B_shared_view_v_2[4];
    *(v4*)&B_shared_view_v_2[0] = *(const v4*)&B_shared_view[b_tile_2 * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4 + 32];
    #pragma unroll
    for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
      const unsigned int code_5 = (unsigned int)B_shared_view_v_2[b_e_2];
      const unsigned int size_5 = code_5 & 127u;
      b_values[b_tile_2 * 4 + b_e_2] = f16_of_f32(__builtin_bit_cast(float, (size_5 > 123u ? (size_5 << 21u) + 939524096u + 939524096u : size_5 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_5 * 1.5258789e-05f) : (size_5 << 21u) + 939524096u) | ((code_5 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_3 = 0; column_tile_3 < 2; ++column_tile_3) {
    *(f32x4*)&fragment[column_tile_3 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_3 * 4], *(f32x4*)&fragment[column_tile_3 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char A_shared_view_v_3[4];
  *(v4*)&A_shared_view_v_3[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4 + 48];
  #pragma unroll
  for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
    const unsigned int code_6 = (unsigned int)A_shared_view_v_3[a_e_3];
    const unsigned int size_6 = code_6 & 127u;
    a_values[a_e_3] = f16_of_f32(__builtin_bit_cast(float, (size_6 > 123u ? (size_6 << 21u) + 939524096u + 939524096u : size_6 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_6 * 1.5258789e-05f) : (size_6 << 21u) + 939524096u) | ((code_6 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
    alignas(16) unsigned char B_shared_view_v_3[4];
    *(v4*)&B_shared_view_v_3[0] = *(const v4*)&B_shared_view[b_tile_3 * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4 + 48];
    #pragma unroll
    for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
      const unsigned int code_7 = (unsigned int)B_shared_view_v_3[b_e_3];
      const unsigned int size_7 = code_7 & 127u;
      b_values[b_tile_3 * 4 + b_e_3] = f16_of_f32(__builtin_bit_cast(float, (size_7 > 123u ? (size_7 << 21u) + 939524096u + 939524096u : size_7 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_7 * 1.5258789e-05f) : (size_7 << 21u) + 939524096u) | ((code_7 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_4 = 0; column_tile_4 < 2; ++column_tile_4) {
    *(f32x4*)&fragment[column_tile_4 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_4 * 4], *(f32x4*)&fragment[column_tile_4 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char A_shared_view_v_4[4];
  *(v4*)&A_shared_view_v_4[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4 + 64];
  #pragma unroll
  for (int a_e_4 = 0; a_e_4 < 4; ++a_e_4) {
    const unsigned int code_8 = (unsigned int)A_shared_view_v_4[a_e_4];
    const unsigned int size_8 = code_8 & 127u;
    a_values[a_e_4] = f16_of_f32(__builtin_bit_cast(float, (size_8 > 123u ? (size_8 << 21u) + 939524096u + 939524096u : size_8 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_8 * 1.5258789e-05f) : (size_8 << 21u) + 939524096u) | ((code_8 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_4 = 0; b_tile_4 < 2; ++b_tile_4) {
    alignas(16) unsigned char B_shared_view_v_4[4];
    *(v4*)&B_shared_view_v_4[0] = *(const v4*)&B_shared_view[b_tile_4 * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4 + 64];
    #pragma unroll
    for (int b_e_4 = 0; b_e_4 < 4; ++b_e_4) {
      const unsigned int code_9 = (unsigned int)B_shared_view_v_4[b_e_4];
      const unsigned int size_9 = code_9 & 127u;
      b_values[b_tile_4 * 4 + b_e_4] = f16_of_f32(__builtin_bit_cast(float, (size_9 > 123u ? (size_9 << 21u) + 939524096u + 939524096u : size_9 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_9 * 1.5258789e-05f) : (size_9 << 21u) + 939524096u) | ((code_9 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_5 = 0; column_tile_5 < 2; ++column_tile_5) {
    *(f32x4*)&fragment[column_tile_5 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_5 * 4], *(f32x4*)&fragment[column_tile_5 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char A_shared_view_v_5[4];
  *(v4*)&A_shared_view_v_5[0] = *(const v4*)&A_shared_view[wave_row * 96 + lane_line * 96 + lane_group * 4 + 80];
  #pragma unroll
  for (int a_e_5 = 0; a_e_5 < 4; ++a_e_5) {
    const unsigned int code_10 = (unsigned int)A_shared_view_v_5[a_e_5];
    const unsigned int size_10 = code_10 & 127u;
    a_values[a_e_5] = f16_of_f32(__builtin_bit_cast(float, (size_10 > 123u ? (size_10 << 21u) + 939524096u + 939524096u : size_10 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_10 * 1.5258789e-05f) : (size_10 << 21u) + 939524096u) | ((code_10 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_5 = 0; b_tile_5 < 2; ++b_tile_5) {
    alignas(16) unsigned char B_shared_view_v_5[4];
    *(v4*)&B_shared_view_v_5[0] = *(const v4*)&B_shared_view[b_tile_5 * 1536 + wave_column * 96 + lane_line * 96 + lane_group * 4 + 80];
    #pragma unroll
    for (int b_e_5 = 0; b_e_5 < 4; ++b_e_5) {
      const unsigned int code_11 = (unsigned int)B_shared_view_v_5[b_e_5];
      const unsigned int size_11 = code_11 & 127u;
      b_values[b_tile_5 * 4 + b_e_5] = f16_of_f32(__builtin_bit_cast(float, (size_11 > 123u ? (size_11 << 21u) + 939524096u + 939524096u : size_11 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_11 * 1.5258789e-05f) : (size_11 << 21u) + 939524096u) | ((code_11 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_6 = 0; column_tile_6 < 2; ++column_tile_6) {
    *(f32x4*)&fragment[column_tile_6 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_6 * 4], *(f32x4*)&fragment[column_tile_6 * 4], 0, 0, 0);
  }
  const int i0_8 = (tid >> 4) * 4;
  const int i1_4 = tid & 15;
  #pragma unroll
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma unroll
    for (int v_2 = 0; v_2 < 4; ++v_2) {
      fragment[r_4 * 4 + v_2] = fragment[r_4 * 4 + v_2] * (A_s[i0_8 + v_2] * B_s[r_4 * 16 + i1_4]);
    }
  }
  #pragma unroll
  for (int r_5 = 0; r_5 < 2; ++r_5) {
    #pragma unroll
    for (int v_3 = 0; v_3 < 4; ++v_3) {
      C_local[r_5 * 4 + v_3] = fragment[r_5 * 4 + v_3];
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_9 = (tid >> 4) * 4;
    const int i1_5 = tid & 15;
    #pragma unroll
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      #pragma unroll
      for (int v_4 = 0; v_4 < 4; ++v_4) {
        C[(by * 32 + i0_9) * 40 + bx * 32 + i1_5 + v_4 * 40 + r_6 * 16] = bf16_of_f32(C_local[r_6 * 4 + v_4]);
      }
    }
  }
  else {
    const int i0_10 = (tid >> 4) * 4;
    const int i1_6 = tid & 15;
    #pragma unroll
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      #pragma unroll
      for (int v_5 = 0; v_5 < 4; ++v_5) {
        if (by * 32 + (i0_10 + v_5) < 33 && bx * 32 + (r_7 * 16 + i1_6) < 40) {
          C[(by * 32 + i0_10) * 40 + bx * 32 + i1_6 + v_5 * 40 + r_7 * 16] = bf16_of_f32(C_local[r_7 * 4 + v_5]);
        }
      }
    }
  }
}
