#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
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

static inline bool matmul2d_16x32x16_f32_f16_lanes(int lane) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, false, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<half, half, float>();
  auto right = product.get_right_input_cooperative_tensor<half, half, float>();
  auto sum = product.get_destination_cooperative_tensor<
      remove_addrspace_t<decltype(left)>, remove_addrspace_t<decltype(right)>, float>();
  const int row = (lane & 16) / 4 + (lane & 7) / 2, column = (lane & 8) + (lane & 1) * 4;
  bool known = left.get_capacity() == 8 && right.get_capacity() == 16 && sum.get_capacity() == 16;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 16; ++i) {
    const int down = row + (i & 4) * 2, across = column + (i & 3) + (i & 8) * 2;
    if (i < 8) {
      const auto at = left.get_multidimensional_index((ushort)i);
      known = known && (int)at[0] == across && (int)at[1] == down;
    }
    const auto of_right = right.get_multidimensional_index((ushort)i);
    const auto of_sum = sum.get_multidimensional_index((ushort)i);
    known = known && (int)of_right[0] == across && (int)of_right[1] == down;
    known = known && (int)of_sum[0] == across && (int)of_sum[1] == down;
  }
  return simd_all(known);
}

static inline void matmul2d_16x32x16_f32_f16(bool known, thread float* c, thread const half* a, thread const half* b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, false, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<half, half, float>();
  auto right = product.get_right_input_cooperative_tensor<half, half, float>();
  auto sum = product.get_destination_cooperative_tensor<
      remove_addrspace_t<decltype(left)>, remove_addrspace_t<decltype(right)>, float>();
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    left[i] = known ? a[i] : (half)NAN;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    right[i] = b[i];
    sum[i] = c[i];
  }
  product.run(left, right, sum);
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    c[i] = sum[i];
  }
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
  const bool known_lanes = matmul2d_16x32x16_f32_f16_lanes((int)thread_position_in_threadgroup.x & 31);
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
  float C_local[16];
  threadgroup uchar* const A_shared_view = (threadgroup uchar*)A_shared;
  threadgroup uchar* const B_shared_view = (threadgroup uchar*)B_shared;
  float fragment_1[16];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 64) {
    const int lane = tid & 31;
    const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
    const int lane_column = ((lane >> 3) & 1) * 8 + (lane & 1) * 4;
    const int simd_row = (tid >> 5) * 16;
    const int simd_column = 0;
    #pragma clang loop unroll(full)
    for (int across = 0; across < 2; ++across) {
      #pragma clang loop unroll(full)
      for (int down = 0; down < 2; ++down) {
        #pragma clang loop unroll(full)
        for (int e = 0; e < 4; ++e) {
          fragment_1[across * 8 + down * 4 + e] = 0.0f;
        }
      }
    }
    half a_values[8];
    half b_values[16];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      alignas(16) uchar A_shared_view_v[4];
      *(thread uchar4*)&A_shared_view_v[0] = *(threadgroup const uchar4*)&A_shared_view[simd_row * 64 + lane_row * 64 + k_step * 16 + lane_column];
      #pragma clang loop unroll(full)
      for (int a_e = 0; a_e < 4; ++a_e) {
        a_values[a_e] = (half)decode_float8_e4m3fn(A_shared_view_v[a_e]);
      }
      alignas(16) uchar A_shared_view_v_1[4];
      *(thread uchar4*)&A_shared_view_v_1[0] = *(threadgroup const uchar4*)&A_shared_view[simd_row * 64 + lane_row * 64 + k_step * 16 + lane_column + 512];
      #pragma clang loop unroll(full)
      for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
        a_values[a_e_1 + 4] = (half)decode_float8_e4m3fn(A_shared_view_v_1[a_e_1]);
      }
      #pragma clang loop unroll(full)
      for (int b_e = 0; b_e < 4; ++b_e) {
        b_values[b_e] = (half)decode_float8_e4m3fn(B_shared_view[simd_column * 64 + lane_column * 64 + b_e * 64 + k_step * 16 + lane_row]);
      }
      #pragma clang loop unroll(full)
      for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
        b_values[b_e_1 + 4] = (half)decode_float8_e4m3fn(B_shared_view[simd_column * 64 + lane_column * 64 + b_e_1 * 64 + k_step * 16 + lane_row + 8]);
      }
      #pragma clang loop unroll(full)
      for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
        b_values[b_e_2 + 8] = (half)decode_float8_e4m3fn(B_shared_view[simd_column * 64 + lane_column * 64 + b_e_2 * 64 + k_step * 16 + lane_row + 1024]);
      }
      #pragma clang loop unroll(full)
      for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
        b_values[b_e_3 + 12] = (half)decode_float8_e4m3fn(B_shared_view[simd_column * 64 + lane_column * 64 + b_e_3 * 64 + k_step * 16 + lane_row + 1032]);
      }
      matmul2d_16x32x16_f32_f16(known_lanes, &fragment_1[0], &a_values[0], &b_values[0]);
    }
  }
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r = 0; r < 2; ++r) {
      #pragma clang loop unroll(full)
      for (int r_1 = 0; r_1 < 2; ++r_1) {
        #pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v) {
          fragment_1[r * 8 + r_1 * 4 + v] = fragment_1[r * 8 + r_1 * 4 + v] * (A_s[0] * B_s[0]);
        }
      }
    }
  }
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma clang loop unroll(full)
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 4; ++v_1) {
          C_local[r_2 * 8 + r_3 * 4 + v_1] = fragment_1[r_2 * 8 + r_3 * 4 + v_1];
        }
      }
    }
  }
  const int i0_2 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_2 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        alignas(16) bfloat C_v[4];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 4; ++v_2) {
          C_v[v_2] = (bfloat)C_local[r_4 * 8 + r_5 * 4 + v_2];
        }
        *(device uint2*)&C[(by * 32 + i0_2) * 64 + bx * 32 + i1_2 + r_5 * 512 + r_4 * 16] = *(thread const uint2*)&C_v[0];
      }
    }
  }
}
