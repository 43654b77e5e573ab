// RMS normalisation of a row per threadgroup, as one writes it by hand: a thread holds 4 elements; their squares are
// added up by simdgroups, then by the first simdgroup.
#include <metal_stdlib>
using namespace metal;

constant int N = 1024;

[[kernel, max_total_threads_per_threadgroup(256)]] void normalise(
    device const half* X [[buffer(0)]],
    device const half* W [[buffer(1)]],
    device half* Y [[buffer(2)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[36];
  threadgroup float* const sums = (threadgroup float*)smem;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint at = threadgroup_position_in_grid.x * (uint)N + tid * 4;
  const half4 read = *(device const half4*)&X[at];
  const float x[4] = {(float)read.x, (float)read.y, (float)read.z, (float)read.w};
  float total = simd_sum(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
  if (lane == 0) {
    sums[tid / 32] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 32) {
    total = simd_sum(lane < 8 ? sums[lane] : 0.0f);
    if (lane == 0) {
      sums[8] = precise::rsqrt(total / (float)N + 1e-6f);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float factor = sums[8];
  const half4 w = *(device const half4*)&W[tid * 4];
  alignas(8) half y[4];
  y[0] = (half)(x[0] * factor * (float)w.x);
  y[1] = (half)(x[1] * factor * (float)w.y);
  y[2] = (half)(x[2] * factor * (float)w.z);
  y[3] = (half)(x[3] * factor * (float)w.w);
  *(device half4*)&Y[at] = *(thread const half4*)&y[0];
}
