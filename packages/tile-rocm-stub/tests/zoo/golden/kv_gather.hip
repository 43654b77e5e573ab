#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v4 __attribute__((may_alias));
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))

extern "C" __global__ void __launch_bounds__(128) main_kernel(
    const unsigned short* __restrict__ cache,
    const int* __restrict__ table,
    unsigned short* __restrict__ out
) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  int* const rows = (int*)(smem + 640);
  unsigned short* const staged = (unsigned short*)smem;
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
  block_barrier();
  const int i0_2 = tid >> 5;
  const int i1 = (tid & 31) * 2;
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (i1 < 40) {
      const long long row = (long long)rows[r * 4 + i0_2];
      if (row >= 0LL && row < 61LL) {
        *(v4*)&staged[r * 160 + i0_2 * 40 + i1] = *(const v4*)&cache[row * 40LL + (long long)i1];
      }
      else {
        alignas(16) unsigned short staged_v[2];
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          staged_v[v] = 0;
        }
        *(v4*)&staged[r * 160 + i0_2 * 40 + i1] = *(const v4*)&staged_v[0];
      }
    }
  }
  if (bx < 4) {
    const int i0_3 = tid >> 5;
    const int i1_1 = (tid & 31) * 2;
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (i1_1 < 40) {
        *(v4*)&out[(bx * 8 + i0_3) * 40 + i1_1 + r_1 * 160] = *(const v4*)&staged[r_1 * 160 + i0_3 * 40 + i1_1];
      }
    }
  }
  else {
    const int i0_4 = tid >> 5;
    const int i1_2 = (tid & 31) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      if (i1_2 < 40) {
        if (bx * 8 + (r_2 * 4 + i0_4) < 33) {
          *(v4*)&out[(bx * 8 + i0_4) * 40 + i1_2 + r_2 * 160] = *(const v4*)&staged[r_2 * 160 + i0_4 * 40 + i1_2];
        }
      }
    }
  }
}
