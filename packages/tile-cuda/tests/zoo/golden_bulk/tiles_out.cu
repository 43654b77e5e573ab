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
__device__ __forceinline__ void fence_proxy_async_shared_cta() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, void* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(const void* smem, const CUtensorMap* map, int at0, int at1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1)
      : "memory");
}
__device__ __forceinline__ void cp_reduce_async_bulk_tensor_2d_global_shared_cta_add_tile_bulk_group(const void* smem, const CUtensorMap* map, int at0, int at1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, {%2, %3}], [%0];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1)
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_bulk_wait_group_read_0() { asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory"); }
__device__ __forceinline__ void cp_async_bulk_wait_group_0() { asm volatile("cp.async.bulk.wait_group 0;" : : : "memory"); }

extern "C" __global__ void __launch_bounds__(64) tiles_out(
    const float* __restrict__ A,
    float* __restrict__ B,
    float* __restrict__ C,
    float* __restrict__ D,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor,
    const __grid_constant__ CUtensorMap C_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned long long* const S_arrived = (unsigned long long*)(smem + 2048);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&S_arrived[0], 1);
  }
  int S_phase;
  S_phase = 0;
  float* const S = (float*)smem;
  for (int r = 0; r < 3; ++r) {
    if (tid == 0) {
      cp_async_bulk_wait_group_read_0();
    }
    fence_mbarrier_init_release_cluster();
    __syncthreads();
    if (warp == 0 && elect_sync() != 0u) {
      mbarrier_arrive_expect_tx_shared_cta_b64(&S_arrived[0], 2048);
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&S[0], &A_descriptor, bx * 32, by * 48 + r * 16, &S_arrived[0]);
    }
    mbarrier_wait_parity(&S_arrived[0], S_phase);
    S_phase = 1u - (unsigned)S_phase;
    __syncthreads();
    const int i = tid >> 3;
    const int j = (tid & 7) * 4;
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      __align__(16) float S_v[4];
      *(uint4*)&S_v[0] = *(const uint4*)(float*)((char*)S + ((unsigned)(i * 128 + ((j >> 2) ^ i) * 16) + (unsigned)(r_1 * 256) * 4u));
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        S_v[v] = S_v[v] * 2.0f;
      }
      *(uint4*)(float*)((char*)S + ((unsigned)(i * 128 + ((j >> 2) ^ i) * 16) + (unsigned)(r_1 * 256) * 4u)) = *(const uint4*)&S_v[0];
    }
    fence_proxy_async_shared_cta();
    __syncthreads();
    if (tid == 0) {
      cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(&S[0], &B_descriptor, bx * 32, by * 48 + r * 16);
      cp_async_bulk_commit_group();
    }
    if (tid == 0) {
      cp_reduce_async_bulk_tensor_2d_global_shared_cta_add_tile_bulk_group(&S[0], &C_descriptor, bx * 32, 0);
      cp_async_bulk_commit_group();
    }
  }
  if (tid == 0) {
    cp_async_bulk_wait_group_0();
  }
  __syncthreads();
  const int i_1 = tid >> 3;
  const int j_1 = (tid & 7) * 4;
  if (by * 16 * 3 + 48 - 1 - i_1 < 85 && bx * 32 + (j_1 + 3) < 72) {
    #pragma unroll
    for (int r_2 = 0; r_2 < 6; ++r_2) {
      *(uint4*)(&D[(by * 48 + 47 - i_1) * 72 + (bx * 32 + j_1)] + r_2 * -576) = *(const uint4*)(&B[(by * 48 + 47 - i_1) * 72 + (bx * 32 + j_1)] + r_2 * -576);
    }
  }
  else {
    #pragma unroll
    for (int r_3 = 0; r_3 < 6; ++r_3) {
      if (by * 16 * 3 + 48 - 1 - (r_3 * 8 + i_1) < 85 && bx * 32 + j_1 < 72) {
        *(uint4*)(&D[(by * 48 + 47 - i_1) * 72 + (bx * 32 + j_1)] + r_3 * -576) = *(const uint4*)(&B[(by * 48 + 47 - i_1) * 72 + (bx * 32 + j_1)] + r_3 * -576);
      }
    }
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&S_arrived[0]);
  }
}
