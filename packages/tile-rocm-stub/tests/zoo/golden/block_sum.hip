#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
#define block_barrier() \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
static __device__ inline int lane_id() { return (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
static __device__ inline int lane_idx(int by, int width) {
  const int lane = lane_id(), from = (lane & -width) + (by & (width - 1));
  return ((from & -width) == (lane & -width) ? from : lane) * 4;
}

extern "C" __global__ void __launch_bounds__(96) block_sum_kernel(const float* __restrict__ X, float* __restrict__ Y) {
  #pragma clang fp contract(fast)
  extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  const int tid_1 = tid;
  float* const parts = (float*)smem;
  float mine;
  mine = 0.0f;
  mine = 0.0f;
  if (288 + tid_1 < 301) {
    for (int k = 0; k < 4; ++k) {
      mine = mine + X[bx * 301 + tid_1 + k * 96];
    }
  }
  else {
    for (int k_1 = 0; k_1 < 4; ++k_1) {
      if (k_1 * 96 + tid_1 < 301) {
        mine = mine + X[bx * 301 + tid_1 + k_1 * 96];
      }
    }
  }
  #pragma unroll
  for (int s = 0; s < 5; ++s) {
    const float mine_1 = mine;
    const int source = (tid & 63) ^ (int)(1u << (s & 31));
    const int lane = source >= 0 && source < 64 && tid - (tid & 63) + source < 96 ? (tid & 63) - (tid & 63) + source : tid & 63;
    const float theirs = __builtin_bit_cast(float, (unsigned)__builtin_amdgcn_ds_bpermute(lane_idx(lane, 64), (int)__builtin_bit_cast(unsigned int, mine_1)));
    mine = mine + theirs;
  }
  if ((tid_1 & 31) == 0) {
    parts[tid_1 >> 5] = mine;
  }
  block_barrier();
  if (tid_1 == 0) {
    Y[bx] = parts[0] + parts[1] + parts[2];
  }
}
