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
__device__ __forceinline__ void cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_bulk_wait_group_read_0() { asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory"); }
__device__ __forceinline__ unsigned long long matrix_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void wgmma_fence_sync_aligned() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_commit_group_sync_aligned() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
__device__ __forceinline__ void wgmma_wait_group_sync_aligned_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }
__device__ __forceinline__ void keep_f32_64(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      :
      : "memory");
}
__device__ __forceinline__ void wgmma_m64n128k16_f32_f16_f16_ss_tb(float* d, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(matrix_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(matrix_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(adds)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(256) gemm(
    const f16* __restrict__ A,
    const f16* __restrict__ B,
    f16* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor,
    const __grid_constant__ CUtensorMap C_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 24576);
  float C_local[64];
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 49152);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[2], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 16384);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[0], &A_descriptor, 0, by * 128, &k_arrived[0]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, bx * 128, 0, &k_arrived[0]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[2048], &B_descriptor, bx * 128 + 64, 0, &k_arrived[0]);
  }
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[1], 16384);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[4096], &A_descriptor, 32, by * 128, &k_arrived[1]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[4096], &B_descriptor, bx * 128, 32, &k_arrived[1]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[6144], &B_descriptor, bx * 128 + 64, 32, &k_arrived[1]);
  }
  for (int k = 0; k < 7; ++k) {
    const int slot = (unsigned)k % 3u;
    mbarrier_wait_parity(&k_arrived[slot], (int)((unsigned)k / 3u) & 1);
    const int warpgroup = warp >> 2;
    const int warpgroup_m = warpgroup;
    const int warpgroup_n = 0;
    wgmma_fence_sync_aligned();
    wgmma_m64n128k16_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 4096 + warpgroup_m * 2048], 16, 512, 2, 0, &B_shared_stages[slot * 4096 + warpgroup_n * 128], 4096, 1024, 1, 0, k == 0 ? 0 : 1);
    wgmma_m64n128k16_f32_f16_f16_ss_tb(&C_local[0], &A_shared_stages[slot * 4096 + warpgroup_m * 2048], 16, 512, 2, 2, &B_shared_stages[slot * 4096 + warpgroup_n * 128], 4096, 1024, 1, 128, 1);
    wgmma_commit_group_sync_aligned();
    wgmma_wait_group_sync_aligned_1();
    __syncthreads();
    const int slot_ahead = (unsigned)(k + 2) % 3u;
    if (k + 2 < 7) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 16384);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead * 4096], &A_descriptor, k * 32 + 64, by * 128, &k_arrived[slot_ahead]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 4096], &B_descriptor, bx * 128, k * 32 + 64, &k_arrived[slot_ahead]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 4096 + 2048], &B_descriptor, bx * 128 + 64, k * 32 + 64, &k_arrived[slot_ahead]);
      }
    }
  }
  wgmma_wait_group_sync_aligned_0();
  keep_f32_64(&C_local[0]);
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
    mbarrier_inval_shared_cta_b64(&k_arrived[2]);
  }
  f16* const C_local_staged = (f16*)smem;
  __syncthreads();
  const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
  const int i1 = (tid & 3) * 2;
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      __align__(16) f16 C_local_staged_v[2];
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        C_local_staged_v[v] = cvt_rn_f16_f32(C_local[r * 4 + r_1 * 2 + v]);
      }
      *(unsigned*)&C_local_staged[(r >> 3) * 8192 + r_1 * 512 + i0 * 64 + ((r & 7) ^ (i0 & 7)) * 8 + i1] = *(const unsigned*)&C_local_staged_v[0];
    }
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  if (tid == 0) {
    cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(&C_local_staged[0], &C_descriptor, bx * 128, by * 128);
    cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(&C_local_staged[8192], &C_descriptor, bx * 128 + 64, by * 128);
    cp_async_bulk_commit_group();
  }
  if (tid == 0) {
    cp_async_bulk_wait_group_read_0();
  }
}
