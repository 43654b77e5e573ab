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
__device__ __forceinline__ void tcgen05_ld_sync_aligned_32x32b_x16_b32_f32(float* d, unsigned address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
      : "r"(address)
      : "memory");
}
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
__device__ __forceinline__ void tcgen05_mma_cta_group_1_kind_f16(unsigned address, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, unsigned kind, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
      :
      : "r"(address), "l"(tensor_descriptor(a, a_leading, a_stride, a_swizzle, a_chunks)), "l"(tensor_descriptor(b, b_leading, b_stride, b_swizzle, b_chunks)), "r"(kind), "r"(adds)
      : "memory");
}
__device__ __forceinline__ void keep_f32_48(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
      :
      : "memory");
}
__device__ __forceinline__ void keep_f32_64(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
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
  unsigned* const tensor_columns = (unsigned*)(smem + 47152);
  unsigned long long* const product_done = (unsigned long long*)(smem + 47104);
  int products;
  products = 0;
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&product_done[0], 1);
    mbarrier_init_shared_cta_b64(&product_done[1], 1);
  }
  if (warp < 1) {
    tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(&tensor_columns[0], 256);
    tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned();
  }
  f16* const A_shared_stages = (f16*)(smem + 30720);
  f16* const B_shared_stages = (f16*)smem;
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 47120);
  unsigned long long* const k_free = (unsigned long long*)(smem + 47136);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
  }
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_free[0], 8);
    mbarrier_init_shared_cta_b64(&k_free[1], 8);
  }
  fence_mbarrier_init_release_cluster();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 23552);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[0], &A_descriptor, 0, by * 128, &k_arrived[0]);
    if ((by & 1) == 0) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[0], &B_descriptor, 0, bx * 240, &k_arrived[0], 3);
    }
    if ((by & 1) == 1) {
      cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[3840], &B_descriptor, 0, bx * 240 + 120, &k_arrived[0], 3);
    }
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  for (int k = 0; k < 3; ++k) {
    const int slot = k & 1;
    mbarrier_wait_parity(&k_arrived[slot], (k >> 1) & 1);
    const unsigned columns = tensor_columns[0];
    tcgen05_fence_before_thread_sync();
    __syncthreads();
    if (tid == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_mma_cta_group_1_kind_f16(columns, &A_shared_stages[slot * 4096], 16, 512, 4, 0, &B_shared_stages[slot * 7680], 16, 512, 4, 0, 138149904u, k == 0 ? 0 : 1);
      tcgen05_mma_cta_group_1_kind_f16(columns, &A_shared_stages[slot * 4096], 16, 512, 4, 2, &B_shared_stages[slot * 7680], 16, 512, 4, 2, 138149904u, 1);
      tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&product_done[products & 1]);
    }
    products = (int)((unsigned)products + 1u) & 3;
    mbarrier_wait_parity(&product_done[products & 1], ((products - 2) >> 1) & 1);
    tcgen05_fence_after_thread_sync();
    if (k - 1 >= 0) {
      if ((tid & 31) < 2) {
        mbarrier_arrive_shared_cluster_b64(&k_free[(k + 1) & 1], (by & 1) ^ (tid & 31));
      }
    }
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_wait_parity(&k_free[slot_ahead], (((k + 1) >> 1) - 1) & 1);
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 23552);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead * 4096], &A_descriptor, k * 32 + 32, by * 128, &k_arrived[slot_ahead]);
        if ((by & 1) == 0) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[slot_ahead * 7680], &B_descriptor, k * 32 + 32, bx * 240, &k_arrived[slot_ahead], 3);
        }
        if ((by & 1) == 1) {
          cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster(&B_shared_stages[slot_ahead * 7680 + 3840], &B_descriptor, k * 32 + 32, bx * 240 + 120, &k_arrived[slot_ahead], 3);
        }
      }
    }
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
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
  float C_local_piece[64];
  for (int piece = 0; piece < 3; ++piece) {
    tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + (unsigned)(piece * 64));
    tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece[32], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + (unsigned)(piece * 64) + 32u);
    tcgen05_wait_ld_sync_aligned();
    keep_f32_64(&C_local_piece[0]);
    if (by < 1 && bx * 240 + piece * 64 < 187) {
      const int i0 = tid;
      __align__(16) f16 C_v[64];
      #pragma unroll
      for (int r = 0; r < 64; ++r) {
        C_v[r] = cvt_rn_f16_f32(C_local_piece[r]);
      }
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64)] = *(const unsigned*)&C_v[0];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 2)] = *(const unsigned*)&C_v[2];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 4)] = *(const unsigned*)&C_v[4];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 6)] = *(const unsigned*)&C_v[6];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 8)] = *(const unsigned*)&C_v[8];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 10)] = *(const unsigned*)&C_v[10];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 12)] = *(const unsigned*)&C_v[12];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 14)] = *(const unsigned*)&C_v[14];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 16)] = *(const unsigned*)&C_v[16];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 18)] = *(const unsigned*)&C_v[18];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 20)] = *(const unsigned*)&C_v[20];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 22)] = *(const unsigned*)&C_v[22];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 24)] = *(const unsigned*)&C_v[24];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 26)] = *(const unsigned*)&C_v[26];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 28)] = *(const unsigned*)&C_v[28];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 30)] = *(const unsigned*)&C_v[30];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 32)] = *(const unsigned*)&C_v[32];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 34)] = *(const unsigned*)&C_v[34];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 36)] = *(const unsigned*)&C_v[36];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 38)] = *(const unsigned*)&C_v[38];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 40)] = *(const unsigned*)&C_v[40];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 42)] = *(const unsigned*)&C_v[42];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 44)] = *(const unsigned*)&C_v[44];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 46)] = *(const unsigned*)&C_v[46];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 48)] = *(const unsigned*)&C_v[48];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 50)] = *(const unsigned*)&C_v[50];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 52)] = *(const unsigned*)&C_v[52];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 54)] = *(const unsigned*)&C_v[54];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 56)] = *(const unsigned*)&C_v[56];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 58)] = *(const unsigned*)&C_v[58];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 60)] = *(const unsigned*)&C_v[60];
      *(unsigned*)&C[(by * 128 + i0) * 250 + (bx * 240 + piece * 64 + 62)] = *(const unsigned*)&C_v[62];
    }
    else {
      const int i0_1 = tid;
      if (by * 128 + i0_1 < 131) {
        if (bx * 240 + piece * 64 + 63 < 250) {
          __align__(16) f16 C_v_1[64];
          #pragma unroll
          for (int r_1 = 0; r_1 < 64; ++r_1) {
            C_v_1[r_1] = cvt_rn_f16_f32(C_local_piece[r_1]);
          }
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64)] = *(const unsigned*)&C_v_1[0];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 2)] = *(const unsigned*)&C_v_1[2];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 4)] = *(const unsigned*)&C_v_1[4];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 6)] = *(const unsigned*)&C_v_1[6];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 8)] = *(const unsigned*)&C_v_1[8];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 10)] = *(const unsigned*)&C_v_1[10];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 12)] = *(const unsigned*)&C_v_1[12];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 14)] = *(const unsigned*)&C_v_1[14];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 16)] = *(const unsigned*)&C_v_1[16];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 18)] = *(const unsigned*)&C_v_1[18];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 20)] = *(const unsigned*)&C_v_1[20];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 22)] = *(const unsigned*)&C_v_1[22];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 24)] = *(const unsigned*)&C_v_1[24];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 26)] = *(const unsigned*)&C_v_1[26];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 28)] = *(const unsigned*)&C_v_1[28];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 30)] = *(const unsigned*)&C_v_1[30];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 32)] = *(const unsigned*)&C_v_1[32];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 34)] = *(const unsigned*)&C_v_1[34];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 36)] = *(const unsigned*)&C_v_1[36];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 38)] = *(const unsigned*)&C_v_1[38];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 40)] = *(const unsigned*)&C_v_1[40];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 42)] = *(const unsigned*)&C_v_1[42];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 44)] = *(const unsigned*)&C_v_1[44];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 46)] = *(const unsigned*)&C_v_1[46];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 48)] = *(const unsigned*)&C_v_1[48];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 50)] = *(const unsigned*)&C_v_1[50];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 52)] = *(const unsigned*)&C_v_1[52];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 54)] = *(const unsigned*)&C_v_1[54];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 56)] = *(const unsigned*)&C_v_1[56];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 58)] = *(const unsigned*)&C_v_1[58];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 60)] = *(const unsigned*)&C_v_1[60];
          *(unsigned*)&C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + 62)] = *(const unsigned*)&C_v_1[62];
        }
        else {
          #pragma unroll
          for (int r_2 = 0; r_2 < 64; ++r_2) {
            if (bx * 240 + piece * 64 + r_2 < 250) {
              C[(by * 128 + i0_1) * 250 + (bx * 240 + piece * 64 + r_2)] = cvt_rn_f16_f32(C_local_piece[r_2]);
            }
          }
        }
      }
    }
  }
  float C_local_piece_1[48];
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local_piece_1[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 192u);
  tcgen05_ld_sync_aligned_32x32b_x16_b32_f32(&C_local_piece_1[32], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 192u + 32u);
  tcgen05_wait_ld_sync_aligned();
  keep_f32_48(&C_local_piece_1[0]);
  if (by < 1 && bx < 1) {
    const int i0_2 = tid;
    __align__(16) f16 C_v_2[48];
    #pragma unroll
    for (int r_3 = 0; r_3 < 48; ++r_3) {
      C_v_2[r_3] = cvt_rn_f16_f32(C_local_piece_1[r_3]);
    }
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 192)] = *(const unsigned*)&C_v_2[0];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 194)] = *(const unsigned*)&C_v_2[2];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 196)] = *(const unsigned*)&C_v_2[4];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 198)] = *(const unsigned*)&C_v_2[6];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 200)] = *(const unsigned*)&C_v_2[8];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 202)] = *(const unsigned*)&C_v_2[10];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 204)] = *(const unsigned*)&C_v_2[12];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 206)] = *(const unsigned*)&C_v_2[14];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 208)] = *(const unsigned*)&C_v_2[16];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 210)] = *(const unsigned*)&C_v_2[18];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 212)] = *(const unsigned*)&C_v_2[20];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 214)] = *(const unsigned*)&C_v_2[22];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 216)] = *(const unsigned*)&C_v_2[24];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 218)] = *(const unsigned*)&C_v_2[26];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 220)] = *(const unsigned*)&C_v_2[28];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 222)] = *(const unsigned*)&C_v_2[30];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 224)] = *(const unsigned*)&C_v_2[32];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 226)] = *(const unsigned*)&C_v_2[34];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 228)] = *(const unsigned*)&C_v_2[36];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 230)] = *(const unsigned*)&C_v_2[38];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 232)] = *(const unsigned*)&C_v_2[40];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 234)] = *(const unsigned*)&C_v_2[42];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 236)] = *(const unsigned*)&C_v_2[44];
    *(unsigned*)&C[(by * 128 + i0_2) * 250 + (bx * 240 + 238)] = *(const unsigned*)&C_v_2[46];
  }
  else {
    const int i0_3 = tid;
    if (by * 128 + i0_3 < 131) {
      if (bx * 240 + 192 + 47 < 250) {
        __align__(16) f16 C_v_3[48];
        #pragma unroll
        for (int r_4 = 0; r_4 < 48; ++r_4) {
          C_v_3[r_4] = cvt_rn_f16_f32(C_local_piece_1[r_4]);
        }
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 192)] = *(const unsigned*)&C_v_3[0];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 194)] = *(const unsigned*)&C_v_3[2];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 196)] = *(const unsigned*)&C_v_3[4];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 198)] = *(const unsigned*)&C_v_3[6];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 200)] = *(const unsigned*)&C_v_3[8];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 202)] = *(const unsigned*)&C_v_3[10];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 204)] = *(const unsigned*)&C_v_3[12];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 206)] = *(const unsigned*)&C_v_3[14];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 208)] = *(const unsigned*)&C_v_3[16];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 210)] = *(const unsigned*)&C_v_3[18];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 212)] = *(const unsigned*)&C_v_3[20];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 214)] = *(const unsigned*)&C_v_3[22];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 216)] = *(const unsigned*)&C_v_3[24];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 218)] = *(const unsigned*)&C_v_3[26];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 220)] = *(const unsigned*)&C_v_3[28];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 222)] = *(const unsigned*)&C_v_3[30];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 224)] = *(const unsigned*)&C_v_3[32];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 226)] = *(const unsigned*)&C_v_3[34];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 228)] = *(const unsigned*)&C_v_3[36];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 230)] = *(const unsigned*)&C_v_3[38];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 232)] = *(const unsigned*)&C_v_3[40];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 234)] = *(const unsigned*)&C_v_3[42];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 236)] = *(const unsigned*)&C_v_3[44];
        *(unsigned*)&C[(by * 128 + i0_3) * 250 + (bx * 240 + 238)] = *(const unsigned*)&C_v_3[46];
      }
      else {
        #pragma unroll
        for (int r_5 = 0; r_5 < 48; ++r_5) {
          if (bx * 240 + 192 + r_5 < 250) {
            C[(by * 128 + i0_3) * 250 + (bx * 240 + r_5 + 192)] = cvt_rn_f16_f32(C_local_piece_1[r_5]);
          }
        }
      }
    }
  }
  __syncthreads();
  if (warp < 1) {
    tcgen05_dealloc_cta_group_1_sync_aligned_b32(tensor_columns[0], 256);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&product_done[0]);
    mbarrier_inval_shared_cta_b64(&product_done[1]);
  }
}
