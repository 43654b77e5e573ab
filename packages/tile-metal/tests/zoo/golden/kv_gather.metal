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
  alignas(16) threadgroup uchar smem[672];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  threadgroup int* const rows = (threadgroup int*)(smem + 640);
  threadgroup half* const staged = (threadgroup half*)smem;
  if (bx < 4) {
    const int i0 = tid & 7;
    if ((tid >> 3) == 0) {
      rows[i0] = table[bx * 8 + i0];
    }
  }
  else {
    const int i0_1 = tid & 7;
    if ((tid >> 3) == 0) {
      rows[i0_1] = bx * 8 + i0_1 < 33 ? table[bx * 8 + i0_1] : 0;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int i0_2 = tid >> 5;
  const int i1 = (tid & 31) * 2;
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    if (i1 < 40) {
      const long row = rows[r * 4 + i0_2];
      if (row >= 0L && row < 61L) {
        *(threadgroup uchar4*)&staged[r * 160 + i0_2 * 40 + i1] = *(device const uchar4*)&cache[row * 40L + (long)i1];
      }
      else {
        alignas(16) half staged_v[2];
        #pragma clang loop unroll(full)
        for (int v = 0; v < 2; ++v) {
          staged_v[v] = (half)0.0f;
        }
        *(threadgroup uchar4*)&staged[r * 160 + i0_2 * 40 + i1] = *(thread const uchar4*)&staged_v[0];
      }
    }
  }
  if (bx < 4) {
    const int i0_3 = tid >> 5;
    const int i1_1 = (tid & 31) * 2;
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 40) {
        *(device uchar4*)&out[(bx * 8 + i0_3) * 40 + i1_1 + r_1 * 160] = *(threadgroup const uchar4*)&staged[r_1 * 160 + i0_3 * 40 + i1_1];
      }
    }
  }
  else {
    const int i0_4 = tid >> 5;
    const int i1_2 = (tid & 31) * 2;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      if (i1_2 < 40) {
        if (bx * 8 + (r_2 * 4 + i0_4) < 33) {
          *(device uchar4*)&out[(bx * 8 + i0_4) * 40 + i1_2 + r_2 * 160] = *(threadgroup const uchar4*)&staged[r_2 * 160 + i0_4 * 40 + i1_2];
        }
      }
    }
  }
}
