#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline uint decode_pair_float8_e4m3fn(ushort x) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const uint codes = (((uint)x << 8) | ((uint)x << 16)) & 0xff00ff00u;
  const uint size = (codes & 0x7f007f00u) >> 1;
  const uint nan = ((size + 0x00800080u) & 0x40004000u) >> 1;
  const half2 wide = as_type<half2>(size + 0x20002000u);
  const half low = fmin(wide.x, fma(wide.x, (half)2.0f, (half)-0.015625f));
  const half high = fmin(wide.y, fma(wide.y, (half)2.0f, (half)-0.015625f));
  return as_type<uint>(half2(low, high)) | (codes & 0x80008000u) | nan;
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

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const uchar* __restrict A [[buffer(0)]],
    device const float* __restrict A_scale [[buffer(1)]],
    device const uchar* __restrict B [[buffer(2)]],
    device const float* __restrict B_scale [[buffer(3)]],
    device bfloat* __restrict C [[buffer(4)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[9236];
  const bool known_lanes = matmul2d_16x32x16_f32_f16_tb_lanes((int)thread_position_in_threadgroup.x & 31);
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup float* const A_s = (threadgroup float*)(smem + 9216);
  threadgroup float* const B_s = (threadgroup float*)(smem + 9232);
  if (tid == 0) {
    A_s[0] = A_scale[0];
    B_s[0] = B_scale[0];
  }
  float C_local[16];
  device const uchar* const A_view = (device const uchar*)A;
  device const uchar* const B_view = (device const uchar*)B;
  float fragment_1[16];
  threadgroup half* const shared = (threadgroup half*)smem;
  threadgroup half* const shared_1 = (threadgroup half*)(smem + 4608);
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 16;
  alignas(16) uchar A_view_v[16];
  thread ushort* const A_view_v_pairs = (thread ushort*)A_view_v;
  alignas(16) half shared_v[16];
  thread uint* const shared_v_pairs = (thread uint*)shared_v;
  *(thread uint4*)&A_view_v[0] = *(device const uint4*)&A_view[(by * 32 + i0) * 64 + i1];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 8; ++r) {
    shared_v_pairs[r] = decode_pair_float8_e4m3fn(A_view_v_pairs[r]);
  }
  *(threadgroup uint4*)&shared[i0 * 72 + i1] = *(thread const uint4*)&shared_v[0];
  *(threadgroup uint4*)&shared[i0 * 72 + i1 + 8] = *(thread const uint4*)&shared_v[8];
  const int i0_1 = tid >> 2;
  const int i1_1 = (tid & 3) * 16;
  alignas(16) uchar B_view_v[16];
  thread ushort* const B_view_v_pairs = (thread ushort*)B_view_v;
  alignas(16) half shared_1_v[16];
  thread uint* const shared_1_v_pairs = (thread uint*)shared_1_v;
  *(thread uint4*)&B_view_v[0] = *(device const uint4*)&B_view[(bx * 32 + i0_1) * 64 + i1_1];
  #pragma clang loop unroll(full)
  for (int r_1 = 0; r_1 < 8; ++r_1) {
    shared_1_v_pairs[r_1] = decode_pair_float8_e4m3fn(B_view_v_pairs[r_1]);
  }
  *(threadgroup uint4*)&shared_1[i0_1 * 72 + i1_1] = *(thread const uint4*)&shared_1_v[0];
  *(threadgroup uint4*)&shared_1[i0_1 * 72 + i1_1 + 8] = *(thread const uint4*)&shared_1_v[8];
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
      alignas(16) half shared_v_1[4];
      *(thread uint2*)&shared_v_1[0] = *(threadgroup const uint2*)&shared[simd_row * 72 + lane_row * 72 + k_step * 16 + lane_column];
      #pragma clang loop unroll(full)
      for (int a_e = 0; a_e < 4; ++a_e) {
        a_values[a_e] = shared_v_1[a_e];
      }
      alignas(16) half shared_v_2[4];
      *(thread uint2*)&shared_v_2[0] = *(threadgroup const uint2*)&shared[simd_row * 72 + lane_row * 72 + k_step * 16 + lane_column + 576];
      #pragma clang loop unroll(full)
      for (int a_e_1 = 0; a_e_1 < 4; ++a_e_1) {
        a_values[a_e_1 + 4] = shared_v_2[a_e_1];
      }
      alignas(16) half shared_1_v_1[4];
      *(thread uint2*)&shared_1_v_1[0] = *(threadgroup const uint2*)&shared_1[simd_column * 72 + lane_row * 72 + k_step * 16 + lane_column];
      #pragma clang loop unroll(full)
      for (int b_e = 0; b_e < 4; ++b_e) {
        b_values[b_e] = shared_1_v_1[b_e];
      }
      alignas(16) half shared_1_v_2[4];
      *(thread uint2*)&shared_1_v_2[0] = *(threadgroup const uint2*)&shared_1[simd_column * 72 + lane_row * 72 + k_step * 16 + lane_column + 576];
      #pragma clang loop unroll(full)
      for (int b_e_1 = 0; b_e_1 < 4; ++b_e_1) {
        b_values[b_e_1 + 4] = shared_1_v_2[b_e_1];
      }
      alignas(16) half shared_1_v_3[4];
      *(thread uint2*)&shared_1_v_3[0] = *(threadgroup const uint2*)&shared_1[simd_column * 72 + lane_row * 72 + k_step * 16 + lane_column + 1152];
      #pragma clang loop unroll(full)
      for (int b_e_2 = 0; b_e_2 < 4; ++b_e_2) {
        b_values[b_e_2 + 8] = shared_1_v_3[b_e_2];
      }
      alignas(16) half shared_1_v_4[4];
      *(thread uint2*)&shared_1_v_4[0] = *(threadgroup const uint2*)&shared_1[simd_column * 72 + lane_row * 72 + k_step * 16 + lane_column + 1728];
      #pragma clang loop unroll(full)
      for (int b_e_3 = 0; b_e_3 < 4; ++b_e_3) {
        b_values[b_e_3 + 12] = shared_1_v_4[b_e_3];
      }
      matmul2d_16x32x16_f32_f16_tb(&fragment_1[0], &a_values[0], &b_values[0]);
    }
  }
  matmul2d_16x32x16_f32_f16_tb_poison(known_lanes, &fragment_1[0], 16);
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma clang loop unroll(full)
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        #pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v) {
          fragment_1[r_2 * 8 + r_3 * 4 + v] = fragment_1[r_2 * 8 + r_3 * 4 + v] * (A_s[0] * B_s[0]);
        }
      }
    }
  }
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 4; ++v_1) {
          C_local[r_4 * 8 + r_5 * 4 + v_1] = fragment_1[r_4 * 8 + r_5 * 4 + v_1];
        }
      }
    }
  }
  const int i0_2 = ((tid & 63) >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_2 = ((tid & 15) >> 3) * 8 + (tid & 1) * 4;
  if (tid < 64) {
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 2; ++r_7) {
        alignas(16) bfloat C_v[4];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 4; ++v_2) {
          C_v[v_2] = (bfloat)C_local[r_6 * 8 + r_7 * 4 + v_2];
        }
        *(device uint2*)&C[(by * 32 + i0_2) * 64 + bx * 32 + i1_2 + r_7 * 512 + r_6 * 16] = *(thread const uint2*)&C_v[0];
      }
    }
  }
}
