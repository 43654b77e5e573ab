struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ void cp_async_ca_shared_global_4(void* smem, const void* gmem) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_ca_shared_global_4_zfill(void* smem, const void* gmem, int valid_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
      :
      : "r"(shared_address(smem)), "l"(gmem), "r"(valid_bytes)
      : "memory");
}
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_group_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }
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
__device__ __forceinline__ void mbarrier_arrive_shared_cluster_b64(void* barrier, int rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
      :
      : "r"(shared_address(barrier)), "r"(rank)
      : "memory");
}
__device__ __forceinline__ void barrier_cluster_arrive_release() { asm volatile("barrier.cluster.arrive.release;" : : : "memory"); }
__device__ __forceinline__ void barrier_cluster_wait_acquire() { asm volatile("barrier.cluster.wait.acquire;" : : : "memory"); }
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
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(void* smem, const CUtensorMap* map, int at0, int at1, void* barrier, unsigned short blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(void* place, int columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
      :
      : "r"(shared_address(place)), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_dealloc_cta_group_1_sync_aligned_b32(unsigned address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
      :
      : "r"(address), "r"(columns)
      : "memory");
}
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
      :
      :
      : "memory");
}
__device__ __forceinline__ void tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(void* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
      :
      : "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() { asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() { asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_wait_ld_sync_aligned() { asm volatile("tcgen05.wait::ld.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_wait_st_sync_aligned() { asm volatile("tcgen05.wait::st.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(float* d, unsigned address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(address)
      : "memory");
}
__device__ __forceinline__ void tcgen05_st_sync_aligned_32x32b_x32_b32_f32(const float* d, unsigned address) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31};"
      :
      : "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3]), "f"(d[4]), "f"(d[5]), "f"(d[6]), "f"(d[7]), "f"(d[8]), "f"(d[9]), "f"(d[10]), "f"(d[11]), "f"(d[12]), "f"(d[13]), "f"(d[14]), "f"(d[15]), "f"(d[16]), "f"(d[17]), "f"(d[18]), "f"(d[19]), "f"(d[20]), "f"(d[21]), "f"(d[22]), "f"(d[23]), "f"(d[24]), "f"(d[25]), "f"(d[26]), "f"(d[27]), "f"(d[28]), "f"(d[29]), "f"(d[30]), "f"(d[31]), "r"(address)
      : "memory");
}
__device__ __forceinline__ void tcgen05_st_sync_aligned_32x32b_x2_b32_u32(const unsigned* d, unsigned address) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%2], {%0, %1};"
      :
      : "r"(d[0]), "r"(d[1]), "r"(address)
      : "memory");
}
__device__ __forceinline__ unsigned long long tensor_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void tcgen05_cp_cta_group_1_32x128b_warpx4(unsigned address, const void* p, int p_leading, int p_stride, int p_swizzle, int p_chunks) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;"
      :
      : "r"(address), "l"(tensor_descriptor(p, p_leading, p_stride, p_swizzle, p_chunks))
      : "memory");
}
__device__ __forceinline__ void tcgen05_mma_cta_group_1_kind_mxf8f6f4_block_scale_scale_vec_1X(unsigned address, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, unsigned a_scale, unsigned b_scale, unsigned kind, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %5, [%3], [%4], p; }"
      :
      : "r"(address), "l"(tensor_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(tensor_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(a_scale), "r"(b_scale), "r"(kind), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void keep_f32_64(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      :
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(2, 1, 1) scaled(
    const unsigned char* __restrict__ A,
    const unsigned char* __restrict__ A_scale,
    const unsigned char* __restrict__ B,
    const unsigned char* __restrict__ B_scale,
    float* __restrict__ C,
    const __grid_constant__ CUtensorMap A_descriptor,
    const __grid_constant__ CUtensorMap B_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned* const tensor_columns = (unsigned*)(smem + 50736);
  unsigned long long* const product_done = (unsigned long long*)(smem + 50688);
  int products;
  products = 0;
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&product_done[0], 1);
    mbarrier_init_shared_cta_b64(&product_done[1], 1);
  }
  if (warp < 1) {
    tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(&tensor_columns[0], 128);
    tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned();
  }
  unsigned char* const A_shared_stages = (unsigned char*)smem;
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 32768);
  unsigned char* const rows_stages = (unsigned char*)(smem + 49152);
  unsigned char* const columns_stages = (unsigned char*)(smem + 50176);
  float C_local[64];
  #pragma unroll
  for (int r = 0; r < 64; ++r) {
    C_local[r] = 0.0f;
  }
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 50704);
  unsigned long long* const k_free = (unsigned long long*)(smem + 50720);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
  }
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_free[0], 256);
    mbarrier_init_shared_cta_b64(&k_free[1], 256);
  }
  fence_mbarrier_init_release_cluster();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 24576);
    if ((bx & 1) == 0) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[0], &A_descriptor, 0, by * 128, &k_arrived[0], 3);
    }
    if ((bx & 1) == 1) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[8192], &A_descriptor, 0, by * 128 + 64, &k_arrived[0], 3);
    }
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, 0, bx * 64, &k_arrived[0]);
  }
  if (by * 128 + 128 <= 130) {
    cp_async_ca_shared_global_4(&rows_stages[(tid & 31) * 16 + (tid >> 5) * 4], &A_scale[(by * 128 + tid) * 12]);
  }
  else {
    cp_async_ca_shared_global_4_zfill(&rows_stages[(tid & 31) * 16 + (tid >> 5) * 4], &A_scale[(by * 128 + tid) * 12], by * 128 + tid < 130 ? 4 : 0);
  }
  if (bx * 64 + 64 <= 72) {
    if (warp < 2) {
      cp_async_ca_shared_global_4(&columns_stages[tid * 4], &B_scale[(bx * 64 + tid) * 12]);
    }
  }
  else if (warp < 2) {
    cp_async_ca_shared_global_4_zfill(&columns_stages[tid * 4], &B_scale[(bx * 64 + tid) * 12], bx * 64 + tid < 72 ? 4 : 0);
  }
  cp_async_commit_group();
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  tcgen05_st_sync_aligned_32x32b_x32_b32_f32(&C_local[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u);
  tcgen05_st_sync_aligned_32x32b_x32_b32_f32(&C_local[32], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 32u);
  tcgen05_wait_st_sync_aligned();
  for (int k = 0; k < 3; ++k) {
    cp_async_wait_group_0();
    const int slot = k & 1;
    mbarrier_wait_parity(&k_arrived[slot], (k >> 1) & 1);
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int lane = tid & 127;
    const int lane_row = lane;
    const unsigned columns = tensor_columns[0];
    unsigned scales[2];
    *(unsigned*)&scales[0] = *(const unsigned*)&columns_stages[slot * 256 + (lane_row & 31) * 4];
    *(unsigned*)&scales[1] = *(const unsigned*)&columns_stages[slot * 256 + (lane_row & 31) * 4 + 128];
    tcgen05_st_sync_aligned_32x32b_x2_b32_u32(&scales[0], columns + (unsigned)((tid >> 5) & 3) * 2097152u + ((unsigned)(products & 1) * 6u + 68u));
    tcgen05_wait_st_sync_aligned();
    tcgen05_fence_before_thread_sync();
    fence_proxy_async_shared_cta();
    __syncthreads();
    if (tid == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_cp_cta_group_1_32x128b_warpx4(columns + ((unsigned)(products & 1) * 6u + 64u), &rows_stages[slot * 512], 0, 128, 0, 0);
      tcgen05_mma_cta_group_1_kind_mxf8f6f4_block_scale_scale_vec_1X(columns, &A_shared_stages[slot * 16384], 16, 1024, 2, 0, &B_shared_stages[slot * 8192], 16, 1024, 2, 0, columns + ((unsigned)(products & 1) * 6u + 64u), columns + ((unsigned)(products & 1) * 6u + 68u), 143654912u, 1);
      tcgen05_mma_cta_group_1_kind_mxf8f6f4_block_scale_scale_vec_1X(columns, &A_shared_stages[slot * 16384], 16, 1024, 2, 2, &B_shared_stages[slot * 8192], 16, 1024, 2, 2, columns + ((unsigned)(products & 1) * 6u + 64u), columns + ((unsigned)(products & 1) * 6u + 68u), 680525840u, 1);
      tcgen05_mma_cta_group_1_kind_mxf8f6f4_block_scale_scale_vec_1X(columns, &A_shared_stages[slot * 16384], 16, 1024, 2, 4, &B_shared_stages[slot * 8192], 16, 1024, 2, 4, columns + ((unsigned)(products & 1) * 6u + 64u), columns + ((unsigned)(products & 1) * 6u + 68u), 1217396768u, 1);
      tcgen05_mma_cta_group_1_kind_mxf8f6f4_block_scale_scale_vec_1X(columns, &A_shared_stages[slot * 16384], 16, 1024, 2, 6, &B_shared_stages[slot * 8192], 16, 1024, 2, 6, columns + ((unsigned)(products & 1) * 6u + 64u), columns + ((unsigned)(products & 1) * 6u + 68u), 1754267696u, 1);
      tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&product_done[products & 1]);
    }
    products = (int)((unsigned)products + 1u) & 3;
    mbarrier_wait_parity(&product_done[products & 1], ((products - 2) >> 1) & 1);
    tcgen05_fence_after_thread_sync();
    if (k - 1 >= 0) {
      mbarrier_arrive_shared_cluster_b64(&k_free[(k + 1) & 1], (bx & 1) ^ 0);
      mbarrier_arrive_shared_cluster_b64(&k_free[(k + 1) & 1], (bx & 1) ^ 1);
    }
    fence_proxy_async_shared_cta();
    __syncthreads();
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_wait_parity(&k_free[slot_ahead], (((k + 1) >> 1) - 1) & 1);
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 24576);
        if ((bx & 1) == 0) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[slot_ahead * 16384], &A_descriptor, k * 128 + 128, by * 128, &k_arrived[slot_ahead], 3);
        }
        if ((bx & 1) == 1) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&A_shared_stages[slot_ahead * 16384 + 8192], &A_descriptor, k * 128 + 128, by * 128 + 64, &k_arrived[slot_ahead], 3);
        }
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 8192], &B_descriptor, k * 128 + 128, bx * 64, &k_arrived[slot_ahead]);
      }
      if (by * 128 + 128 <= 130) {
        cp_async_ca_shared_global_4((unsigned char*)((char*)rows_stages + ((unsigned)(slot_ahead * 512) + (unsigned)((tid & 31) * 16 + (tid >> 5) * 4) * 1u)), &A_scale[(by * 128 + tid) * 12 + (k * 4 + 4)]);
      }
      else {
        cp_async_ca_shared_global_4_zfill((unsigned char*)((char*)rows_stages + ((unsigned)(slot_ahead * 512) + (unsigned)((tid & 31) * 16 + (tid >> 5) * 4) * 1u)), &A_scale[(by * 128 + tid) * 12 + (k * 4 + 4)], by * 128 + tid < 130 ? 4 : 0);
      }
      if (bx * 64 + 64 <= 72) {
        if (warp < 2) {
          cp_async_ca_shared_global_4((unsigned char*)((char*)columns_stages + ((unsigned)(slot_ahead * 256) + (unsigned)(tid * 4) * 1u)), &B_scale[(bx * 64 + tid) * 12 + (k * 4 + 4)]);
        }
      }
      else if (warp < 2) {
        cp_async_ca_shared_global_4_zfill((unsigned char*)((char*)columns_stages + ((unsigned)(slot_ahead * 256) + (unsigned)(tid * 4) * 1u)), &B_scale[(bx * 64 + tid) * 12 + (k * 4 + 4)], bx * 64 + tid < 72 ? 4 : 0);
      }
    }
    cp_async_commit_group();
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  cp_async_wait_group_0();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_free[0]);
    mbarrier_inval_shared_cta_b64(&k_free[1]);
  }
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u);
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local[32], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 32u);
  tcgen05_wait_ld_sync_aligned();
  keep_f32_64(&C_local[0]);
  if (by < 1 && bx < 1) {
    const int i0 = tid;
    __align__(16) float C_v[64];
    #pragma unroll
    for (int r_1 = 0; r_1 < 64; ++r_1) {
      C_v[r_1] = C_local[r_1];
    }
    *(uint4*)&C[(by * 128 + i0) * 72 + bx * 64] = *(const uint4*)&C_v[0];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 4)] = *(const uint4*)&C_v[4];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 8)] = *(const uint4*)&C_v[8];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 12)] = *(const uint4*)&C_v[12];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 16)] = *(const uint4*)&C_v[16];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 20)] = *(const uint4*)&C_v[20];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 24)] = *(const uint4*)&C_v[24];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 28)] = *(const uint4*)&C_v[28];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 32)] = *(const uint4*)&C_v[32];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 36)] = *(const uint4*)&C_v[36];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 40)] = *(const uint4*)&C_v[40];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 44)] = *(const uint4*)&C_v[44];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 48)] = *(const uint4*)&C_v[48];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 52)] = *(const uint4*)&C_v[52];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 56)] = *(const uint4*)&C_v[56];
    *(uint4*)&C[(by * 128 + i0) * 72 + (bx * 64 + 60)] = *(const uint4*)&C_v[60];
  }
  else {
    const int i0_1 = tid;
    if (by * 128 + i0_1 < 130) {
      if (bx * 64 + 63 < 72) {
        __align__(16) float C_v_1[64];
        #pragma unroll
        for (int r_2 = 0; r_2 < 64; ++r_2) {
          C_v_1[r_2] = C_local[r_2];
        }
        *(uint4*)&C[(by * 128 + i0_1) * 72 + bx * 64] = *(const uint4*)&C_v_1[0];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 4)] = *(const uint4*)&C_v_1[4];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 8)] = *(const uint4*)&C_v_1[8];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 12)] = *(const uint4*)&C_v_1[12];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 16)] = *(const uint4*)&C_v_1[16];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 20)] = *(const uint4*)&C_v_1[20];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 24)] = *(const uint4*)&C_v_1[24];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 28)] = *(const uint4*)&C_v_1[28];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 32)] = *(const uint4*)&C_v_1[32];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 36)] = *(const uint4*)&C_v_1[36];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 40)] = *(const uint4*)&C_v_1[40];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 44)] = *(const uint4*)&C_v_1[44];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 48)] = *(const uint4*)&C_v_1[48];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 52)] = *(const uint4*)&C_v_1[52];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 56)] = *(const uint4*)&C_v_1[56];
        *(uint4*)&C[(by * 128 + i0_1) * 72 + (bx * 64 + 60)] = *(const uint4*)&C_v_1[60];
      }
      else {
        #pragma unroll
        for (int r_3 = 0; r_3 < 64; ++r_3) {
          if (bx * 64 + r_3 < 72) {
            C[(by * 128 + i0_1) * 72 + (bx * 64 + r_3)] = C_local[r_3];
          }
        }
      }
    }
  }
  __syncthreads();
  if (warp < 1) {
    tcgen05_dealloc_cta_group_1_sync_aligned_b32(tensor_columns[0], 128);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&product_done[0]);
    mbarrier_inval_shared_cta_b64(&product_done[1]);
  }
}
