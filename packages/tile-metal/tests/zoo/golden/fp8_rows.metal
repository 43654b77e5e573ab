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
  alignas(16) threadgroup uchar smem[13568];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup bfloat* const A_shared = (threadgroup bfloat*)smem;
  device const uchar* const A_codes = (device const uchar*)A;
  threadgroup bfloat* const B_shared = (threadgroup bfloat*)(smem + 6656);
  device const uchar* const B_codes = (device const uchar*)B;
  if (by < 1) {
    const int i0 = tid >> 3;
    const int i1 = (tid & 7) * 16;
    #pragma clang loop unroll(full)
    for (int r = 0; r < 2; ++r) {
      if (i1 < 96) {
        alignas(16) uchar A_codes_v[16];
        alignas(16) bfloat A_shared_v[16];
        *(thread uint4*)&A_codes_v[0] = *(device const uint4*)&A_codes[(by * 32 + i0) * 96 + i1 + r * 1536];
        #pragma clang loop unroll(full)
        for (int v = 0; v < 16; ++v) {
          A_shared_v[v] = (bfloat)decode_float8_e5m2(A_codes_v[v]);
        }
        *(threadgroup uint4*)&A_shared[r * 1664 + i0 * 104 + i1] = *(thread const uint4*)&A_shared_v[0];
        *(threadgroup uint4*)&A_shared[r * 1664 + i0 * 104 + i1 + 8] = *(thread const uint4*)&A_shared_v[8];
      }
    }
  }
  else {
    const int i0_1 = tid >> 3;
    const int i1_1 = (tid & 7) * 16;
    #pragma clang loop unroll(disable)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 96) {
        if (by * 32 + (r_1 * 16 + i0_1) < 33) {
          alignas(16) uchar A_codes_v_1[16];
          alignas(16) bfloat A_shared_v_1[16];
          *(thread uint4*)&A_codes_v_1[0] = *(device const uint4*)&A_codes[(by * 32 + i0_1) * 96 + i1_1 + r_1 * 1536];
          #pragma clang loop unroll(full)
          for (int v_1 = 0; v_1 < 16; ++v_1) {
            A_shared_v_1[v_1] = (bfloat)decode_float8_e5m2(A_codes_v_1[v_1]);
          }
          *(threadgroup uint4*)&A_shared[r_1 * 1664 + i0_1 * 104 + i1_1] = *(thread const uint4*)&A_shared_v_1[0];
          *(threadgroup uint4*)&A_shared[r_1 * 1664 + i0_1 * 104 + i1_1 + 8] = *(thread const uint4*)&A_shared_v_1[8];
        }
        else {
          alignas(16) bfloat A_shared_v_2[16];
          #pragma clang loop unroll(full)
          for (int v_2 = 0; v_2 < 16; ++v_2) {
            A_shared_v_2[v_2] = (bfloat)0.0f;
          }
          *(threadgroup uint4*)&A_shared[r_1 * 1664 + i0_1 * 104 + i1_1] = *(thread const uint4*)&A_shared_v_2[0];
          *(threadgroup uint4*)&A_shared[r_1 * 1664 + i0_1 * 104 + i1_1 + 8] = *(thread const uint4*)&A_shared_v_2[8];
        }
      }
    }
  }
  if (bx < 1) {
    const int i0_2 = tid >> 3;
    const int i1_2 = (tid & 7) * 16;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      if (i1_2 < 96) {
        alignas(16) uchar B_codes_v[16];
        alignas(16) bfloat B_shared_v[16];
        *(thread uint4*)&B_codes_v[0] = *(device const uint4*)&B_codes[(bx * 32 + i0_2) * 96 + i1_2 + r_2 * 1536];
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 16; ++v_3) {
          B_shared_v[v_3] = (bfloat)decode_float8_e5m2(B_codes_v[v_3]);
        }
        *(threadgroup uint4*)&B_shared[r_2 * 1664 + i0_2 * 104 + i1_2] = *(thread const uint4*)&B_shared_v[0];
        *(threadgroup uint4*)&B_shared[r_2 * 1664 + i0_2 * 104 + i1_2 + 8] = *(thread const uint4*)&B_shared_v[8];
      }
    }
  }
  else {
    const int i0_3 = tid >> 3;
    const int i1_3 = (tid & 7) * 16;
    #pragma clang loop unroll(disable)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      if (i1_3 < 96) {
        if (bx * 32 + (r_3 * 16 + i0_3) < 40) {
          alignas(16) uchar B_codes_v_1[16];
          alignas(16) bfloat B_shared_v_1[16];
          *(thread uint4*)&B_codes_v_1[0] = *(device const uint4*)&B_codes[(bx * 32 + i0_3) * 96 + i1_3 + r_3 * 1536];
          #pragma clang loop unroll(full)
          for (int v_4 = 0; v_4 < 16; ++v_4) {
            B_shared_v_1[v_4] = (bfloat)decode_float8_e5m2(B_codes_v_1[v_4]);
          }
          *(threadgroup uint4*)&B_shared[r_3 * 1664 + i0_3 * 104 + i1_3] = *(thread const uint4*)&B_shared_v_1[0];
          *(threadgroup uint4*)&B_shared[r_3 * 1664 + i0_3 * 104 + i1_3 + 8] = *(thread const uint4*)&B_shared_v_1[8];
        }
        else {
          alignas(16) bfloat B_shared_v_2[16];
          #pragma clang loop unroll(full)
          for (int v_5 = 0; v_5 < 16; ++v_5) {
            B_shared_v_2[v_5] = (bfloat)0.0f;
          }
          *(threadgroup uint4*)&B_shared[r_3 * 1664 + i0_3 * 104 + i1_3] = *(thread const uint4*)&B_shared_v_2[0];
          *(threadgroup uint4*)&B_shared[r_3 * 1664 + i0_3 * 104 + i1_3 + 8] = *(thread const uint4*)&B_shared_v_2[8];
        }
      }
    }
  }
  threadgroup float* const A_s = (threadgroup float*)(smem + 13312);
  threadgroup float* const B_s = (threadgroup float*)(smem + 13440);
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
  float fragment_1[8];
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
  for (int k_step = 0; k_step < 12; ++k_step) {
    #pragma clang loop unroll(full)
    for (int a_tile = 0; a_tile < 2; ++a_tile) {
      simdgroup_load_bf16_threadgroup(&a_values[a_tile * 2], &A_shared[a_tile * 832 + simd_row * 104 + k_step * 8], 104);
    }
    #pragma clang loop unroll(full)
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      simdgroup_load_bf16_threadgroup_transposed(&b_values[0], &B_shared[column_tile_1 * 832 + simd_column * 104 + k_step * 8], 104);
      #pragma clang loop unroll(full)
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        simdgroup_multiply_accumulate_f32_bf16(&fragment_1[row_tile_1 * 4 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[0]);
      }
    }
  }
  const int i0_8 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_4 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      alignas(16) float B_s_v[2];
      *(thread uint2*)&B_s_v[0] = *(threadgroup const uint2*)&B_s[r_5 * 8 + i1_4];
      #pragma clang loop unroll(full)
      for (int v_6 = 0; v_6 < 2; ++v_6) {
        fragment_1[r_4 * 4 + r_5 * 2 + v_6] = fragment_1[r_4 * 4 + r_5 * 2 + v_6] * (A_s[r_4 * 8 + i0_8] * B_s_v[v_6]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_6 = 0; r_6 < 2; ++r_6) {
    #pragma clang loop unroll(full)
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      #pragma clang loop unroll(full)
      for (int v_7 = 0; v_7 < 2; ++v_7) {
        C_local[r_6 * 4 + r_7 * 2 + v_7] = fragment_1[r_6 * 4 + r_7 * 2 + v_7];
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_9 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_5 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_8 = 0; r_8 < 2; ++r_8) {
      #pragma clang loop unroll(full)
      for (int r_9 = 0; r_9 < 2; ++r_9) {
        alignas(16) bfloat C_v[2];
        #pragma clang loop unroll(full)
        for (int v_8 = 0; v_8 < 2; ++v_8) {
          C_v[v_8] = (bfloat)C_local[r_8 * 4 + r_9 * 2 + v_8];
        }
        *(device uchar4*)&C[(by * 32 + i0_9) * 40 + bx * 32 + i1_5 + r_8 * 320 + r_9 * 8] = *(thread const uchar4*)&C_v[0];
      }
    }
  }
  else {
    const int i0_10 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_6 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_10 = 0; r_10 < 2; ++r_10) {
      #pragma clang loop unroll(full)
      for (int r_11 = 0; r_11 < 2; ++r_11) {
        if (by * 32 + (r_10 * 8 + i0_10) < 33 && bx * 32 + (r_11 * 8 + i1_6) < 40) {
          alignas(16) bfloat C_v_1[2];
          #pragma clang loop unroll(full)
          for (int v_9 = 0; v_9 < 2; ++v_9) {
            C_v_1[v_9] = (bfloat)C_local[r_10 * 4 + r_11 * 2 + v_9];
          }
          *(device uchar4*)&C[(by * 32 + i0_10) * 40 + bx * 32 + i1_6 + r_10 * 320 + r_11 * 8] = *(thread const uchar4*)&C_v_1[0];
        }
      }
    }
  }
}
