#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline void matmul2d_16x32x16_f32_f16(thread float* c, thread const half* a, thread const half* b) {
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
    left[i] = a[i];
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

static inline void matmul2d_16x32x16_f32_f16_poison(bool known, thread float* c, int count) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  if (!known) {
#pragma clang loop unroll(full)
    for (int i = 0; i < count; ++i) {
      c[i] = NAN;
    }
  }
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const half* __restrict A [[buffer(0)]],
    device const half* __restrict B [[buffer(1)]],
    device half* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const bool known_lanes = matmul2d_16x32x16_f32_f16_lanes((int)thread_position_in_threadgroup.x & 31);
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = 0;
  const int by = 0;
  float C_local[32];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma clang loop unroll(full)
      for (int r_2 = 0; r_2 < 2; ++r_2) {
        #pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v) {
          C_local[r * 16 + r_1 * 8 + r_2 * 4 + v] = 0.0f;
        }
      }
    }
  }
  for (int k = 0; k < 3; ++k) {
    const int lane = tid & 31;
    const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
    const int lane_column = ((lane >> 3) & 1) * 8 + (lane & 1) * 4;
    const int simd_row = ((tid >> 5) >> 1) * 32;
    const int simd_column = ((tid >> 5) & 1) * 32;
    half a_values[8];
    half b_values[16];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 2; ++k_step) {
      alignas(16) half B_v[4];
      *(thread uint2*)&B_v[0] = *(device const uint2*)&B[lane_row * 64 + simd_column + lane_column + k * 2048 + k_step * 1024 + bx * 64];
      #pragma clang loop unroll(full)
      for (int b_e = 0; b_e < 4; ++b_e) {
        b_values[b_e] = B_v[b_e];
      }
      alignas(16) half B_v_1[4];
      *(thread uint2*)&B_v_1[0] = *(device const uint2*)&B[lane_row * 64 + simd_column + lane_column + k * 2048 + k_step * 1024 + 512 + bx * 64];
      #pragma clang loop unroll(full)
      for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
        b_values[b_e_1 + 4] = B_v_1[b_e_1];
      }
      alignas(16) half B_v_2[4];
      *(thread uint2*)&B_v_2[0] = *(device const uint2*)&B[lane_row * 64 + simd_column + lane_column + k * 2048 + k_step * 1024 + bx * 64 + 16];
      #pragma clang loop unroll(full)
      for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
        b_values[b_e_2 + 8] = B_v_2[b_e_2];
      }
      alignas(16) half B_v_3[4];
      *(thread uint2*)&B_v_3[0] = *(device const uint2*)&B[lane_row * 64 + simd_column + lane_column + k * 2048 + k_step * 1024 + bx * 64 + 528];
      #pragma clang loop unroll(full)
      for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
        b_values[b_e_3 + 12] = B_v_3[b_e_3];
      }
      #pragma clang loop unroll(full)
      for (int row_tile = 0; row_tile < 2; ++row_tile) {
        alignas(16) half A_v[4];
        *(thread uint2*)&A_v[0] = *(device const uint2*)&A[(simd_row + lane_row) * 96 + lane_column + k * 32 + row_tile * 1536 + k_step * 16 + by * 6144];
        #pragma clang loop unroll(full)
        for (int a_e = 0; a_e < 4; ++a_e) {
          a_values[a_e] = A_v[a_e];
        }
        alignas(16) half A_v_1[4];
        *(thread uint2*)&A_v_1[0] = *(device const uint2*)&A[(simd_row + lane_row) * 96 + lane_column + k * 32 + row_tile * 1536 + k_step * 16 + (by * 64 + 8) * 96];
        #pragma clang loop unroll(full)
        for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
          a_values[a_e_1 + 4] = A_v_1[a_e_1];
        }
        matmul2d_16x32x16_f32_f16(&C_local[row_tile * 16], &a_values[0], &b_values[0]);
      }
    }
  }
  matmul2d_16x32x16_f32_f16_poison(known_lanes, &C_local[0], 32);
  const int i0 = (tid >> 6) * 32 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1 = ((tid & 63) >> 5) * 32 + ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    #pragma clang loop unroll(full)
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        alignas(16) half C_v[4];
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 4; ++v_1) {
          C_v[v_1] = (half)C_local[r_3 * 16 + r_4 * 8 + r_5 * 4 + v_1];
        }
        *(device uint2*)&C[i0 * 64 + i1 + (r_3 * 16 + r_5 * 8) * 64 + r_4 * 16 + by * 4096 + bx * 64] = *(thread const uint2*)&C_v[0];
      }
    }
  }
}
