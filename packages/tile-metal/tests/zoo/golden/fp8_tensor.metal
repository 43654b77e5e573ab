#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline float decode_float8_e4m3fn(uchar x) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const uint code = x;
  const uint size = code & 127u;
  const uint t = as_type<uint>((float)(int)size * 0.001953125f);
  const uint t_1 = (size << 20u) + 1006632960u;
  const uint t_2 = size < 8u ? t : t_1;
  return as_type<float>((size > 126u ? 2143289344u : t_2) | ((code & 128u) << 24u));
}

static inline void simdgroup_multiply_accumulate_f32_f16(thread float* c, thread const half* a, thread const half* b) {
  simdgroup_matrix<float, 8, 8> sum;
  simdgroup_matrix<half, 8, 8> left, right;
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
  alignas(16) threadgroup uchar smem[4116];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup uchar* const A_shared = (threadgroup uchar*)smem;
  threadgroup uchar* const B_shared = (threadgroup uchar*)(smem + 2048);
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 16;
  *(threadgroup uint4*)&A_shared[i0 * 64 + i1] = *(device const uint4*)&A[(by * 32 + i0) * 64 + i1];
  const int i0_1 = tid >> 2;
  const int i1_1 = (tid & 3) * 16;
  *(threadgroup uint4*)&B_shared[i0_1 * 64 + i1_1] = *(device const uint4*)&B[(bx * 32 + i0_1) * 64 + i1_1];
  threadgroup float* const A_s = (threadgroup float*)(smem + 4096);
  threadgroup float* const B_s = (threadgroup float*)(smem + 4112);
  if (tid == 0) {
    A_s[0] = A_scale[0];
    B_s[0] = B_scale[0];
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
  half a_values[4];
  half b_values[2];
  #pragma clang loop unroll(full)
  for (int k_step = 0; k_step < 8; ++k_step) {
    #pragma clang loop unroll(full)
    for (int a_tile = 0; a_tile < 2; ++a_tile) {
      alignas(16) uchar A_shared_view_v[2];
      *(thread uchar2*)&A_shared_view_v[0] = *(threadgroup const uchar2*)&A_shared_view[a_tile * 512 + simd_row * 64 + lane_row * 64 + k_step * 8 + lane_column];
      #pragma clang loop unroll(full)
      for (int a_e = 0; a_e < 2; ++a_e) {
        a_values[a_tile * 2 + a_e] = (half)decode_float8_e4m3fn(A_shared_view_v[a_e]);
      }
    }
    #pragma clang loop unroll(full)
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      #pragma clang loop unroll(full)
      for (int b_e = 0; b_e < 2; ++b_e) {
        b_values[b_e] = (half)decode_float8_e4m3fn(B_shared_view[column_tile_1 * 512 + simd_column * 64 + lane_column * 64 + b_e * 64 + k_step * 8 + lane_row]);
      }
      #pragma clang loop unroll(full)
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        simdgroup_multiply_accumulate_f32_f16(&fragment_1[row_tile_1 * 4 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[0]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        fragment_1[r * 4 + r_1 * 2 + v] = fragment_1[r * 4 + r_1 * 2 + v] * (A_s[0] * B_s[0]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_local[r_2 * 4 + r_3 * 2 + v_1] = fragment_1[r_2 * 4 + r_3 * 2 + v_1];
      }
    }
  }
  const int i0_2 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_2 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      alignas(16) bfloat C_v[2];
      #pragma clang loop unroll(full)
      for (int v_2 = 0; v_2 < 2; ++v_2) {
        C_v[v_2] = (bfloat)C_local[r_4 * 4 + r_5 * 2 + v_2];
      }
      *(device uchar4*)&C[(by * 32 + i0_2) * 64 + bx * 32 + i1_2 + r_4 * 512 + r_5 * 8] = *(thread const uchar4*)&C_v[0];
    }
  }
}
