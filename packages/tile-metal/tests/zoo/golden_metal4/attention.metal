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

static inline void matmul2d_16x32x16_f32_f16_tb(thread float* c, thread const half* a, thread const half* b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
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

static inline bool matmul2d_16x32x16_f32_f16_tb_lanes(int lane) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
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
    known = known && (int)of_right[0] == column + (i & 3) && (int)of_right[1] == row + (i & 12) * 2;
    known = known && (int)of_sum[0] == across && (int)of_sum[1] == down;
  }
  return simd_all(known);
}

static inline void matmul2d_16x32x16_f32_f16_tb_poison(bool known, thread float* c, int count) {
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

static inline float max_f32(float a, float b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const int x = as_type<int>(a), y = as_type<int>(b);
  return b != b || (a == a && (x > y) != ((x & y) < 0)) ? a : b;
}

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const half* __restrict Q [[buffer(0)]],
    device const half* __restrict K [[buffer(1)]],
    device const half* __restrict V [[buffer(2)]],
    device half* __restrict Output [[buffer(3)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[5120];
  const bool known_lanes = matmul2d_16x32x16_f32_f16_tb_lanes((int)thread_position_in_threadgroup.x & 31);
  const bool known_lanes_1 = matmul2d_16x32x16_f32_f16_lanes((int)thread_position_in_threadgroup.x & 31);
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = 0;
  const int by = 0;
  const int bz = 0;
  threadgroup half* const Q_shared = (threadgroup half*)smem;
  float scores[32];
  half weights[32];
  float output[16];
  float top[2];
  float top_before[2];
  float correction[2];
  float row_sum[2];
  float total[2];
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 8;
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    *(threadgroup uint4*)&Q_shared[r * 1280 + i0 * 40 + i1] = *(device const uint4*)&Q[i0 * 32 + i1 + r * 1024 + bz * 2048 + by * 2048 + bx * 2048];
  }
  #pragma clang loop unroll(full)
  for (int r_1 = 0; r_1 < 2; ++r_1) {
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v) {
        output[r_1 * 8 + r_2 * 4 + v] = 0.0f;
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    total[r_3] = 0.0f;
  }
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    top[r_4] = as_type<float>(0xff800000u);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int n = 0; n < 2; ++n) {
    const int lane = tid & 31;
    const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
    const int lane_column = ((lane >> 3) & 1) * 8 + (lane & 1) * 4;
    const int simd_row = (tid >> 5) * 16;
    const int simd_column = 0;
    if (n * 64 + 64 <= 96) {
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 2; ++column_tile) {
        #pragma clang loop unroll(full)
        for (int across = 0; across < 2; ++across) {
          #pragma clang loop unroll(full)
          for (int down = 0; down < 2; ++down) {
            #pragma clang loop unroll(full)
            for (int e = 0; e < 4; ++e) {
              scores[column_tile * 16 + across * 8 + down * 4 + e] = 0.0f;
            }
          }
        }
      }
      half a_values[8];
      half b_values[16];
      #pragma clang loop unroll(full)
      for (int k_step = 0; k_step < 2; ++k_step) {
        alignas(16) half Q_shared_v[4];
        *(thread uint2*)&Q_shared_v[0] = *(threadgroup const uint2*)&Q_shared[simd_row * 40 + lane_row * 40 + k_step * 16 + lane_column];
        #pragma clang loop unroll(full)
        for (int a_e = 0; a_e < 4; ++a_e) {
          a_values[a_e] = Q_shared_v[a_e];
        }
        alignas(16) half Q_shared_v_1[4];
        *(thread uint2*)&Q_shared_v_1[0] = *(threadgroup const uint2*)&Q_shared[simd_row * 40 + lane_row * 40 + k_step * 16 + lane_column + 320];
        #pragma clang loop unroll(full)
        for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
          a_values[a_e_1 + 4] = Q_shared_v_1[a_e_1];
        }
        #pragma clang loop unroll(full)
        for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
          alignas(16) half K_v[4];
          *(thread uint2*)&K_v[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_1 * 1024 + k_step * 16 + bz * 3072 + by * 3072 + simd_column * 32];
          #pragma clang loop unroll(full)
          for (int b_e = 0; b_e < 4; ++b_e) {
            b_values[b_e] = K_v[b_e];
          }
          alignas(16) half K_v_1[4];
          *(thread uint2*)&K_v_1[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_1 * 1024 + k_step * 16 + bz * 3072 + by * 3072 + (simd_column + 8) * 32];
          #pragma clang loop unroll(full)
          for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
            b_values[b_e_1 + 4] = K_v_1[b_e_1];
          }
          alignas(16) half K_v_2[4];
          *(thread uint2*)&K_v_2[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_1 * 1024 + k_step * 16 + bz * 3072 + by * 3072 + (simd_column + 16) * 32];
          #pragma clang loop unroll(full)
          for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
            b_values[b_e_2 + 8] = K_v_2[b_e_2];
          }
          alignas(16) half K_v_3[4];
          *(thread uint2*)&K_v_3[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_1 * 1024 + k_step * 16 + bz * 3072 + by * 3072 + (simd_column + 24) * 32];
          #pragma clang loop unroll(full)
          for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
            b_values[b_e_3 + 12] = K_v_3[b_e_3];
          }
          matmul2d_16x32x16_f32_f16_tb(&scores[column_tile_1 * 16], &a_values[0], &b_values[0]);
        }
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int column_tile_2 = 0; column_tile_2 < 2; ++column_tile_2) {
        #pragma clang loop unroll(full)
        for (int across_1 = 0; across_1 < 2; ++across_1) {
          #pragma clang loop unroll(full)
          for (int down_1 = 0; down_1 < 2; ++down_1) {
            #pragma clang loop unroll(full)
            for (int e_1 = 0; e_1 < 4; ++e_1) {
              scores[column_tile_2 * 16 + across_1 * 8 + down_1 * 4 + e_1] = 0.0f;
            }
          }
        }
      }
      half a_values_1[8];
      half b_values_1[16];
      #pragma clang loop unroll(full)
      for (int k_step_1 = 0; k_step_1 < 2; ++k_step_1) {
        alignas(16) half Q_shared_v_2[4];
        *(thread uint2*)&Q_shared_v_2[0] = *(threadgroup const uint2*)&Q_shared[simd_row * 40 + lane_row * 40 + k_step_1 * 16 + lane_column];
        #pragma clang loop unroll(full)
        for (int a_e_2 = 0; a_e_2 < 4; ++a_e_2) {
          a_values_1[a_e_2] = Q_shared_v_2[a_e_2];
        }
        alignas(16) half Q_shared_v_3[4];
        *(thread uint2*)&Q_shared_v_3[0] = *(threadgroup const uint2*)&Q_shared[simd_row * 40 + lane_row * 40 + k_step_1 * 16 + lane_column + 320];
        #pragma clang loop unroll(full)
        for (int a_e_3 = 0; a_e_3 < 4; ++a_e_3) {
          a_values_1[a_e_3 + 4] = Q_shared_v_3[a_e_3];
        }
        #pragma clang loop unroll(full)
        for (int column_tile_3 = 0; column_tile_3 < 2; ++column_tile_3) {
          if (n * 64 + (simd_column + column_tile_3 * 32 + lane_row) < 96) {
            alignas(16) half K_v_4[4];
            *(thread uint2*)&K_v_4[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_3 * 1024 + k_step_1 * 16 + bz * 3072 + by * 3072 + simd_column * 32];
            #pragma clang loop unroll(full)
            for (int b_e_4 = 0; b_e_4 < 4; ++b_e_4) {
              b_values_1[b_e_4] = K_v_4[b_e_4];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int b_e_5 = 0; b_e_5 < 4; ++b_e_5) {
              b_values_1[b_e_5] = (half)0.0f;
            }
          }
          if (n * 64 + (simd_column + column_tile_3 * 32 + (lane_row + 8)) < 96) {
            alignas(16) half K_v_5[4];
            *(thread uint2*)&K_v_5[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_3 * 1024 + k_step_1 * 16 + bz * 3072 + by * 3072 + (simd_column + 8) * 32];
            #pragma clang loop unroll(full)
            for (int b_e_6 = 0; b_e_6 < 4; ++b_e_6) {
              b_values_1[b_e_6 + 4] = K_v_5[b_e_6];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int b_e_7 = 0; b_e_7 < 4; ++b_e_7) {
              b_values_1[b_e_7 + 4] = (half)0.0f;
            }
          }
          if (n * 64 + (simd_column + column_tile_3 * 32 + (lane_row + 16)) < 96) {
            alignas(16) half K_v_6[4];
            *(thread uint2*)&K_v_6[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_3 * 1024 + k_step_1 * 16 + bz * 3072 + by * 3072 + (simd_column + 16) * 32];
            #pragma clang loop unroll(full)
            for (int b_e_8 = 0; b_e_8 < 4; ++b_e_8) {
              b_values_1[b_e_8 + 8] = K_v_6[b_e_8];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int b_e_9 = 0; b_e_9 < 4; ++b_e_9) {
              b_values_1[b_e_9 + 8] = (half)0.0f;
            }
          }
          if (n * 64 + (simd_column + column_tile_3 * 32 + (lane_row + 24)) < 96) {
            alignas(16) half K_v_7[4];
            *(thread uint2*)&K_v_7[0] = *(device const uint2*)&K[lane_row * 32 + lane_column + n * 2048 + column_tile_3 * 1024 + k_step_1 * 16 + bz * 3072 + by * 3072 + (simd_column + 24) * 32];
            #pragma clang loop unroll(full)
            for (int b_e_10 = 0; b_e_10 < 4; ++b_e_10) {
              b_values_1[b_e_10 + 12] = K_v_7[b_e_10];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int b_e_11 = 0; b_e_11 < 4; ++b_e_11) {
              b_values_1[b_e_11 + 12] = (half)0.0f;
            }
          }
          matmul2d_16x32x16_f32_f16_tb(&scores[column_tile_3 * 16], &a_values_1[0], &b_values_1[0]);
        }
      }
    }
    matmul2d_16x32x16_f32_f16_tb_poison(known_lanes, &scores[0], 32);
    const int i = (tid >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int j = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
    if (n * 64 + (48 + j + 3) < 96 && bx * 64 + i + 32 >= n * 64 + (48 + j + 3)) {
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 4; ++r_5) {
        #pragma clang loop unroll(full)
        for (int r_6 = 0; r_6 < 2; ++r_6) {
          #pragma clang loop unroll(full)
          for (int v_1 = 0; v_1 < 4; ++v_1) {
            scores[r_5 * 8 + r_6 * 4 + v_1] = scores[r_5 * 8 + r_6 * 4 + v_1] * 0.25503486f;
          }
        }
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 4; ++r_7) {
        #pragma clang loop unroll(full)
        for (int r_8 = 0; r_8 < 2; ++r_8) {
          #pragma clang loop unroll(full)
          for (int v_2 = 0; v_2 < 4; ++v_2) {
            scores[r_7 * 8 + r_8 * 4 + v_2] = n * 64 + (r_7 * 16 + j + v_2) < 96 && bx * 64 + (r_8 * 8 + i) + 32 >= n * 64 + (r_7 * 16 + j + v_2) ? scores[r_7 * 8 + r_8 * 4 + v_2] * 0.25503486f : as_type<float>(0xff800000u);
          }
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      top_before[r_9] = top[r_9];
    }
    float acc[2];
    int keys[2];
    #pragma clang loop unroll(full)
    for (int r_10 = 0; r_10 < 2; ++r_10) {
      acc[r_10] = as_type<float>(0xff800000u);
      #pragma clang loop unroll(full)
      for (int r_11 = 0; r_11 < 4; ++r_11) {
        #pragma clang loop unroll(full)
        for (int r_12 = 0; r_12 < 4; ++r_12) {
          acc[r_10] = fmax(acc[r_10], scores[r_11 * 8 + r_10 * 4 + r_12]);
        }
      }
      if ((as_type<uint>(acc[r_10]) & 2139095040u) == 0u) {
        int above;
        int below;
        above = as_type<int>(as_type<uint>(as_type<float>(0xff800000u)) + 8388608u);
        below = as_type<int>(as_type<uint>(as_type<float>(0xff800000u)));
        #pragma clang loop unroll(full)
        for (int r_13 = 0; r_13 < 4; ++r_13) {
          #pragma clang loop unroll(full)
          for (int r_14 = 0; r_14 < 4; ++r_14) {
            above = max(above, as_type<int>(as_type<uint>(scores[r_13 * 8 + r_10 * 4 + r_14]) + 8388608u));
            below = min(below, as_type<int>(as_type<uint>(scores[r_13 * 8 + r_10 * 4 + r_14])));
          }
        }
        acc[r_10] = as_type<float>(as_type<uint>(above >= 8388608 ? (int)((uint)above - 8388608u) : below));
      }
    }
    #pragma clang loop unroll(full)
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      const int bits = as_type<int>(acc[r_15]);
      keys[r_15] = bits ^ ((bits >> 31) & 2147483647);
    }
    #pragma clang loop unroll(full)
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      const int mine = keys[r_16];
      const int other = as_type<int>(simd_shuffle_xor(as_type<uint>(mine), (ushort)1));
      keys[r_16] = max(keys[r_16], other);
    }
    #pragma clang loop unroll(full)
    for (int r_17 = 0; r_17 < 2; ++r_17) {
      const int mine_1 = keys[r_17];
      const int other_1 = as_type<int>(simd_shuffle_xor(as_type<uint>(mine_1), (ushort)8));
      keys[r_17] = max(keys[r_17], other_1);
    }
    #pragma clang loop unroll(full)
    for (int r_18 = 0; r_18 < 2; ++r_18) {
      const int key = keys[r_18];
      acc[r_18] = as_type<float>(key ^ ((key >> 31) & 2147483647));
    }
    #pragma clang loop unroll(full)
    for (int r_19 = 0; r_19 < 2; ++r_19) {
      top[r_19] = max_f32(top[r_19], acc[r_19]);
    }
    #pragma clang loop unroll(full)
    for (int r_20 = 0; r_20 < 2; ++r_20) {
      correction[r_20] = precise::exp2(top_before[r_20] - top[r_20]);
    }
    #pragma clang loop unroll(full)
    for (int r_21 = 0; r_21 < 4; ++r_21) {
      #pragma clang loop unroll(full)
      for (int r_22 = 0; r_22 < 2; ++r_22) {
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 4; ++v_3) {
          scores[r_21 * 8 + r_22 * 4 + v_3] = precise::exp2(scores[r_21 * 8 + r_22 * 4 + v_3] - top[r_22]);
        }
      }
    }
    float acc_1[2];
    #pragma clang loop unroll(full)
    for (int r_23 = 0; r_23 < 2; ++r_23) {
      acc_1[r_23] = 0.0f;
      #pragma clang loop unroll(full)
      for (int r_24 = 0; r_24 < 4; ++r_24) {
        #pragma clang loop unroll(full)
        for (int r_25 = 0; r_25 < 4; ++r_25) {
          acc_1[r_23] = acc_1[r_23] + scores[r_24 * 8 + r_23 * 4 + r_25];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_26 = 0; r_26 < 2; ++r_26) {
      const float mine_2 = acc_1[r_26];
      const float other_2 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_2), (ushort)1));
      acc_1[r_26] = acc_1[r_26] + other_2;
    }
    #pragma clang loop unroll(full)
    for (int r_27 = 0; r_27 < 2; ++r_27) {
      const float mine_3 = acc_1[r_27];
      const float other_3 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_3), (ushort)8));
      acc_1[r_27] = acc_1[r_27] + other_3;
    }
    #pragma clang loop unroll(full)
    for (int r_28 = 0; r_28 < 2; ++r_28) {
      row_sum[r_28] = acc_1[r_28];
    }
    #pragma clang loop unroll(full)
    for (int r_29 = 0; r_29 < 2; ++r_29) {
      total[r_29] = total[r_29] * correction[r_29] + row_sum[r_29];
    }
    #pragma clang loop unroll(full)
    for (int r_30 = 0; r_30 < 4; ++r_30) {
      #pragma clang loop unroll(full)
      for (int r_31 = 0; r_31 < 2; ++r_31) {
        #pragma clang loop unroll(full)
        for (int v_4 = 0; v_4 < 4; ++v_4) {
          weights[r_30 * 8 + r_31 * 4 + v_4] = (half)scores[r_30 * 8 + r_31 * 4 + v_4];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_32 = 0; r_32 < 2; ++r_32) {
      #pragma clang loop unroll(full)
      for (int r_33 = 0; r_33 < 2; ++r_33) {
        #pragma clang loop unroll(full)
        for (int v_5 = 0; v_5 < 4; ++v_5) {
          output[r_32 * 8 + r_33 * 4 + v_5] = output[r_32 * 8 + r_33 * 4 + v_5] * correction[r_33];
        }
      }
    }
    const int lane_1 = tid & 31;
    const int lane_row_1 = (lane_1 >> 4) * 4 + ((lane_1 & 7) >> 1);
    const int lane_column_1 = ((lane_1 >> 3) & 1) * 8 + (lane_1 & 1) * 4;
    const int simd_column_1 = 0;
    if (n * 64 + 64 <= 96) {
      half b_values_2[16];
      #pragma clang loop unroll(full)
      for (int k_step_2 = 0; k_step_2 < 4; ++k_step_2) {
        alignas(16) half V_v[4];
        *(thread uint2*)&V_v[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_2 * 512 + bz * 3072 + by * 3072 + simd_column_1];
        #pragma clang loop unroll(full)
        for (int b_e_12 = 0; b_e_12 < 4; ++b_e_12) {
          b_values_2[b_e_12] = V_v[b_e_12];
        }
        alignas(16) half V_v_1[4];
        *(thread uint2*)&V_v_1[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_2 * 512 + bz * 3072 + by * 3072 + 256 + simd_column_1];
        #pragma clang loop unroll(full)
        for (int b_e_13 = 0; b_e_13 < 4; ++b_e_13) {
          b_values_2[b_e_13 + 4] = V_v_1[b_e_13];
        }
        alignas(16) half V_v_2[4];
        *(thread uint2*)&V_v_2[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_2 * 512 + bz * 3072 + by * 3072 + simd_column_1 + 16];
        #pragma clang loop unroll(full)
        for (int b_e_14 = 0; b_e_14 < 4; ++b_e_14) {
          b_values_2[b_e_14 + 8] = V_v_2[b_e_14];
        }
        alignas(16) half V_v_3[4];
        *(thread uint2*)&V_v_3[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_2 * 512 + bz * 3072 + by * 3072 + simd_column_1 + 272];
        #pragma clang loop unroll(full)
        for (int b_e_15 = 0; b_e_15 < 4; ++b_e_15) {
          b_values_2[b_e_15 + 12] = V_v_3[b_e_15];
        }
        matmul2d_16x32x16_f32_f16(&output[0], &weights[k_step_2 * 8], &b_values_2[0]);
      }
    }
    else {
      half b_values_3[16];
      #pragma clang loop unroll(full)
      for (int k_step_3 = 0; k_step_3 < 4; ++k_step_3) {
        if (n * 64 + (lane_row_1 + k_step_3 * 16) < 96) {
          alignas(16) half V_v_4[4];
          *(thread uint2*)&V_v_4[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_3 * 512 + bz * 3072 + by * 3072 + simd_column_1];
          #pragma clang loop unroll(full)
          for (int b_e_16 = 0; b_e_16 < 4; ++b_e_16) {
            b_values_3[b_e_16] = V_v_4[b_e_16];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int b_e_17 = 0; b_e_17 < 4; ++b_e_17) {
            b_values_3[b_e_17] = (half)0.0f;
          }
        }
        if (n * 64 + (lane_row_1 + 8 + k_step_3 * 16) < 96) {
          alignas(16) half V_v_5[4];
          *(thread uint2*)&V_v_5[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_3 * 512 + bz * 3072 + by * 3072 + 256 + simd_column_1];
          #pragma clang loop unroll(full)
          for (int b_e_18 = 0; b_e_18 < 4; ++b_e_18) {
            b_values_3[b_e_18 + 4] = V_v_5[b_e_18];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int b_e_19 = 0; b_e_19 < 4; ++b_e_19) {
            b_values_3[b_e_19 + 4] = (half)0.0f;
          }
        }
        if (n * 64 + (lane_row_1 + k_step_3 * 16) < 96) {
          alignas(16) half V_v_6[4];
          *(thread uint2*)&V_v_6[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_3 * 512 + bz * 3072 + by * 3072 + simd_column_1 + 16];
          #pragma clang loop unroll(full)
          for (int b_e_20 = 0; b_e_20 < 4; ++b_e_20) {
            b_values_3[b_e_20 + 8] = V_v_6[b_e_20];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int b_e_21 = 0; b_e_21 < 4; ++b_e_21) {
            b_values_3[b_e_21 + 8] = (half)0.0f;
          }
        }
        if (n * 64 + (lane_row_1 + 8 + k_step_3 * 16) < 96) {
          alignas(16) half V_v_7[4];
          *(thread uint2*)&V_v_7[0] = *(device const uint2*)&V[lane_row_1 * 32 + lane_column_1 + n * 2048 + k_step_3 * 512 + bz * 3072 + by * 3072 + simd_column_1 + 272];
          #pragma clang loop unroll(full)
          for (int b_e_22 = 0; b_e_22 < 4; ++b_e_22) {
            b_values_3[b_e_22 + 12] = V_v_7[b_e_22];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int b_e_23 = 0; b_e_23 < 4; ++b_e_23) {
            b_values_3[b_e_23 + 12] = (half)0.0f;
          }
        }
        matmul2d_16x32x16_f32_f16(&output[0], &weights[k_step_3 * 8], &b_values_3[0]);
      }
    }
    matmul2d_16x32x16_f32_f16_poison(known_lanes_1, &output[0], 16);
  }
  #pragma clang loop unroll(full)
  for (int r_34 = 0; r_34 < 2; ++r_34) {
    #pragma clang loop unroll(full)
    for (int r_35 = 0; r_35 < 2; ++r_35) {
      #pragma clang loop unroll(full)
      for (int v_6 = 0; v_6 < 4; ++v_6) {
        output[r_34 * 8 + r_35 * 4 + v_6] = output[r_34 * 8 + r_35 * 4 + v_6] / total[r_35];
      }
    }
  }
  const int i0_1 = (tid >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_1 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
  #pragma clang loop unroll(full)
  for (int r_36 = 0; r_36 < 2; ++r_36) {
    #pragma clang loop unroll(full)
    for (int r_37 = 0; r_37 < 2; ++r_37) {
      alignas(16) half Output_v[4];
      #pragma clang loop unroll(full)
      for (int v_7 = 0; v_7 < 4; ++v_7) {
        Output_v[v_7] = (half)output[r_36 * 8 + r_37 * 4 + v_7];
      }
      *(device uint2*)&Output[i0_1 * 32 + i1_1 + r_37 * 256 + r_36 * 16 + bz * 2048 + by * 2048 + bx * 2048] = *(thread const uint2*)&Output_v[0];
    }
  }
}
