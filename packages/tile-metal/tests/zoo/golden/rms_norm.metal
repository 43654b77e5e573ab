#include <metal_stdlib>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

[[kernel, max_total_threads_per_threadgroup(32)]] void main_1(
    device const half* __restrict X [[buffer(0)]],
    device const half* __restrict W [[buffer(1)]],
    device half* __restrict Y [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  float x[4];
  float total;
  total = 0.0f;
  const int i0 = tid * 4;
  alignas(16) half X_v[4];
  *(thread uint2*)&X_v[0] = *(device const uint2*)&X[bx * 128 + i0];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    x[r] = X_v[r];
  }
  #pragma clang loop unroll(full)
  for (int r_1 = 0; r_1 < 4; ++r_1) {
    total = total + x[r_1] * x[r_1];
  }
  float acc;
  acc = total;
  const float total_1 = acc;
  const float found = simd_sum(total_1);
  acc = found;
  total = acc;
  const int j_1 = tid * 4;
  alignas(16) half W_v[4];
  *(thread uint2*)&W_v[0] = *(device const uint2*)&W[j_1];
  #pragma clang loop unroll(full)
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    x[r_2] = x[r_2] * precise::rsqrt(total / 128.0f + 1e-06f) * (float)W_v[r_2];
  }
  const int i0_1 = tid * 4;
  alignas(16) half Y_v[4];
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    Y_v[r_3] = (half)x[r_3];
  }
  *(device uint2*)&Y[bx * 128 + i0_1] = *(thread const uint2*)&Y_v[0];
}
