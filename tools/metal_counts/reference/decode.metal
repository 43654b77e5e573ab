// Attention of one query per head to a cache, as one writes it by hand: a threadgroup has a head, each of its 8 simdgroups
// every eighth key. A lane holds some neighbours of the query, of the key and of the value, and scores are added up over
// the lanes. At the end lanes bring the parts of all simdgroups to one largest score.
#include <metal_stdlib>
using namespace metal;

constant int KEYS = 256, DIM = 64, GROUPS = 8, EACH = DIM / 32;

[[kernel, max_total_threads_per_threadgroup(256)]] void decode(
    device const half* Q [[buffer(0)]],
    device const half* K [[buffer(1)]],
    device const half* V [[buffer(2)]],
    device float* Output [[buffer(3)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[2112];
  threadgroup float* const parts = (threadgroup float*)smem;
  threadgroup float* const tops = parts + GROUPS * DIM;
  threadgroup float* const totals = tops + GROUPS;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32, group = tid / 32;
  const uint head = threadgroup_position_in_grid.x;
  const half2 read = *(device const half2*)&Q[head * DIM + lane * EACH];
  const float scale = 1.44269504f * rsqrt((float)DIM);
  const float x = (float)read.x * scale, y = (float)read.y * scale;
  device const half* k = K + (head * (uint)KEYS + group) * DIM + lane * EACH;
  device const half* v = V + (head * (uint)KEYS + group) * DIM + lane * EACH;
  float top = -INFINITY, total = 0.0f, left = 0.0f, right = 0.0f;
  for (int n = 0; n < KEYS; n += GROUPS) {
    const half2 key = *(device const half2*)k, value = *(device const half2*)v;
    const float score = simd_sum(x * (float)key.x + y * (float)key.y);
    const float now = max(top, score), factor = fast::exp2(top - now), weight = fast::exp2(score - now);
    top = now;
    total = total * factor + weight;
    left = left * factor + weight * (float)value.x;
    right = right * factor + weight * (float)value.y;
    k += GROUPS * DIM;
    v += GROUPS * DIM;
  }
  if (lane == 0) {
    tops[group] = top;
    totals[group] = total;
  }
  *(threadgroup float2*)&parts[group * DIM + lane * EACH] = float2(left, right);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < DIM) {
    float all = tops[0], sum = 0.0f, result = 0.0f;
#pragma clang loop unroll(full)
    for (int g = 1; g < GROUPS; ++g) {
      all = max(all, tops[g]);
    }
#pragma clang loop unroll(full)
    for (int g = 0; g < GROUPS; ++g) {
      const float factor = fast::exp2(tops[g] - all);
      sum += totals[g] * factor;
      result += parts[g * DIM + tid] * factor;
    }
    Output[head * DIM + tid] = result / sum;
  }
}
