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
  float* const A_s = (float*)smem;
  float* const B_s = (float*)(smem + 128);
  if (by < 1) {
    const int i0 = tid & 31;
    if ((tid >> 5) == 0) {
      A_s[i0] = A_scale[by * 32 + i0];
    }
  }
  else {
    const int i0_1 = tid & 31;
    if ((tid >> 5) == 0) {
      A_s[i0_1] = by * 32 + i0_1 < 33 ? A_scale[by * 32 + i0_1] : 0.0f;
    }
  }
  if (bx < 1) {
    const int i0_2 = tid & 31;
    if ((tid >> 5) == 0) {
      B_s[i0_2] = B_scale[bx * 32 + i0_2];
    }
  }
  else {
    const int i0_3 = tid & 31;
    if ((tid >> 5) == 0) {
      B_s[i0_3] = bx * 32 + i0_3 < 40 ? B_scale[bx * 32 + i0_3] : 0.0f;
    }
  }
  float C_local[8];
  const unsigned_char_view* const A_view = (const unsigned_char_view*)A;
  const unsigned_char_view* const B_view = (const unsigned_char_view*)B;
  alignas(16) float fragment[8];
  unsigned char* const shared = (unsigned char*)(smem + 256);
  unsigned char* const shared_1 = (unsigned char*)(smem + 2304);
  if (by < 1) {
    const int i0_4 = tid >> 2;
    const int i1 = (tid & 3) * 16;
    *(v16*)&shared[i0_4 * 64 + ((i1 >> 4) ^ ((i0_4 & 7) >> 1)) * 16] = *(const v16*)&A_view[(by * 32 + i0_4) * 96 + i1];
  }
  else {
    const int i0_5 = tid >> 2;
    const int i1_1 = (tid & 3) * 16;
    if (by * 32 + i0_5 < 33) {
      *(v16*)&shared[i0_5 * 64 + ((i1_1 >> 4) ^ ((i0_5 & 7) >> 1)) * 16] = *(const v16*)&A_view[(by * 32 + i0_5) * 96 + i1_1];
    }
    else {
      alignas(16) unsigned char shared_v[16];
      #pragma unroll
      for (int r = 0; r < 16; ++r) {
        shared_v[r] = 0;
      }
      *(v16*)&shared[i0_5 * 64 + ((i1_1 >> 4) ^ ((i0_5 & 7) >> 1)) * 16] = *(const v16*)&shared_v[0];
    }
  }
  if (bx < 1) {
    const int i0_6 = tid >> 2;
    const int i1_2 = (tid & 3) * 16;
    *(v16*)&shared_1[i0_6 * 64 + ((i1_2 >> 4) ^ ((i0_6 & 7) >> 1)) * 16] = *(const v16*)&B_view[(bx * 32 + i0_6) * 96 + i1_2];
  }
  else {
    const int i0_7 = tid >> 2;
    const int i1_3 = (tid & 3) * 16;
    if (bx * 32 + i0_7 < 40) {
      *(v16*)&shared_1[i0_7 * 64 + ((i1_3 >> 4) ^ ((i0_7 & 7) >> 1)) * 16] = *(const v16*)&B_view[(bx * 32 + i0_7) * 96 + i1_3];
    }
    else {
      alignas(16) unsigned char shared_1_v[16];
      #pragma unroll
      for (int r_1 = 0; r_1 < 16; ++r_1) {
        shared_1_v[r_1] = 0;
      }
      *(v16*)&shared_1[i0_7 * 64 + ((i1_3 >> 4) ^ ((i0_7 & 7) >> 1)) * 16] = *(const v16*)&shared_1_v[0];
    }
  }
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
  alignas(16) unsigned char shared_v_1[4];
  *(v4*)&shared_v_1[0] = *(const v4*)&shared[wave_row * 64 + lane_line * 64 + (((wave_row + lane_line) & 7) >> 1) * 16 + lane_group * 4];
  #pragma unroll
  for (int a_e = 0; a_e < 4; ++a_e) {
    const unsigned int code = (unsigned int)shared_v_1[a_e];
    const unsigned int size = code & 127u;
    a_values[a_e] = f16_of_f32(__builtin_bit_cast(float, (size > 123u ? (size << 21u) + 939524096u + 939524096u : size < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size * 1.5258789e-05f) : (size << 21u) + 939524096u) | ((code & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile = 0; b_tile < 2; ++b_tile) {
    alignas(16) unsigned char shared_1_v_1[4];
    *(v4*)&shared_1_v_1[0] = *(const v4*)&shared_1[b_tile * 1024 + wave_column * 64 + lane_line * 64 + (((wave_column + lane_line) & 7) >> 1) * 16 + lane_group * 4];
    #pragma unroll
    for (int b_e = 0; b_e < 4; ++b_e) {
      const unsigned int code_1 = (unsigned int)shared_1_v_1[b_e];
      const unsigned int size_1 = code_1 & 127u;
      b_values[b_tile * 4 + b_e] = f16_of_f32(__builtin_bit_cast(float, (size_1 > 123u ? (size_1 << 21u) + 939524096u + 939524096u : size_1 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_1 * 1.5258789e-05f) : (size_1 << 21u) + 939524096u) | ((code_1 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
    *(f32x4*)&fragment[column_tile_1 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_1 * 4], *(f32x4*)&fragment[column_tile_1 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char shared_v_2[4];
  *(v4*)&shared_v_2[0] = *(const v4*)&shared[wave_row * 64 + lane_line * 64 + (1 ^ (((wave_row + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
  #pragma unroll
  for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
    const unsigned int code_2 = (unsigned int)shared_v_2[a_e_1];
    const unsigned int size_2 = code_2 & 127u;
    a_values[a_e_1] = f16_of_f32(__builtin_bit_cast(float, (size_2 > 123u ? (size_2 << 21u) + 939524096u + 939524096u : size_2 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_2 * 1.5258789e-05f) : (size_2 << 21u) + 939524096u) | ((code_2 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_1 = 0; b_tile_1 < 2; ++b_tile_1) {
    alignas(16) unsigned char shared_1_v_2[4];
    *(v4*)&shared_1_v_2[0] = *(const v4*)&shared_1[b_tile_1 * 1024 + wave_column * 64 + lane_line * 64 + (1 ^ (((wave_column + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
    #pragma unroll
    for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
      const unsigned int code_3 = (unsigned int)shared_1_v_2[b_e_1];
      const unsigned int size_3 = code_3 & 127u;
      b_values[b_tile_1 * 4 + b_e_1] = f16_of_f32(__builtin_bit_cast(float, (size_3 > 123u ? (size_3 << 21u) + 939524096u + 939524096u : size_3 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_3 * 1.5258789e-05f) : (size_3 << 21u) + 939524096u) | ((code_3 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
    *(f32x4*)&fragment[column_tile_2 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_2 * 4], *(f32x4*)&fragment[column_tile_2 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char shared_v_3[4];
  *(v4*)&shared_v_3[0] = *(const v4*)&shared[wave_row * 64 + lane_line * 64 + (2 ^ (((wave_row + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
  #pragma unroll
  for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
    const unsigned int code_4 = (unsigned int)shared_v_3[a_e_2];
    const unsigned int size_4 = code_4 & 127u;
    a_values[a_e_2] = f16_of_f32(__builtin_bit_cast(float, (size_4 > 123u ? (size_4 << 21u) + 939524096u + 939524096u : size_4 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_4 * 1.5258789e-05f) : (size_4 << 21u) + 939524096u) | ((code_4 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
    alignas(16) unsigned char shared_1_v_3[4];
    *(v4*)&shared_1_v_3[0] = *(const v4*)&shared_1[b_tile_2 * 1024 + wave_column * 64 + lane_line * 64 + (2 ^ (((wave_column + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
    #pragma unroll
    for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
      const unsigned int code_5 = (unsigned int)shared_1_v_3[b_e_2];
      const unsigned int size_5 = code_5 & 127u;
      b_values[b_tile_2 * 4 + b_e_2] = f16_of_f32(__builtin_bit_cast(float, (size_5 > 123u ? (size_5 << 21u) + 939524096u + 939524096u : size_5 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_5 * 1.5258789e-05f) : (size_5 << 21u) + 939524096u) | ((code_5 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_3 = 0; column_tile_3 < 2; ++column_tile_3) {
    *(f32x4*)&fragment[column_tile_3 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_3 * 4], *(f32x4*)&fragment[column_tile_3 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char shared_v_4[4];
  *(v4*)&shared_v_4[0] = *(const v4*)&shared[wave_row * 64 + lane_line * 64 + (3 ^ (((wave_row + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
  #pragma unroll
  for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
    const unsigned int code_6 = (unsigned int)shared_v_4[a_e_3];
    const unsigned int size_6 = code_6 & 127u;
    a_values[a_e_3] = f16_of_f32(__builtin_bit_cast(float, (size_6 > 123u ? (size_6 << 21u) + 939524096u + 939524096u : size_6 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_6 * 1.5258789e-05f) : (size_6 << 21u) + 939524096u) | ((code_6 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
    alignas(16) unsigned char shared_1_v_4[4];
    *(v4*)&shared_1_v_4[0] = *(const v4*)&shared_1[b_tile_3 * 1024 + wave_column * 64 + lane_line * 64 + (3 ^ (((wave_column + lane_line) & 7) >> 1)) * 16 + lane_group * 4];
    #pragma unroll
    for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
      const unsigned int code_7 = (unsigned int)shared_1_v_4[b_e_3];
      const unsigned int size_7 = code_7 & 127u;
      b_values[b_tile_3 * 4 + b_e_3] = f16_of_f32(__builtin_bit_cast(float, (size_7 > 123u ? (size_7 << 21u) + 939524096u + 939524096u : size_7 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_7 * 1.5258789e-05f) : (size_7 << 21u) + 939524096u) | ((code_7 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_4 = 0; column_tile_4 < 2; ++column_tile_4) {
    *(f32x4*)&fragment[column_tile_4 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values[0], *(const f16x4*)&b_values[column_tile_4 * 4], *(f32x4*)&fragment[column_tile_4 * 4], 0, 0, 0);
  }
  unsigned char* const shared_2 = (unsigned char*)(smem + 256);
  unsigned char* const shared_3 = (unsigned char*)(smem + 1280);
  if (by < 1) {
    block_barrier();
    const int i0_8 = tid >> 2;
    const int i1_4 = (tid & 3) * 8;
    *(v8*)&shared_2[i0_8 * 32 + ((i1_4 >> 4) ^ ((i0_8 & 7) >> 2)) * 16 + (i1_4 & 15)] = *(const v8*)&A_view[(by * 32 + i0_8) * 96 + i1_4 + 64];
  }
  else {
    block_barrier();
    const int i0_9 = tid >> 2;
    const int i1_5 = (tid & 3) * 8;
    if (by * 32 + i0_9 < 33) {
      *(v8*)&shared_2[i0_9 * 32 + ((i1_5 >> 4) ^ ((i0_9 & 7) >> 2)) * 16 + (i1_5 & 15)] = *(const v8*)&A_view[(by * 32 + i0_9) * 96 + i1_5 + 64];
    }
    else {
      alignas(16) unsigned char shared_2_v[8];
      #pragma unroll
      for (int r_2 = 0; r_2 < 8; ++r_2) {
        shared_2_v[r_2] = 0;
      }
      *(v8*)&shared_2[i0_9 * 32 + ((i1_5 >> 4) ^ ((i0_9 & 7) >> 2)) * 16 + (i1_5 & 15)] = *(const v8*)&shared_2_v[0];
    }
  }
  if (bx < 1) {
    const int i0_10 = tid >> 2;
    const int i1_6 = (tid & 3) * 8;
    *(v8*)&shared_3[i0_10 * 32 + ((i1_6 >> 4) ^ ((i0_10 & 7) >> 2)) * 16 + (i1_6 & 15)] = *(const v8*)&B_view[(bx * 32 + i0_10) * 96 + i1_6 + 64];
  }
  else {
    const int i0_11 = tid >> 2;
    const int i1_7 = (tid & 3) * 8;
    if (bx * 32 + i0_11 < 40) {
      *(v8*)&shared_3[i0_11 * 32 + ((i1_7 >> 4) ^ ((i0_11 & 7) >> 2)) * 16 + (i1_7 & 15)] = *(const v8*)&B_view[(bx * 32 + i0_11) * 96 + i1_7 + 64];
    }
    else {
      alignas(16) unsigned char shared_3_v[8];
      #pragma unroll
      for (int r_3 = 0; r_3 < 8; ++r_3) {
        shared_3_v[r_3] = 0;
      }
      *(v8*)&shared_3[i0_11 * 32 + ((i1_7 >> 4) ^ ((i0_11 & 7) >> 2)) * 16 + (i1_7 & 15)] = *(const v8*)&shared_3_v[0];
    }
  }
  block_barrier();
  const int lane_1 = tid & 63;
  const int lane_group_1 = lane_1 >> 4;
  const int lane_line_1 = lane_1 & 15;
  const int wave_row_1 = (tid >> 6) * 16;
  const int wave_column_1 = 0;
  alignas(16) unsigned short a_values_1[4];
  alignas(16) unsigned short b_values_1[8];
  alignas(16) unsigned char shared_2_v_1[4];
  *(v4*)&shared_2_v_1[0] = *(const v4*)&shared_2[wave_row_1 * 32 + lane_line_1 * 32 + (((wave_row_1 + lane_line_1) & 7) >> 2) * 16 + lane_group_1 * 4];
  #pragma unroll
  for (int a_e_4 = 0; a_e_4 < 4; ++a_e_4) {
    const unsigned int code_8 = (unsigned int)shared_2_v_1[a_e_4];
    const unsigned int size_8 = code_8 & 127u;
    a_values_1[a_e_4] = f16_of_f32(__builtin_bit_cast(float, (size_8 > 123u ? (size_8 << 21u) + 939524096u + 939524096u : size_8 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_8 * 1.5258789e-05f) : (size_8 << 21u) + 939524096u) | ((code_8 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_4 = 0; b_tile_4 < 2; ++b_tile_4) {
    alignas(16) unsigned char shared_3_v_1[4];
    *(v4*)&shared_3_v_1[0] = *(const v4*)&shared_3[b_tile_4 * 512 + wave_column_1 * 32 + lane_line_1 * 32 + (((wave_column_1 + lane_line_1) & 7) >> 2) * 16 + lane_group_1 * 4];
    #pragma unroll
    for (int b_e_4 = 0; b_e_4 < 4; ++b_e_4) {
      const unsigned int code_9 = (unsigned int)shared_3_v_1[b_e_4];
      const unsigned int size_9 = code_9 & 127u;
      b_values_1[b_tile_4 * 4 + b_e_4] = f16_of_f32(__builtin_bit_cast(float, (size_9 > 123u ? (size_9 << 21u) + 939524096u + 939524096u : size_9 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_9 * 1.5258789e-05f) : (size_9 << 21u) + 939524096u) | ((code_9 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_5 = 0; column_tile_5 < 2; ++column_tile_5) {
    *(f32x4*)&fragment[column_tile_5 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values_1[0], *(const f16x4*)&b_values_1[column_tile_5 * 4], *(f32x4*)&fragment[column_tile_5 * 4], 0, 0, 0);
  }
  alignas(16) unsigned char shared_2_v_2[4];
  *(v4*)&shared_2_v_2[0] = *(const v4*)&shared_2[wave_row_1 * 32 + lane_line_1 * 32 + (1 ^ (((wave_row_1 + lane_line_1) & 7) >> 2)) * 16 + lane_group_1 * 4];
  #pragma unroll
  for (int a_e_5 = 0; a_e_5 < 4; ++a_e_5) {
    const unsigned int code_10 = (unsigned int)shared_2_v_2[a_e_5];
    const unsigned int size_10 = code_10 & 127u;
    a_values_1[a_e_5] = f16_of_f32(__builtin_bit_cast(float, (size_10 > 123u ? (size_10 << 21u) + 939524096u + 939524096u : size_10 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_10 * 1.5258789e-05f) : (size_10 << 21u) + 939524096u) | ((code_10 & 128u) << 24u)));
  }
  #pragma unroll
  for (int b_tile_5 = 0; b_tile_5 < 2; ++b_tile_5) {
    alignas(16) unsigned char shared_3_v_2[4];
    *(v4*)&shared_3_v_2[0] = *(const v4*)&shared_3[b_tile_5 * 512 + wave_column_1 * 32 + lane_line_1 * 32 + (1 ^ (((wave_column_1 + lane_line_1) & 7) >> 2)) * 16 + lane_group_1 * 4];
    #pragma unroll
    for (int b_e_5 = 0; b_e_5 < 4; ++b_e_5) {
      const unsigned int code_11 = (unsigned int)shared_3_v_2[b_e_5];
      const unsigned int size_11 = code_11 & 127u;
      b_values_1[b_tile_5 * 4 + b_e_5] = f16_of_f32(__builtin_bit_cast(float, (size_11 > 123u ? (size_11 << 21u) + 939524096u + 939524096u : size_11 < 4u ? __builtin_bit_cast(unsigned int, (float)(int)size_11 * 1.5258789e-05f) : (size_11 << 21u) + 939524096u) | ((code_11 & 128u) << 24u)));
    }
  }
  #pragma unroll
  for (int column_tile_6 = 0; column_tile_6 < 2; ++column_tile_6) {
    *(f32x4*)&fragment[column_tile_6 * 4] = __builtin_amdgcn_mfma_f32_16x16x16f16(*(const f16x4*)&a_values_1[0], *(const f16x4*)&b_values_1[column_tile_6 * 4], *(f32x4*)&fragment[column_tile_6 * 4], 0, 0, 0);
  }
  const int i0_12 = (tid >> 4) * 4;
  const int i1_8 = tid & 15;
  #pragma unroll
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      fragment[r_4 * 4 + v] = fragment[r_4 * 4 + v] * (A_s[i0_12 + v] * B_s[r_4 * 16 + i1_8]);
    }
  }
  #pragma unroll
  for (int r_5 = 0; r_5 < 2; ++r_5) {
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      C_local[r_5 * 4 + v_1] = fragment[r_5 * 4 + v_1];
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_13 = (tid >> 4) * 4;
    const int i1_9 = tid & 15;
    #pragma unroll
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      #pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        C[(by * 32 + i0_13) * 40 + bx * 32 + i1_9 + v_2 * 40 + r_6 * 16] = bf16_of_f32(C_local[r_6 * 4 + v_2]);
      }
    }
  }
  else {
    const int i0_14 = (tid >> 4) * 4;
    const int i1_10 = tid & 15;
    #pragma unroll
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      #pragma unroll
      for (int v_3 = 0; v_3 < 4; ++v_3) {
        if (by * 32 + (i0_14 + v_3) < 33 && bx * 32 + (r_7 * 16 + i1_10) < 40) {
          C[(by * 32 + i0_14) * 40 + bx * 32 + i1_10 + v_3 * 40 + r_7 * 16] = bf16_of_f32(C_local[r_7 * 4 + v_3]);
        }
      }
    }
  }
}
