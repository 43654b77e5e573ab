// A vector times a matrix of 4-bit integers, two in a byte, scaled per group of 64, as one writes it by hand: two
// simdgroups of 4 columns each, 16 elements of a lane and 512 of K a turn, one sum per column at the end. What is
// subtracted from all integers is subtracted once, times the sum of the vector's elements.
#include <metal_stdlib>
using namespace metal;

constant int K = 1024, GROUP = 64, ROWS = 4, EACH = 16;

[[kernel, max_total_threads_per_threadgroup(64)]] void multiply(
    device const half* A [[buffer(0)]],
    device const uchar* W [[buffer(1)]],
    device const half* scale [[buffer(2)]],
    device float* C [[buffer(3)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint row = threadgroup_position_in_grid.x * (2 * ROWS) + tid / 32 * ROWS;
  device const half* a = A + lane * EACH;
  device const uchar* w = W + row * (uint)(K / 2) + lane * (EACH / 2);
  device const half* s = scale + row * (uint)(K / GROUP) + lane / (GROUP / EACH);
  float sum[ROWS] = {0};
  for (int k = 0; k < K; k += 32 * EACH) {
    float values[EACH], all = 0.0f;
#pragma clang loop unroll(full)
    for (int i = 0; i < EACH; i += 8) {
      alignas(16) half read[8];
      *(thread uint4*)&read[0] = *(device const uint4*)&a[i];
#pragma clang loop unroll(full)
      for (int j = 0; j < 8; ++j) {
        values[i + j] = (float)read[j];
        all += values[i + j];
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < ROWS; ++r) {
      const uint2 codes = *(device const uint2*)&w[r * (K / 2)];
      float part = 0.0f;
#pragma clang loop unroll(full)
      for (int i = 0; i < EACH; ++i) {
        part += values[i] * (float)(((i < 8 ? codes.x : codes.y) >> (i % 8 * 4) & 15u) ^ FLIP);
      }
      sum[r] += (float)s[r * (K / GROUP)] * (part - all * (float)FLIP);
    }
    a += 32 * EACH;
    w += 32 * EACH / 2;
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
