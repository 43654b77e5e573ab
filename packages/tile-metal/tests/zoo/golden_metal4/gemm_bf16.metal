#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline bool matmul2d_16x32x16_f32_bf16_lanes(int lane) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, false, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
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
    known = known && (int)of_right[0] == across && (int)of_right[1] == down;
    known = known && (int)of_sum[0] == across && (int)of_sum[1] == down;
  }
  return simd_all(known);
}

static inline void matmul2d_16x32x16_f32_bf16(bool known, thread float* c, thread const bfloat* a, thread const bfloat* b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, false, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<bfloat, bfloat, float>();
  auto right = product.get_right_input_cooperative_tensor<bfloat, bfloat, float>();
  auto sum = product.get_destination_cooperative_tensor<
      remove_addrspace_t<decltype(left)>, remove_addrspace_t<decltype(right)>, float>();
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    left[i] = known ? a[i] : (bfloat)NAN;
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

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const bfloat* __restrict A [[buffer(0)]],
    device const bfloat* __restrict B [[buffer(1)]],
    device bfloat* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[2560];
  const bool known_lanes = matmul2d_16x32x16_f32_bf16_lanes((int)thread_position_in_threadgroup.x & 31);
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
  bfloat B_shared_ahead[8];
  if (bx < 1) {
    const int i0 = tid >> 2;
    const int i1 = (tid & 3) * 8;
    alignas(16) bfloat B_v[8];
    *(thread uint4*)&B_v[0] = *(device const uint4*)&B[(bx * 32 + i0) * 64 + i1];
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      B_shared_ahead[r_2] = B_v[r_2];
    }
  }
  else {
    const int i0_1 = tid >> 2;
    const int i1_1 = (tid & 3) * 8;
    if (bx * 32 + i0_1 < 56) {
      alignas(16) bfloat B_v_1[8];
      *(thread uint4*)&B_v_1[0] = *(device const uint4*)&B[(bx * 32 + i0_1) * 64 + i1_1];
      #pragma clang loop unroll(full)
      for (int r_3 = 0; r_3 < 8; ++r_3) {
        B_shared_ahead[r_3] = B_v_1[r_3];
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 8; ++r_4) {
        B_shared_ahead[r_4] = (bfloat)0.0f;
      }
    }
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup bfloat* const B_shared = (threadgroup bfloat*)smem;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_2 = tid >> 2;
    const int i1_2 = (tid & 3) * 8;
    alignas(16) bfloat B_shared_v[8];
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 8; ++r_5) {
      B_shared_v[r_5] = B_shared_ahead[r_5];
    }
    *(threadgroup uint4*)&B_shared[i0_2 * 40 + i1_2] = *(thread const uint4*)&B_shared_v[0];
    if (k + 1 < 2) {
      if (bx < 1) {
        const int i0_3 = tid >> 2;
        const int i1_3 = (tid & 3) * 8;
        alignas(16) bfloat B_v_2[8];
        *(thread uint4*)&B_v_2[0] = *(device const uint4*)&B[(bx * 32 + i0_3) * 64 + i1_3 + k * 32 + 32];
        #pragma clang loop unroll(full)
        for (int r_6 = 0; r_6 < 8; ++r_6) {
          B_shared_ahead[r_6] = B_v_2[r_6];
        }
      }
      else {
        const int i0_4 = tid >> 2;
        const int i1_4 = (tid & 3) * 8;
        if (bx * 32 + i0_4 < 56) {
          alignas(16) bfloat B_v_3[8];
          *(thread uint4*)&B_v_3[0] = *(device const uint4*)&B[(bx * 32 + i0_4) * 64 + i1_4 + k * 32 + 32];
          #pragma clang loop unroll(full)
          for (int r_7 = 0; r_7 < 8; ++r_7) {
            B_shared_ahead[r_7] = B_v_3[r_7];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int r_8 = 0; r_8 < 8; ++r_8) {
            B_shared_ahead[r_8] = (bfloat)0.0f;
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < 64) {
      const int lane = tid & 31;
      const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
      const int lane_column = ((lane >> 3) & 1) * 8 + (lane & 1) * 4;
      const int simd_row = (tid >> 5) * 16;
      const int simd_column = 0;
      if (by * 32 + 32 <= 48) {
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
          #pragma clang loop unroll(full)
          for (int b_e = 0; b_e < 4; ++b_e) {
            b_values[b_e] = B_shared[simd_column * 40 + lane_column * 40 + b_e * 40 + k_step * 16 + lane_row];
          }
          #pragma clang loop unroll(full)
          for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
            b_values[b_e_1 + 4] = B_shared[simd_column * 40 + lane_column * 40 + b_e_1 * 40 + k_step * 16 + lane_row + 8];
          }
          #pragma clang loop unroll(full)
          for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
            b_values[b_e_2 + 8] = B_shared[simd_column * 40 + lane_column * 40 + b_e_2 * 40 + k_step * 16 + lane_row + 640];
          }
          #pragma clang loop unroll(full)
          for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
            b_values[b_e_3 + 12] = B_shared[simd_column * 40 + lane_column * 40 + b_e_3 * 40 + k_step * 16 + lane_row + 648];
          }
          matmul2d_16x32x16_f32_bf16(known_lanes, &C_local[0], &a_values[0], &b_values[0]);
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
          #pragma clang loop unroll(full)
          for (int b_e_4 = 0; b_e_4 < 4; ++b_e_4) {
            b_values_1[b_e_4] = B_shared[simd_column * 40 + lane_column * 40 + b_e_4 * 40 + k_step_1 * 16 + lane_row];
          }
          #pragma clang loop unroll(full)
          for (int b_e_5 = 0; b_e_5 < 4; ++b_e_5) {
            b_values_1[b_e_5 + 4] = B_shared[simd_column * 40 + lane_column * 40 + b_e_5 * 40 + k_step_1 * 16 + lane_row + 8];
          }
          #pragma clang loop unroll(full)
          for (int b_e_6 = 0; b_e_6 < 4; ++b_e_6) {
            b_values_1[b_e_6 + 8] = B_shared[simd_column * 40 + lane_column * 40 + b_e_6 * 40 + k_step_1 * 16 + lane_row + 640];
          }
          #pragma clang loop unroll(full)
          for (int b_e_7 = 0; b_e_7 < 4; ++b_e_7) {
            b_values_1[b_e_7 + 12] = B_shared[simd_column * 40 + lane_column * 40 + b_e_7 * 40 + k_step_1 * 16 + lane_row + 648];
          }
          matmul2d_16x32x16_f32_bf16(known_lanes, &C_local[0], &a_values_1[0], &b_values_1[0]);
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_5 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_5 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
    if (tid < 64) {
      #pragma clang loop unroll(full)
      for (int r_9 = 0; r_9 < 2; ++r_9) {
        #pragma clang loop unroll(full)
        for (int r_10 = 0; r_10 < 2; ++r_10) {
          alignas(16) bfloat C_v[4];
          #pragma clang loop unroll(full)
          for (int v_1 = 0; v_1 < 4; ++v_1) {
            C_v[v_1] = (bfloat)C_local[r_9 * 8 + r_10 * 4 + v_1];
          }
          *(device uint2*)&C[(by * 32 + i0_5) * 56 + bx * 32 + i1_5 + r_10 * 448 + r_9 * 16] = *(thread const uint2*)&C_v[0];
        }
      }
    }
  }
  else {
    const int i0_6 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_6 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
    if (tid < 64) {
      #pragma clang loop unroll(full)
      for (int r_11 = 0; r_11 < 2; ++r_11) {
        #pragma clang loop unroll(full)
        for (int r_12 = 0; r_12 < 2; ++r_12) {
          if (by * 32 + (r_12 * 8 + i0_6) < 48 && bx * 32 + (r_11 * 16 + i1_6) < 56) {
            alignas(16) bfloat C_v_1[4];
            #pragma clang loop unroll(full)
            for (int v_2 = 0; v_2 < 4; ++v_2) {
              C_v_1[v_2] = (bfloat)C_local[r_11 * 8 + r_12 * 4 + v_2];
            }
            *(device uint2*)&C[(by * 32 + i0_6) * 56 + bx * 32 + i1_6 + r_12 * 448 + r_11 * 16] = *(thread const uint2*)&C_v_1[0];
          }
        }
      }
    }
  }
}
