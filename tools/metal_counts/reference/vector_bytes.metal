// A vector times a matrix of bytes, scaled per group of 64, as one writes it by hand: two simdgroups of 4 columns each,
// 8 elements of a lane and 256 of K a turn, one sum per column at the end.
#include <metal_stdlib>
using namespace metal;

constant int K = 1024, GROUP = 64, ROWS = 4, EACH = 8;

[[kernel, max_total_threads_per_threadgroup(64)]] void multiply(
    device const half* A [[buffer(0)]],
    device const char* W [[buffer(1)]],
    device const half* scale [[buffer(2)]],
    device float* C [[buffer(3)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint row = threadgroup_position_in_grid.x * (2 * ROWS) + tid / 32 * ROWS;
  device const half* a = A + lane * EACH;
  device const char* w = W + row * (uint)K + lane * EACH;
  device const half* s = scale + row * (uint)(K / GROUP) + lane / (GROUP / EACH);
  float sum[ROWS] = {0};
  for (int k = 0; k < K; k += 32 * EACH) {
    alignas(16) half values[EACH];
    *(thread uint4*)&values[0] = *(device const uint4*)&a[0];
#pragma clang loop unroll(full)
    for (int r = 0; r < ROWS; ++r) {
      alignas(8) char codes[EACH];
      *(thread uint2*)&codes[0] = *(device const uint2*)&w[r * K];
      float part = 0.0f;
#pragma clang loop unroll(full)
      for (int i = 0; i < EACH; ++i) {
        part += (float)values[i] * (float)codes[i];
      }
      sum[r] += (float)s[r * (K / GROUP)] * part;
    }
    a += 32 * EACH;
    w += 32 * EACH;
    s += 32 * EACH / GROUP;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < ROWS; ++r) {
    const float total = simd_sum(sum[r]);
    if (lane == 0) {
      C[row + r] = total;
    }
  }
}
