// Softmax of a row per threadgroup, as one writes it by hand: a thread holds 4 elements; maximum and sum by simdgroups,
// then by the first simdgroup of what all found.
#include <metal_stdlib>
using namespace metal;

constant int N = 1024;

[[kernel, max_total_threads_per_threadgroup(256)]] void softmax(
    device const float* X [[buffer(0)]],
    device float* Y [[buffer(1)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[72];
  threadgroup float* const tops = (threadgroup float*)smem;
  threadgroup float* const sums = tops + 8;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint at = threadgroup_position_in_grid.x * (uint)N + tid * 4;
  float4 x = *(device const float4*)&X[at];
  float top = simd_max(max(max(x.x, x.y), max(x.z, x.w)));
  if (lane == 0) {
    tops[tid / 32] = top;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 32) {
    top = simd_max(lane < 8 ? tops[lane] : -INFINITY);
    if (lane == 0) {
      sums[8] = top;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = sums[8];
  x.x = fast::exp(x.x - top);
  x.y = fast::exp(x.y - top);
  x.z = fast::exp(x.z - top);
  x.w = fast::exp(x.w - top);
  float total = simd_sum(x.x + x.y + x.z + x.w);
  if (lane == 0) {
    sums[tid / 32] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 32) {
    total = simd_sum(lane < 8 ? sums[lane] : 0.0f);
    if (lane == 0) {
      sums[9] = total;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float inverse = 1.0f / sums[9];
  x.x *= inverse;
  x.y *= inverse;
  x.z *= inverse;
  x.w *= inverse;
  *(device float4*)&Y[at] = x;
}
