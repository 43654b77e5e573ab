#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const half* __restrict X [[buffer(0)]],
    device const half* __restrict W [[buffer(1)]],
    device half* __restrict Y [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  float x[4];
  float square[4];
  float total;
  if (bx < 2) {
    const int i0 = tid / 32;
    const int i1 = (tid % 32) * 4;
    alignas(16) half X_v[4];
    *(thread uint2*)&X_v[0] = *(device const uint2*)&X[(bx * 4 + i0) * 128 + i1];
    #pragma clang loop unroll(full)
    for (int r = 0; r < 4; ++r) {
      x[r] = X_v[r];
    }
  }
  else {
    const int i0_1 = tid / 32;
    const int i1_1 = (tid % 32) * 4;
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      x[r_1] = bx * 4 + i0_1 < 9 ? X[(bx * 4 + i0_1) * 128 + (i1_1 + r_1)] : (half)0.0f;
    }
  }
  #pragma clang loop unroll(full)
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    square[r_2] = x[r_2] * x[r_2];
  }
  float acc;
  acc = 0.0f;
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    acc = acc + square[r_3];
  }
  const float mine = acc;
  const float other = as_type<float>(simd_shuffle_xor(as_type<uint>(mine), (ushort)1));
  acc = acc + other;
  const float mine_1 = acc;
  const float other_1 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_1), (ushort)2));
  acc = acc + other_1;
  const float mine_2 = acc;
  const float other_2 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_2), (ushort)4));
  acc = acc + other_2;
  const float mine_3 = acc;
  const float other_3 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_3), (ushort)8));
  acc = acc + other_3;
  const float mine_4 = acc;
  const float other_4 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_4), (ushort)16));
  acc = acc + other_4;
  total = acc;
  total = precise::rsqrt(total / 128.0f + 1e-06f);
  const int j_1 = (tid % 32) * 4;
  alignas(16) half W_v[4];
  *(thread uint2*)&W_v[0] = *(device const uint2*)&W[j_1];
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 4; ++r_4) {
    x[r_4] = x[r_4] * total * (float)W_v[r_4];
  }
  if (bx < 2) {
    const int i0_2 = tid / 32;
    const int i1_2 = (tid % 32) * 4;
    alignas(16) half Y_v[4];
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      Y_v[r_5] = (half)x[r_5];
    }
    *(device uint2*)&Y[(bx * 4 + i0_2) * 128 + i1_2] = *(thread const uint2*)&Y_v[0];
  }
  else {
    const int i0_3 = tid / 32;
    const int i1_3 = (tid % 32) * 4;
    if (bx * 4 + i0_3 < 9) {
      alignas(16) half Y_v_1[4];
      #pragma clang loop unroll(full)
      for (int r_6 = 0; r_6 < 4; ++r_6) {
        Y_v_1[r_6] = (half)x[r_6];
      }
      *(device uint2*)&Y[(bx * 4 + i0_3) * 128 + i1_3] = *(thread const uint2*)&Y_v_1[0];
    }
  }
}
