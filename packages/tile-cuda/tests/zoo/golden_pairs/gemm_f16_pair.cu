typedef unsigned short f16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
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
__device__ __forceinline__ void barrier_cluster_arrive_release() { asm volatile("barrier.cluster.arrive.release;" : : : "memory"); }
__device__ __forceinline__ void barrier_cluster_wait_acquire() { asm volatile("barrier.cluster.wait.acquire;" : : : "memory"); }
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
__device__ __forceinline__ void tcgen05_alloc_cta_group_2_sync_aligned_shared_cta_b32(void* place, int columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
      :
      : "r"(shared_address(place)), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_dealloc_cta_group_2_sync_aligned_b32(unsigned address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;"
      :
      : "r"(address), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit_cta_group_2_sync_aligned() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"
      :
      :
      : "memory");
}
__device__ __forceinline__ void tcgen05_commit_cta_group_2_mbarrier_arrive_one_shared_cluster_multicast_cluster_b64(void* barrier, unsigned short blocks) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      :
      : "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_release_cluster_shared_cluster_b64(void* barrier, int rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
      :
      : "r"(shared_address(barrier)), "r"(rank)
      : "memory");
}
__device__ __forceinline__ unsigned mbarrier_try_wait_parity_acquire_cluster_shared_cta_b64(void* barrier, int parity) {
  unsigned ended;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(ended)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return ended;
}
__device__ __forceinline__ void mbarrier_wait_parity_of_cluster(void* barrier, int parity) { while (!mbarrier_try_wait_parity_acquire_cluster_shared_cta_b64(barrier, parity)) {} }
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() { asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() { asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_wait_ld_sync_aligned() { asm volatile("tcgen05.wait::ld.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(float* d, unsigned address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(address)
      : "memory");
}
__device__ __forceinline__ unsigned long long tensor_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void tcgen05_mma_cta_group_2_kind_f16(unsigned address, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, unsigned kind, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }"
      :
      : "r"(address), "l"(tensor_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(tensor_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(kind), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void keep_f32_32(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      :
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(1, 2, 1) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned* const tensor_columns = (unsigned*)(smem + 27712);
  unsigned long long* const product_done = (unsigned long long*)(smem + 27680);
  int products;
  unsigned long long* const operands_ready = (unsigned long long*)(smem + 27696);
  products = 0;
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&product_done[0], 1);
    mbarrier_init_shared_cta_b64(&product_done[1], 1);
    mbarrier_init_shared_cta_b64(&operands_ready[0], 2);
    mbarrier_init_shared_cta_b64(&operands_ready[1], 2);
  }
  fence_mbarrier_init_release_cluster();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (warp < 1) {
    tcgen05_alloc_cta_group_2_sync_aligned_shared_cta_b32(&tensor_columns[0], 32);
    tcgen05_relinquish_alloc_permit_cta_group_2_sync_aligned();
  }
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 24576);
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 27648);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[2], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 9216);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[0], &A_descriptor, 0, by * 128, &k_arrived[0]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, 0, bx * 32 + (by & 1) * 16, &k_arrived[0]);
  }
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[1], 9216);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[4096], &A_descriptor, 32, by * 128, &k_arrived[1]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[512], &B_descriptor, 32, bx * 32 + (by & 1) * 16, &k_arrived[1]);
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  for (int k = 0; k < 5; ++k) {
    const int slot = (unsigned)k % 3u;
    mbarrier_wait_parity(&k_arrived[slot], (int)((unsigned)k / 3u) & 1);
    const unsigned columns = tensor_columns[0];
    tcgen05_fence_before_thread_sync();
    __syncthreads();
    if (tid == 0) {
      mbarrier_arrive_release_cluster_shared_cluster_b64(&operands_ready[products & 1], 0);
      if ((by & 1) == 0) {
        mbarrier_wait_parity_of_cluster(&operands_ready[products & 1], products >> 1);
        tcgen05_fence_after_thread_sync();
        tcgen05_mma_cta_group_2_kind_f16(columns, &A_shared_stages[slot * 4096], 16, 512, 4, 0, &B_shared_stages[slot * 512], 16, 512, 4, 0, 268959760u, k == 0 ? 0 : 1);
        tcgen05_mma_cta_group_2_kind_f16(columns, &A_shared_stages[slot * 4096], 16, 512, 4, 2, &B_shared_stages[slot * 512], 16, 512, 4, 2, 268959760u, 1);
        tcgen05_commit_cta_group_2_mbarrier_arrive_one_shared_cluster_multicast_cluster_b64(&product_done[products & 1], 3);
      }
    }
    products = (int)((unsigned)products + 1u) & 3;
    mbarrier_wait_parity(&product_done[products & 1], ((products - 2) >> 1) & 1);
    tcgen05_fence_after_thread_sync();
    __syncthreads();
    const int slot_ahead = (unsigned)(k + 2) % 3u;
    if (k + 2 < 5) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 9216);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead * 4096], &A_descriptor, k * 32 + 64, by * 128, &k_arrived[slot_ahead]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 512], &B_descriptor, k * 32 + 64, bx * 32 + (by & 1) * 16, &k_arrived[slot_ahead]);
      }
    }
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
    mbarrier_inval_shared_cta_b64(&k_arrived[2]);
  }
  float C_local_piece[32];
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 0u);
  tcgen05_wait_ld_sync_aligned();
  keep_f32_32(&C_local_piece[0]);
  const int i0 = tid;
  __align__(16) f16 C_v[32];
  #pragma unroll
  for (int r = 0; r < 32; ++r) {
    C_v[r] = cvt_rn_f16_f32(C_local_piece[r]);
  }
  *(uint4*)&C[(by * 128 + i0) * 64 + bx * 32] = *(const uint4*)&C_v[0];
  *(uint4*)&C[(by * 128 + i0) * 64 + (bx * 32 + 8)] = *(const uint4*)&C_v[8];
  *(uint4*)&C[(by * 128 + i0) * 64 + (bx * 32 + 16)] = *(const uint4*)&C_v[16];
  *(uint4*)&C[(by * 128 + i0) * 64 + (bx * 32 + 24)] = *(const uint4*)&C_v[24];
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (warp < 1) {
    tcgen05_dealloc_cta_group_2_sync_aligned_b32(tensor_columns[0], 32);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&product_done[0]);
    mbarrier_inval_shared_cta_b64(&product_done[1]);
    mbarrier_inval_shared_cta_b64(&operands_ready[0]);
    mbarrier_inval_shared_cta_b64(&operands_ready[1]);
  }
}
