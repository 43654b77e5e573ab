struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ unsigned elect_sync() {
  unsigned mine;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
      : "=r"(mine)
      :
      : "memory");
  return mine;
}
__device__ __forceinline__ void mbarrier_init_shared_cta_b64(void* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
      :
      : "r"(shared_address(barrier)), "r"(arrivals)
      : "memory");
}
__device__ __forceinline__ void mbarrier_inval_shared_cta_b64(void* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];"
      :
      : "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_expect_tx_shared_cta_b64(void* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
      :
      : "r"(shared_address(barrier)), "r"(bytes)
      : "memory");
}
__device__ __forceinline__ unsigned mbarrier_try_wait_parity_shared_cta_b64(void* barrier, int parity) {
  unsigned ended;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(ended)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return ended;
}
__device__ __forceinline__ void mbarrier_wait_parity(void* barrier, int parity) { while (!mbarrier_try_wait_parity_shared_cta_b64(barrier, parity)) {} }
__device__ __forceinline__ void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;"
      :
      :
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, void* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(shared_address(barrier))
      : "memory");
}

extern "C" __global__ void __launch_bounds__(64) tiles_in(
    const int* __restrict__ A,
    const int* __restrict__ X,
    int* __restrict__ B,
    const __grid_constant__ CUtensorMap X_descriptor,
    const __grid_constant__ CUtensorMap A_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned long long* const R_arrived = (unsigned long long*)(smem + 2048);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&R_arrived[0], 1);
  }
  unsigned long long* const S_arrived = (unsigned long long*)(smem + 2064);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&S_arrived[0], 1);
  }
  int S_phase;
  S_phase = 0;
  int* const S = (int*)smem;
  int* const R = (int*)(smem + 1024);
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&R_arrived[0], 1024);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&R[0], &X_descriptor, bx * 32, 0, &R_arrived[0]);
  }
  mbarrier_wait_parity(&R_arrived[0], 0);
  for (int t = 0; t < 6; ++t) {
    __syncthreads();
    if (warp == 0 && elect_sync() != 0u) {
      mbarrier_arrive_expect_tx_shared_cta_b64(&S_arrived[0], 1024);
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&S[0], &A_descriptor, bx * 32, t * 8, &S_arrived[0]);
    }
    mbarrier_wait_parity(&S_arrived[0], S_phase);
    S_phase = 1u - (unsigned)S_phase;
    const int i = tid >> 5;
    const int j = tid & 31;
    if (t * 8 + 7 - i < 45 && bx * 32 + 31 - j < 72) {
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        B[t * 576 + bx * 32 + 535 - j - i * 72 - r * 144] = (unsigned)S[((255 - j) >> 5) * 32 + (((31 - j) >> 2) ^ (((255 - j) >> 5) - i - r * 2)) * 4 + ((3 - j) & 3) - i * 32 - r * 64] + (unsigned)R[((255 - j) >> 5) * 32 + (((31 - j) >> 2) ^ (((255 - j) >> 5) - i - r * 2)) * 4 + ((3 - j) & 3) - i * 32 - r * 64];
      }
    }
    else {
      #pragma unroll
      for (int r_1 = 0; r_1 < 4; ++r_1) {
        if (t * 8 + 7 - (r_1 * 2 + i) < 45 && bx * 32 + 31 - j < 72) {
          B[t * 576 + bx * 32 + 535 - j - i * 72 - r_1 * 144] = (unsigned)S[((255 - j) >> 5) * 32 + (((31 - j) >> 2) ^ (((255 - j) >> 5) - i - r_1 * 2)) * 4 + ((3 - j) & 3) - i * 32 - r_1 * 64] + (unsigned)R[((255 - j) >> 5) * 32 + (((31 - j) >> 2) ^ (((255 - j) >> 5) - i - r_1 * 2)) * 4 + ((3 - j) & 3) - i * 32 - r_1 * 64];
        }
      }
    }
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&R_arrived[0]);
  }
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&S_arrived[0]);
  }
}
