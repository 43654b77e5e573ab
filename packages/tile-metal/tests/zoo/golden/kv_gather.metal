#include <metal_stdlib>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const half* __restrict cache [[buffer(0)]],
    device const int* __restrict table [[buffer(1)]],
    device half* __restrict out [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[2688];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  threadgroup int* const rows = (threadgroup int*)smem;
  threadgroup half* const staged = (threadgroup half*)(smem + 128);
  if (bx < 1) {
    const int i0 = tid & 31;
    if ((tid >> 5) == 0) {
      rows[i0] = table[bx * 32 + i0];
    }
  }
  else {
    const int i0_1 = tid & 31;
    if ((tid >> 5) == 0) {
      rows[i0_1] = bx * 32 + i0_1 < 33 ? table[bx * 32 + i0_1] : 0;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int i0_2 = tid >> 3;
  const int i1 = (tid & 7) * 8;
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    if (i1 < 40) {
      const long row = rows[r * 16 + i0_2];
      if (row >= 0L && row < 61L) {
        *(threadgroup uint4*)&staged[r * 640 + i0_2 * 40 + i1] = *(device const uint4*)&cache[row * 40L + (long)i1];
      }
      else {
        alignas(16) half staged_v[8];
        #pragma clang loop unroll(full)
        for (int v = 0; v < 8; ++v) {
          staged_v[v] = (half)0.0f;
        }
        *(threadgroup uint4*)&staged[r * 640 + i0_2 * 40 + i1] = *(thread const uint4*)&staged_v[0];
      }
    }
  }
  if (bx < 1) {
    const int i0_3 = tid >> 3;
    const int i1_1 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 40) {
        *(device uint4*)&out[(bx * 32 + i0_3) * 40 + i1_1 + r_1 * 640] = *(threadgroup const uint4*)&staged[r_1 * 640 + i0_3 * 40 + i1_1];
      }
    }
  }
  else {
    const int i0_4 = tid >> 3;
    const int i1_2 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      if (i1_2 < 40) {
        if (bx * 32 + (r_2 * 16 + i0_4) < 33) {
          *(device uint4*)&out[(bx * 32 + i0_4) * 40 + i1_2 + r_2 * 640] = *(threadgroup const uint4*)&staged[r_2 * 640 + i0_4 * 40 + i1_2];
        }
      }
    }
  }
}
