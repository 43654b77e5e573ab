#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline float decode_float8_e5m2(uchar x) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const uint code = x;
  const uint size = code & 127u;
  const uint t = (size << 21u) + 939524096u + 939524096u;
  const uint t_1 = as_type<uint>((float)(int)size * 1.5258789e-05f);
  const uint t_2 = (size << 21u) + 939524096u;
  const uint t_3 = size < 4u ? t_1 : t_2;
  return as_type<float>((size > 123u ? t : t_3) | ((code & 128u) << 24u));
}

static inline void simdgroup_load_bf16_threadgroup(thread bfloat* to, threadgroup const bfloat* from, int pitch) {
  simdgroup_matrix<bfloat, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_load_bf16_threadgroup_transposed(thread bfloat* to, threadgroup const bfloat* from, int pitch) {
  simdgroup_matrix<bfloat, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch, ulong2(0, 0), true);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_multiply_accumulate_f32_bf16(thread float* c, thread const bfloat* a, thread const bfloat* b) {
  simdgroup_matrix<float, 8, 8> sum;
  simdgroup_matrix<bfloat, 8, 8> left, right;
  sum.thread_elements()[0] = c[0];
  sum.thread_elements()[1] = c[1];
  left.thread_elements()[0] = a[0];
  left.thread_elements()[1] = a[1];
  right.thread_elements()[0] = b[0];
  right.thread_elements()[1] = b[1];
  simdgroup_multiply_accumulate(sum, left, right, sum);
  c[0] = sum.thread_elements()[0];
  c[1] = sum.thread_elements()[1];
}

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const uchar* __restrict A [[buffer(0)]],
    device const float* __restrict A_scale [[buffer(1)]],
    device const uchar* __restrict B [[buffer(2)]],
    device const float* __restrict B_scale [[buffer(3)]],
    device bfloat* __restrict C [[buffer(4)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[9472];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup float* const A_s = (threadgroup float*)smem;
  threadgroup float* const B_s = (threadgroup float*)(smem + 128);
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
  device const uchar* const A_view = (device const uchar*)A;
  device const uchar* const B_view = (device const uchar*)B;
  float fragment_1[8];
  threadgroup bfloat* const shared = (threadgroup bfloat*)(smem + 256);
  threadgroup bfloat* const shared_1 = (threadgroup bfloat*)(smem + 4864);
  if (by < 1) {
    const int i0_4 = tid >> 2;
    const int i1 = (tid & 3) * 16;
    alignas(16) uchar A_view_v[16];
    alignas(16) bfloat shared_v[16];
    *(thread uint4*)&A_view_v[0] = *(device const uint4*)&A_view[(by * 32 + i0_4) * 96 + i1];
    #pragma clang loop unroll(full)
    for (int r = 0; r < 16; ++r) {
      shared_v[r] = (bfloat)decode_float8_e5m2(A_view_v[r]);
    }
    *(threadgroup uint4*)&shared[i0_4 * 72 + i1] = *(thread const uint4*)&shared_v[0];
    *(threadgroup uint4*)&shared[i0_4 * 72 + i1 + 8] = *(thread const uint4*)&shared_v[8];
  }
  else {
    const int i0_5 = tid >> 2;
    const int i1_1 = (tid & 3) * 16;
    if (by * 32 + i0_5 < 33) {
      alignas(16) uchar A_view_v_1[16];
      alignas(16) bfloat shared_v_1[16];
      *(thread uint4*)&A_view_v_1[0] = *(device const uint4*)&A_view[(by * 32 + i0_5) * 96 + i1_1];
      #pragma clang loop unroll(full)
      for (int r_1 = 0; r_1 < 16; ++r_1) {
        shared_v_1[r_1] = (bfloat)decode_float8_e5m2(A_view_v_1[r_1]);
      }
      *(threadgroup uint4*)&shared[i0_5 * 72 + i1_1] = *(thread const uint4*)&shared_v_1[0];
      *(threadgroup uint4*)&shared[i0_5 * 72 + i1_1 + 8] = *(thread const uint4*)&shared_v_1[8];
    }
    else {
      alignas(16) bfloat shared_v_2[16];
      #pragma clang loop unroll(full)
      for (int r_2 = 0; r_2 < 16; ++r_2) {
        shared_v_2[r_2] = (bfloat)0.0f;
      }
      *(threadgroup uint4*)&shared[i0_5 * 72 + i1_1] = *(thread const uint4*)&shared_v_2[0];
      *(threadgroup uint4*)&shared[i0_5 * 72 + i1_1 + 8] = *(thread const uint4*)&shared_v_2[8];
    }
  }
  if (bx < 1) {
    const int i0_6 = tid >> 2;
    const int i1_2 = (tid & 3) * 16;
    alignas(16) uchar B_view_v[16];
    alignas(16) bfloat shared_1_v[16];
    *(thread uint4*)&B_view_v[0] = *(device const uint4*)&B_view[(bx * 32 + i0_6) * 96 + i1_2];
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 16; ++r_3) {
      shared_1_v[r_3] = (bfloat)decode_float8_e5m2(B_view_v[r_3]);
    }
    *(threadgroup uint4*)&shared_1[i0_6 * 72 + i1_2] = *(thread const uint4*)&shared_1_v[0];
    *(threadgroup uint4*)&shared_1[i0_6 * 72 + i1_2 + 8] = *(thread const uint4*)&shared_1_v[8];
  }
  else {
    const int i0_7 = tid >> 2;
    const int i1_3 = (tid & 3) * 16;
    if (bx * 32 + i0_7 < 40) {
      alignas(16) uchar B_view_v_1[16];
      alignas(16) bfloat shared_1_v_1[16];
      *(thread uint4*)&B_view_v_1[0] = *(device const uint4*)&B_view[(bx * 32 + i0_7) * 96 + i1_3];
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 16; ++r_4) {
        shared_1_v_1[r_4] = (bfloat)decode_float8_e5m2(B_view_v_1[r_4]);
      }
      *(threadgroup uint4*)&shared_1[i0_7 * 72 + i1_3] = *(thread const uint4*)&shared_1_v_1[0];
      *(threadgroup uint4*)&shared_1[i0_7 * 72 + i1_3 + 8] = *(thread const uint4*)&shared_1_v_1[8];
    }
    else {
      alignas(16) bfloat shared_1_v_2[16];
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 16; ++r_5) {
        shared_1_v_2[r_5] = (bfloat)0.0f;
      }
      *(threadgroup uint4*)&shared_1[i0_7 * 72 + i1_3] = *(thread const uint4*)&shared_1_v_2[0];
      *(threadgroup uint4*)&shared_1[i0_7 * 72 + i1_3 + 8] = *(thread const uint4*)&shared_1_v_2[8];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int simd_row = ((tid >> 5) >> 1) * 16;
  const int simd_column = ((tid >> 5) & 1) * 16;
  #pragma clang loop unroll(full)
  for (int row_tile = 0; row_tile < 2; ++row_tile) {
    #pragma clang loop unroll(full)
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      #pragma clang loop unroll(full)
      for (int e = 0; e < 2; ++e) {
        fragment_1[row_tile * 4 + column_tile * 2 + e] = 0.0f;
      }
    }
  }
  bfloat a_values[4];
  bfloat b_values[2];
  #pragma clang loop unroll(full)
  for (int k_step = 0; k_step < 8; ++k_step) {
    #pragma clang loop unroll(full)
    for (int a_tile = 0; a_tile < 2; ++a_tile) {
      simdgroup_load_bf16_threadgroup(&a_values[a_tile * 2], &shared[a_tile * 576 + simd_row * 72 + k_step * 8], 72);
    }
    #pragma clang loop unroll(full)
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      simdgroup_load_bf16_threadgroup_transposed(&b_values[0], &shared_1[column_tile_1 * 576 + simd_column * 72 + k_step * 8], 72);
      #pragma clang loop unroll(full)
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        simdgroup_multiply_accumulate_f32_bf16(&fragment_1[row_tile_1 * 4 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[0]);
      }
    }
  }
  threadgroup bfloat* const shared_2 = (threadgroup bfloat*)(smem + 256);
  threadgroup bfloat* const shared_3 = (threadgroup bfloat*)(smem + 2816);
  if (by < 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_8 = tid >> 2;
    const int i1_4 = (tid & 3) * 8;
    alignas(16) uchar A_view_v_2[8];
    alignas(16) bfloat shared_2_v[8];
    *(thread uint2*)&A_view_v_2[0] = *(device const uint2*)&A_view[(by * 32 + i0_8) * 96 + i1_4 + 64];
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 8; ++r_6) {
      shared_2_v[r_6] = (bfloat)decode_float8_e5m2(A_view_v_2[r_6]);
    }
    *(threadgroup uint4*)&shared_2[i0_8 * 40 + i1_4] = *(thread const uint4*)&shared_2_v[0];
  }
  else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_9 = tid >> 2;
    const int i1_5 = (tid & 3) * 8;
    if (by * 32 + i0_9 < 33) {
      alignas(16) uchar A_view_v_3[8];
      alignas(16) bfloat shared_2_v_1[8];
      *(thread uint2*)&A_view_v_3[0] = *(device const uint2*)&A_view[(by * 32 + i0_9) * 96 + i1_5 + 64];
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 8; ++r_7) {
        shared_2_v_1[r_7] = (bfloat)decode_float8_e5m2(A_view_v_3[r_7]);
      }
      *(threadgroup uint4*)&shared_2[i0_9 * 40 + i1_5] = *(thread const uint4*)&shared_2_v_1[0];
    }
    else {
      alignas(16) bfloat shared_2_v_2[8];
      #pragma clang loop unroll(full)
      for (int r_8 = 0; r_8 < 8; ++r_8) {
        shared_2_v_2[r_8] = (bfloat)0.0f;
      }
      *(threadgroup uint4*)&shared_2[i0_9 * 40 + i1_5] = *(thread const uint4*)&shared_2_v_2[0];
    }
  }
  if (bx < 1) {
    const int i0_10 = tid >> 2;
    const int i1_6 = (tid & 3) * 8;
    alignas(16) uchar B_view_v_2[8];
    alignas(16) bfloat shared_3_v[8];
    *(thread uint2*)&B_view_v_2[0] = *(device const uint2*)&B_view[(bx * 32 + i0_10) * 96 + i1_6 + 64];
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 8; ++r_9) {
      shared_3_v[r_9] = (bfloat)decode_float8_e5m2(B_view_v_2[r_9]);
    }
    *(threadgroup uint4*)&shared_3[i0_10 * 40 + i1_6] = *(thread const uint4*)&shared_3_v[0];
  }
  else {
    const int i0_11 = tid >> 2;
    const int i1_7 = (tid & 3) * 8;
    if (bx * 32 + i0_11 < 40) {
      alignas(16) uchar B_view_v_3[8];
      alignas(16) bfloat shared_3_v_1[8];
      *(thread uint2*)&B_view_v_3[0] = *(device const uint2*)&B_view[(bx * 32 + i0_11) * 96 + i1_7 + 64];
      #pragma clang loop unroll(full)
      for (int r_10 = 0; r_10 < 8; ++r_10) {
        shared_3_v_1[r_10] = (bfloat)decode_float8_e5m2(B_view_v_3[r_10]);
      }
      *(threadgroup uint4*)&shared_3[i0_11 * 40 + i1_7] = *(thread const uint4*)&shared_3_v_1[0];
    }
    else {
      alignas(16) bfloat shared_3_v_2[8];
      #pragma clang loop unroll(full)
      for (int r_11 = 0; r_11 < 8; ++r_11) {
        shared_3_v_2[r_11] = (bfloat)0.0f;
      }
      *(threadgroup uint4*)&shared_3[i0_11 * 40 + i1_7] = *(thread const uint4*)&shared_3_v_2[0];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int simd_row_1 = ((tid >> 5) >> 1) * 16;
  const int simd_column_1 = ((tid >> 5) & 1) * 16;
  bfloat a_values_1[4];
  bfloat b_values_1[2];
  #pragma clang loop unroll(full)
  for (int k_step_1 = 0; k_step_1 < 4; ++k_step_1) {
    #pragma clang loop unroll(full)
    for (int a_tile_1 = 0; a_tile_1 < 2; ++a_tile_1) {
      simdgroup_load_bf16_threadgroup(&a_values_1[a_tile_1 * 2], &shared_2[a_tile_1 * 320 + simd_row_1 * 40 + k_step_1 * 8], 40);
    }
    #pragma clang loop unroll(full)
    for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
      simdgroup_load_bf16_threadgroup_transposed(&b_values_1[0], &shared_3[column_tile_2 * 320 + simd_column_1 * 40 + k_step_1 * 8], 40);
      #pragma clang loop unroll(full)
      for (int row_tile_2 = 0; row_tile_2 < 2; ++row_tile_2) {
        simdgroup_multiply_accumulate_f32_bf16(&fragment_1[row_tile_2 * 4 + column_tile_2 * 2], &a_values_1[row_tile_2 * 2], &b_values_1[0]);
      }
    }
  }
  const int i0_12 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_8 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_12 = 0; r_12 < 2; ++r_12) {
    #pragma clang loop unroll(full)
    for (int r_13 = 0; r_13 < 2; ++r_13) {
      alignas(16) float B_s_v[2];
      *(thread uint2*)&B_s_v[0] = *(threadgroup const uint2*)&B_s[r_13 * 8 + i1_8];
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        fragment_1[r_12 * 4 + r_13 * 2 + v] = fragment_1[r_12 * 4 + r_13 * 2 + v] * (A_s[r_12 * 8 + i0_12] * B_s_v[v]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_14 = 0; r_14 < 2; ++r_14) {
    #pragma clang loop unroll(full)
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_local[r_14 * 4 + r_15 * 2 + v_1] = fragment_1[r_14 * 4 + r_15 * 2 + v_1];
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_13 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_9 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      #pragma clang loop unroll(full)
      for (int r_17 = 0; r_17 < 2; ++r_17) {
        alignas(16) bfloat C_v[2];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 2; ++v_2) {
          C_v[v_2] = (bfloat)C_local[r_16 * 4 + r_17 * 2 + v_2];
        }
        *(device uchar4*)&C[(by * 32 + i0_13) * 40 + bx * 32 + i1_9 + r_16 * 320 + r_17 * 8] = *(thread const uchar4*)&C_v[0];
      }
    }
  }
  else {
    const int i0_14 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_10 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_18 = 0; r_18 < 2; ++r_18) {
      #pragma clang loop unroll(full)
      for (int r_19 = 0; r_19 < 2; ++r_19) {
        if (by * 32 + (r_18 * 8 + i0_14) < 33 && bx * 32 + (r_19 * 8 + i1_10) < 40) {
          alignas(16) bfloat C_v_1[2];
          #pragma clang loop unroll(full)
          for (int v_3 = 0; v_3 < 2; ++v_3) {
            C_v_1[v_3] = (bfloat)C_local[r_18 * 4 + r_19 * 2 + v_3];
          }
          *(device uchar4*)&C[(by * 32 + i0_14) * 40 + bx * 32 + i1_10 + r_18 * 320 + r_19 * 8] = *(thread const uchar4*)&C_v_1[0];
        }
      }
    }
  }
}
