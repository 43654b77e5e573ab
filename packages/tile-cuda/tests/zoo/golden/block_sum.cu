__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ unsigned shfl_sync_idx_u32(unsigned x, int lane, int clamp, unsigned mask) { return shfl_sync_idx_b32(x, lane, clamp, mask); }

extern "C" __global__ void __launch_bounds__(96) block_sum(const float* __restrict__ X, float* __restrict__ Y) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int tid = threadIdx.x;
  const int tid_1 = tid;
  float* const parts = (float*)smem;
  float mine;
  mine = 0.0f;
  mine = 0.0f;
  if (288 + tid_1 < 301) {
    for (int k = 0; k < 4; ++k) {
      mine = mine + X[bx * 301 + (k * 96 + tid_1)];
    }
  }
  else {
    for (int k_1 = 0; k_1 < 4; ++k_1) {
      if (k_1 * 96 + tid_1 < 301) {
        mine = mine + X[bx * 301 + (k_1 * 96 + tid_1)];
      }
    }
  }
  #pragma unroll
  for (int s = 0; s < 5; ++s) {
    const float mine_1 = mine;
    const int source = (tid & 31) ^ (int)(1u << (s & 31));
    const int lane = source >= 0 && source < 32 ? (tid & 31) - (tid & 31) + source : tid & 31;
    const float theirs = __uint_as_float(shfl_sync_idx_u32(__float_as_uint(mine_1), lane, 31, 0xffffffffu));
    mine = mine + theirs;
  }
  if ((tid_1 & 31) == 0) {
    parts[tid_1 >> 5] = mine;
  }
  __syncthreads();
  if (tid_1 == 0) {
    Y[bx] = parts[0] + parts[1] + parts[2];
  }
}
