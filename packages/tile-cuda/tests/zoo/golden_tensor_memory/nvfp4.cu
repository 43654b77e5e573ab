struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ void cp_async_ca_shared_global_8(void* smem, const void* gmem) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
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
__device__ __forceinline__ void tcgen05_st_sync_aligned_32x32b_x4_b32_u32(const unsigned* d, unsigned address) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%4], {%0, %1, %2, %3};"
      :
      : "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(address)
      : "memory");
}
__device__ __forceinline__ void tcgen05_st_sync_aligned_32x32b_x8_b32_u32(const unsigned* d, unsigned address) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};"
      :
      : "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(d[4]), "r"(d[5]), "r"(d[6]), "r"(d[7]), "r"(address)
      : "memory");
}
__device__ __forceinline__ unsigned long long tensor_descriptor(const void* p, int leading, int stride, int swizzle, int chunks) {
  const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;
  const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;
  return (unsigned long long)high << 32 | (low + chunks);
}
__device__ __forceinline__ void tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_scale_vec_4X(unsigned address, const void* a, int a_leading, int a_stride, int a_swizzle, int a_chunks, const void* b, int b_leading, int b_stride, int b_swizzle, int b_chunks, unsigned a_scale, unsigned b_scale, unsigned kind, int adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %5, [%3], [%4], p; }"
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

extern "C" __global__ void __launch_bounds__(128) scaled(
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
  unsigned* const tensor_columns = (unsigned*)(smem + 27680);
  unsigned long long* const product_done = (unsigned long long*)(smem + 27648);
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
  unsigned char* const B_shared_stages = (unsigned char*)(smem + 16384);
  unsigned char* const rows_stages = (unsigned char*)(smem + 24576);
  unsigned char* const columns_stages = (unsigned char*)(smem + 26624);
  float C_local[64];
  #pragma unroll
  for (int r = 0; r < 64; ++r) {
    C_local[r] = 0.0f;
  }
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 27664);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 12288);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[0], &A_descriptor, 0, 0, &k_arrived[0]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, 0, 0, &k_arrived[0]);
  }
  cp_async_ca_shared_global_8(&rows_stages[tid * 8], &A_scale[tid * 24]);
  if (warp < 2) {
    cp_async_ca_shared_global_8(&columns_stages[tid * 8], &B_scale[tid * 24]);
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
    __syncthreads();
    const int lane = tid & 127;
    const int lane_row = lane;
    const unsigned columns = tensor_columns[0];
    unsigned scales[12];
    *(unsigned*)&scales[0] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8];
    scales[0] = scales[0] & 2139062143u;
    *(unsigned*)&scales[1] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 256];
    scales[1] = scales[1] & 2139062143u;
    *(unsigned*)&scales[2] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 512];
    scales[2] = scales[2] & 2139062143u;
    *(unsigned*)&scales[3] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 768];
    scales[3] = scales[3] & 2139062143u;
    *(unsigned*)&scales[4] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 4];
    scales[4] = scales[4] & 2139062143u;
    *(unsigned*)&scales[5] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 260];
    scales[5] = scales[5] & 2139062143u;
    *(unsigned*)&scales[6] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 516];
    scales[6] = scales[6] & 2139062143u;
    *(unsigned*)&scales[7] = *(const unsigned*)&rows_stages[slot * 1024 + (lane_row & 31) * 8 + 772];
    scales[7] = scales[7] & 2139062143u;
    *(unsigned*)&scales[8] = *(const unsigned*)&columns_stages[slot * 512 + (lane_row & 31) * 8];
    scales[8] = scales[8] & 2139062143u;
    *(unsigned*)&scales[9] = *(const unsigned*)&columns_stages[slot * 512 + (lane_row & 31) * 8 + 256];
    scales[9] = scales[9] & 2139062143u;
    *(unsigned*)&scales[10] = *(const unsigned*)&columns_stages[slot * 512 + (lane_row & 31) * 8 + 4];
    scales[10] = scales[10] & 2139062143u;
    *(unsigned*)&scales[11] = *(const unsigned*)&columns_stages[slot * 512 + (lane_row & 31) * 8 + 260];
    scales[11] = scales[11] & 2139062143u;
    tcgen05_st_sync_aligned_32x32b_x8_b32_u32(&scales[0], columns + (unsigned)((tid >> 5) & 3) * 2097152u + ((unsigned)(products & 1) * 12u + 64u));
    tcgen05_st_sync_aligned_32x32b_x4_b32_u32(&scales[8], columns + (unsigned)((tid >> 5) & 3) * 2097152u + ((unsigned)(products & 1) * 12u + 72u));
    tcgen05_wait_st_sync_aligned();
    tcgen05_fence_before_thread_sync();
    __syncthreads();
    if (tid == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_scale_vec_4X(columns, &A_shared_stages[slot * 8192], 16, 512, 4, 0, &B_shared_stages[slot * 4096], 16, 512, 4, 0, columns + ((unsigned)(products & 1) * 12u + 64u), columns + ((unsigned)(products & 1) * 12u + 72u), 135267456u, 1);
      tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_scale_vec_4X(columns, &A_shared_stages[slot * 8192], 16, 512, 4, 2, &B_shared_stages[slot * 4096], 16, 512, 4, 2, columns + ((unsigned)(products & 1) * 12u + 68u), columns + ((unsigned)(products & 1) * 12u + 74u), 135267456u, 1);
      tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&product_done[products & 1]);
    }
    products = (int)((unsigned)products + 1u) & 3;
    mbarrier_wait_parity(&product_done[products & 1], ((products - 2) >> 1) & 1);
    tcgen05_fence_after_thread_sync();
    __syncthreads();
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 3) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 12288);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead * 8192], &A_descriptor, k * 64 + 64, 0, &k_arrived[slot_ahead]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 4096], &B_descriptor, k * 64 + 64, 0, &k_arrived[slot_ahead]);
      }
      cp_async_ca_shared_global_8((unsigned char*)((char*)rows_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)(tid * 8) * 1u)), &A_scale[tid * 24 + (k * 8 + 8)]);
      if (warp < 2) {
        cp_async_ca_shared_global_8((unsigned char*)((char*)columns_stages + ((unsigned)(slot_ahead * 512) + (unsigned)(tid * 8) * 1u)), &B_scale[tid * 24 + (k * 8 + 8)]);
      }
    }
    cp_async_commit_group();
  }
  mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
  tcgen05_fence_after_thread_sync();
  cp_async_wait_group_0();
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
  }
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u);
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&C_local[32], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u + 32u);
  tcgen05_wait_ld_sync_aligned();
  keep_f32_64(&C_local[0]);
  const int i0 = tid;
  __align__(16) float C_v[64];
  #pragma unroll
  for (int r_1 = 0; r_1 < 64; ++r_1) {
    C_v[r_1] = C_local[r_1];
  }
  *(uint4*)&C[i0 * 64] = *(const uint4*)&C_v[0];
  *(uint4*)&C[i0 * 64 + 4] = *(const uint4*)&C_v[4];
  *(uint4*)&C[i0 * 64 + 8] = *(const uint4*)&C_v[8];
  *(uint4*)&C[i0 * 64 + 12] = *(const uint4*)&C_v[12];
  *(uint4*)&C[i0 * 64 + 16] = *(const uint4*)&C_v[16];
  *(uint4*)&C[i0 * 64 + 20] = *(const uint4*)&C_v[20];
  *(uint4*)&C[i0 * 64 + 24] = *(const uint4*)&C_v[24];
  *(uint4*)&C[i0 * 64 + 28] = *(const uint4*)&C_v[28];
  *(uint4*)&C[i0 * 64 + 32] = *(const uint4*)&C_v[32];
  *(uint4*)&C[i0 * 64 + 36] = *(const uint4*)&C_v[36];
  *(uint4*)&C[i0 * 64 + 40] = *(const uint4*)&C_v[40];
  *(uint4*)&C[i0 * 64 + 44] = *(const uint4*)&C_v[44];
  *(uint4*)&C[i0 * 64 + 48] = *(const uint4*)&C_v[48];
  *(uint4*)&C[i0 * 64 + 52] = *(const uint4*)&C_v[52];
  *(uint4*)&C[i0 * 64 + 56] = *(const uint4*)&C_v[56];
  *(uint4*)&C[i0 * 64 + 60] = *(const uint4*)&C_v[60];
  __syncthreads();
  if (warp < 1) {
    tcgen05_dealloc_cta_group_1_sync_aligned_b32(tensor_columns[0], 128);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&product_done[0]);
    mbarrier_inval_shared_cta_b64(&product_done[1]);
  }
}
