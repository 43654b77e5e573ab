// Sums of rows, 4 per threadgroup, as one writes it by hand: a thread reads vectors of 4, then the lanes of a simdgroup
// add up, then the first simdgroup adds what all found.
#include <metal_stdlib>
using namespace metal;

constant int N = 1024, ROWS = 4;

[[kernel, max_total_threads_per_threadgroup(128)]] void sum_rows(
    device const float* X [[buffer(0)]],
    device float* Y [[buffer(1)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[64];
  threadgroup float* const parts = (threadgroup float*)smem;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  device const float* x = X + threadgroup_position_in_grid.x * (uint)(ROWS * N) + tid * 4;
  float total[ROWS] = {0};
  for (int k = 0; k < N; k += 128 * 4) {
#pragma clang loop unroll(full)
    for (int r = 0; r < ROWS; ++r) {
      const float4 v = *(device const float4*)&x[r * N + k];
      total[r] += v.x + v.y + v.z + v.w;
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < ROWS; ++r) {
    total[r] = simd_sum(total[r]);
    if (lane == 0) {
      parts[r * 4 + tid / 32] = total[r];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 4) {
    Y[threadgroup_position_in_grid.x * ROWS + tid] =
        parts[tid * 4] + parts[tid * 4 + 1] + parts[tid * 4 + 2] + parts[tid * 4 + 3];
  }
}
