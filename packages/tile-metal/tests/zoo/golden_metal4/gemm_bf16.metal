#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline void matmul2d_16x32x16_f32_bf16_tb(thread float* c, thread const bfloat* a, thread const bfloat* b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<bfloat, bfloat, float>();
  auto right = product.get_right_input_cooperative_tensor<bfloat, bfloat, float>();
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

static inline bool matmul2d_16x32x16_f32_bf16_tb_lanes(int lane) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<bfloat, bfloat, float>();
  auto right = product.get_right_input_cooperative_tensor<bfloat, bfloat, float>();
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
    known = known && (int)of_right[0] == column + (i & 3) && (int)of_right[1] == row + (i & 12) * 2;
    known = known && (int)of_sum[0] == across && (int)of_sum[1] == down;
  }
  return simd_all(known);
}

static inline void matmul2d_16x32x16_f32_bf16_tb_poison(bool known, thread float* c, int count) {
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
    device const bfloat* __restrict A [[buffer(0)]],
    device const bfloat* __restrict B [[buffer(1)]],
    device bfloat* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  const bool known_lanes = matmul2d_16x32x16_f32_bf16_tb_lanes((int)thread_position_in_threadgroup.x & 31);
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  float C_local[16];
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r = 0; r < 2; ++r) {
      #pragma clang loop unroll(full)
      for (int r_1 = 0; r_1 < 2; ++r_1) {
        #pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v) {
          C_local[r * 8 + r_1 * 4 + v] = 0.0f;
        }
      }
    }
  }
  for (int k = 0; k < 2; ++k) {
    if (tid < 64) {
      const int lane = tid & 31;
      const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
      const int lane_column = ((lane >> 3) & 1) * 8 + (lane & 1) * 4;
      const int simd_row = (tid >> 5) * 16;
      const int simd_column = 0;
      if (by * 32 + 32 <= 48 && bx * 32 + 32 <= 56) {
        bfloat a_values[8];
        bfloat b_values[16];
        #pragma clang loop unroll(full)
        for (int k_step = 0; k_step < 2; ++k_step) {
          alignas(16) bfloat A_v[4];
          *(thread uint2*)&A_v[0] = *(device const uint2*)&A[(by * 32 + simd_row + lane_row) * 64 + lane_column + k * 32 + k_step * 16];
          #pragma clang loop unroll(full)
          for (int a_e = 0; a_e < 4; ++a_e) {
            a_values[a_e] = A_v[a_e];
          }
          alignas(16) bfloat A_v_1[4];
          *(thread uint2*)&A_v_1[0] = *(device const uint2*)&A[(by * 32 + simd_row + lane_row) * 64 + lane_column + k * 32 + k_step * 16 + 512];
          #pragma clang loop unroll(full)
          for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
            a_values[a_e_1 + 4] = A_v_1[a_e_1];
          }
          alignas(16) bfloat B_v[4];
          *(thread uint2*)&B_v[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step * 16 + simd_column * 64];
          #pragma clang loop unroll(full)
          for (int b_e = 0; b_e < 4; ++b_e) {
            b_values[b_e] = B_v[b_e];
          }
          alignas(16) bfloat B_v_1[4];
          *(thread uint2*)&B_v_1[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step * 16 + (simd_column + 8) * 64];
          #pragma clang loop unroll(full)
          for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
            b_values[b_e_1 + 4] = B_v_1[b_e_1];
          }
          alignas(16) bfloat B_v_2[4];
          *(thread uint2*)&B_v_2[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step * 16 + (simd_column + 16) * 64];
          #pragma clang loop unroll(full)
          for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
            b_values[b_e_2 + 8] = B_v_2[b_e_2];
          }
          alignas(16) bfloat B_v_3[4];
          *(thread uint2*)&B_v_3[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step * 16 + (simd_column + 24) * 64];
          #pragma clang loop unroll(full)
          for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
            b_values[b_e_3 + 12] = B_v_3[b_e_3];
          }
          matmul2d_16x32x16_f32_bf16_tb(&C_local[0], &a_values[0], &b_values[0]);
        }
      }
      else {
        bfloat a_values_1[8];
        bfloat b_values_1[16];
        #pragma clang loop unroll(full)
        for (int k_step_1 = 0; k_step_1 < 2; ++k_step_1) {
          if (by * 32 + (simd_row + lane_row) < 48) {
            alignas(16) bfloat A_v_2[4];
            *(thread uint2*)&A_v_2[0] = *(device const uint2*)&A[(by * 32 + simd_row + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16];
            #pragma clang loop unroll(full)
            for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
              a_values_1[a_e_2] = A_v_2[a_e_2];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
              a_values_1[a_e_3] = (bfloat)0.0f;
            }
          }
          if (by * 32 + (simd_row + (lane_row + 8)) < 48) {
            alignas(16) bfloat A_v_3[4];
            *(thread uint2*)&A_v_3[0] = *(device const uint2*)&A[(by * 32 + simd_row + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16 + 512];
            #pragma clang loop unroll(full)
            for (int a_e_4 = 0; a_e_4 < 4; ++a_e_4) {
              a_values_1[a_e_4 + 4] = A_v_3[a_e_4];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int a_e_5 = 0; a_e_5 < 4; ++a_e_5) {
              a_values_1[a_e_5 + 4] = (bfloat)0.0f;
            }
          }
          alignas(16) bfloat B_v_4[4];
          *(thread uint2*)&B_v_4[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16 + simd_column * 64];
          #pragma clang loop unroll(full)
          for (int b_e_4 = 0; b_e_4 < 4; ++b_e_4) {
            b_values_1[b_e_4] = B_v_4[b_e_4];
          }
          alignas(16) bfloat B_v_5[4];
          *(thread uint2*)&B_v_5[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16 + (simd_column + 8) * 64];
          #pragma clang loop unroll(full)
          for (int b_e_5 = 0; b_e_5 < 4; ++b_e_5) {
            b_values_1[b_e_5 + 4] = B_v_5[b_e_5];
          }
          alignas(16) bfloat B_v_6[4];
          *(thread uint2*)&B_v_6[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16 + (simd_column + 16) * 64];
          #pragma clang loop unroll(full)
          for (int b_e_6 = 0; b_e_6 < 4; ++b_e_6) {
            b_values_1[b_e_6 + 8] = B_v_6[b_e_6];
          }
          if (bx * 32 + (simd_column + (lane_row + 24)) < 56) {
            alignas(16) bfloat B_v_7[4];
            *(thread uint2*)&B_v_7[0] = *(device const uint2*)&B[(bx * 32 + lane_row) * 64 + lane_column + k * 32 + k_step_1 * 16 + (simd_column + 24) * 64];
            #pragma clang loop unroll(full)
            for (int b_e_7 = 0; b_e_7 < 4; ++b_e_7) {
              b_values_1[b_e_7 + 12] = B_v_7[b_e_7];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int b_e_8 = 0; b_e_8 < 4; ++b_e_8) {
              b_values_1[b_e_8 + 12] = (bfloat)0.0f;
            }
          }
          matmul2d_16x32x16_f32_bf16_tb(&C_local[0], &a_values_1[0], &b_values_1[0]);
        }
      }
    }
  }
  matmul2d_16x32x16_f32_bf16_tb_poison(known_lanes, &C_local[0], 16);
  if (by < 1 && bx < 1) {
    const int i0 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
    if (tid < 64) {
      #pragma clang loop unroll(full)
      for (int r_2 = 0; r_2 < 2; ++r_2) {
        #pragma clang loop unroll(full)
        for (int r_3 = 0; r_3 < 2; ++r_3) {
          alignas(16) bfloat C_v[4];
          #pragma clang loop unroll(full)
          for (int v_1 = 0; v_1 < 4; ++v_1) {
            C_v[v_1] = (bfloat)C_local[r_2 * 8 + r_3 * 4 + v_1];
          }
          *(device uint2*)&C[(by * 32 + i0) * 56 + bx * 32 + i1 + r_3 * 448 + r_2 * 16] = *(thread const uint2*)&C_v[0];
        }
      }
    }
  }
  else {
    const int i0_1 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_1 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
    if (tid < 64) {
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 2; ++r_4) {
        #pragma clang loop unroll(full)
        for (int r_5 = 0; r_5 < 2; ++r_5) {
          if (by * 32 + (r_5 * 8 + i0_1) < 48 && bx * 32 + (r_4 * 16 + i1_1) < 56) {
            alignas(16) bfloat C_v_1[4];
            #pragma clang loop unroll(full)
            for (int v_2 = 0; v_2 < 4; ++v_2) {
              C_v_1[v_2] = (bfloat)C_local[r_4 * 8 + r_5 * 4 + v_2];
            }
            *(device uint2*)&C[(by * 32 + i0_1) * 56 + bx * 32 + i1_1 + r_5 * 448 + r_4 * 16] = *(thread const uint2*)&C_v_1[0];
          }
        }
      }
    }
  }
}
