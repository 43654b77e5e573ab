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
  alignas(16) threadgroup uchar smem[6400];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup uchar* const A_shared = (threadgroup uchar*)smem;
  threadgroup uchar* const B_shared = (threadgroup uchar*)(smem + 3072);
  if (by < 1) {
    const int i0 = tid >> 3;
    const int i1 = (tid & 7) * 16;
    #pragma clang loop unroll(full)
    for (int r = 0; r < 2; ++r) {
      if (i1 < 96) {
        *(threadgroup uint4*)&A_shared[r * 1536 + i0 * 96 + i1] = *(device const uint4*)&A[(by * 32 + i0) * 96 + i1 + r * 1536];
      }
    }
  }
  else {
    const int i0_1 = tid >> 3;
    const int i1_1 = (tid & 7) * 16;
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 96) {
        if (by * 32 + (r_1 * 16 + i0_1) < 33) {
          *(threadgroup uint4*)&A_shared[r_1 * 1536 + i0_1 * 96 + i1_1] = *(device const uint4*)&A[(by * 32 + i0_1) * 96 + i1_1 + r_1 * 1536];
        }
        else {
          alignas(16) uchar A_shared_v[16];
          #pragma clang loop unroll(full)
          for (int v = 0; v < 16; ++v) {
            A_shared_v[v] = 0;
          }
          *(threadgroup uint4*)&A_shared[r_1 * 1536 + i0_1 * 96 + i1_1] = *(thread const uint4*)&A_shared_v[0];
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
        *(threadgroup uint4*)&B_shared[r_2 * 1536 + i0_2 * 96 + i1_2] = *(device const uint4*)&B[(bx * 32 + i0_2) * 96 + i1_2 + r_2 * 1536];
      }
    }
  }
  else {
    const int i0_3 = tid >> 3;
    const int i1_3 = (tid & 7) * 16;
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      if (i1_3 < 96) {
        if (bx * 32 + (r_3 * 16 + i0_3) < 40) {
          *(threadgroup uint4*)&B_shared[r_3 * 1536 + i0_3 * 96 + i1_3] = *(device const uint4*)&B[(bx * 32 + i0_3) * 96 + i1_3 + r_3 * 1536];
        }
        else {
          alignas(16) uchar B_shared_v[16];
          #pragma clang loop unroll(full)
          for (int v_1 = 0; v_1 < 16; ++v_1) {
            B_shared_v[v_1] = 0;
          }
          *(threadgroup uint4*)&B_shared[r_3 * 1536 + i0_3 * 96 + i1_3] = *(thread const uint4*)&B_shared_v[0];
        }
      }
    }
  }
  threadgroup float* const A_s = (threadgroup float*)(smem + 6144);
  threadgroup float* const B_s = (threadgroup float*)(smem + 6272);
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
  threadgroup uchar* const A_shared_view = (threadgroup uchar*)A_shared;
  threadgroup uchar* const B_shared_view = (threadgroup uchar*)B_shared;
  float fragment_1[8];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int lane = tid & 31;
  const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
  const int lane_column = ((lane >> 3) & 1) * 4 + (lane & 1) * 2;
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
      alignas(16) uchar A_shared_view_v[2];
      *(thread uchar2*)&A_shared_view_v[0] = *(threadgroup const uchar2*)&A_shared_view[a_tile * 768 + simd_row * 96 + lane_row * 96 + k_step * 8 + lane_column];
      #pragma clang loop unroll(full)
      for (int a_e = 0; a_e < 2; ++a_e) {
        a_values[a_tile * 2 + a_e] = (bfloat)decode_float8_e5m2(A_shared_view_v[a_e]);
      }
    }
    #pragma clang loop unroll(full)
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      #pragma clang loop unroll(full)
      for (int b_e = 0; b_e < 2; ++b_e) {
        b_values[b_e] = (bfloat)decode_float8_e5m2(B_shared_view[column_tile_1 * 768 + simd_column * 96 + lane_column * 96 + b_e * 96 + k_step * 8 + lane_row]);
      }
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
      for (int v_2 = 0; v_2 < 2; ++v_2) {
        fragment_1[r_4 * 4 + r_5 * 2 + v_2] = fragment_1[r_4 * 4 + r_5 * 2 + v_2] * (A_s[r_4 * 8 + i0_8] * B_s_v[v_2]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_6 = 0; r_6 < 2; ++r_6) {
    #pragma clang loop unroll(full)
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      #pragma clang loop unroll(full)
      for (int v_3 = 0; v_3 < 2; ++v_3) {
        C_local[r_6 * 4 + r_7 * 2 + v_3] = fragment_1[r_6 * 4 + r_7 * 2 + v_3];
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
        for (int v_4 = 0; v_4 < 2; ++v_4) {
          C_v[v_4] = (bfloat)C_local[r_8 * 4 + r_9 * 2 + v_4];
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
          for (int v_5 = 0; v_5 < 2; ++v_5) {
            C_v_1[v_5] = (bfloat)C_local[r_10 * 4 + r_11 * 2 + v_5];
          }
          *(device uchar4*)&C[(by * 32 + i0_10) * 40 + bx * 32 + i1_6 + r_10 * 320 + r_11 * 8] = *(thread const uchar4*)&C_v_1[0];
        }
      }
    }
  }
}
