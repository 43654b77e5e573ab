typedef unsigned short f16;
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
__device__ __forceinline__ void cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, int at2, void* barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(at2), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int column, int row0, int row1, int row2, int row3, void* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(column), "r"(row0), "r"(row1), "r"(row2), "r"(row3), "r"(shared_address(barrier))
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
__device__ __forceinline__ void keep_f32_32(float* d) {
  asm volatile(""
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      :
      : "memory");
}

extern "C" __global__ void __launch_bounds__(128) main_1(
    const f16* __restrict__ X,
    const f16* __restrict__ W,
    const int* __restrict__ rows,
    const int* __restrict__ expert,
    float* __restrict__ Y,
    const __grid_constant__ CUtensorMap rows_descriptor,
    const __grid_constant__ CUtensorMap W_descriptor,
    const __grid_constant__ CUtensorMap X_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned* const tensor_columns = (unsigned*)(smem + 25152);
  unsigned long long* const product_done = (unsigned long long*)(smem + 25088);
  int products;
  products = 0;
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&product_done[0], 1);
    mbarrier_init_shared_cta_b64(&product_done[1], 1);
  }
  if (warp < 1) {
    tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(&tensor_columns[0], 32);
    tcgen05_relinquish_alloc_permit_cta_group_1_sync_aligned();
  }
  unsigned long long* const mine_arrived = (unsigned long long*)(smem + 25120);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&mine_arrived[0], 1);
  }
  unsigned long long* const X_shared_arrived = (unsigned long long*)(smem + 25136);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&X_shared_arrived[0], 1);
  }
  int X_shared_phase;
  X_shared_phase = 0;
  int* const mine = (int*)(smem + 24576);
  f16* const X_shared = (f16*)smem;
  f16* const W_shared_stages = (f16*)(smem + 16384);
  float Y_local[32];
  float* const Y_shared = (float*)smem;
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&mine_arrived[0], 512);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&mine[0], &rows_descriptor, 0, by, &mine_arrived[0]);
  }
  mbarrier_wait_parity(&mine_arrived[0], 0);
  #pragma unroll
  for (int r = 0; r < 32; ++r) {
    Y_local[r] = 0.0f;
  }
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 25104);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 4096);
    cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&W_shared_stages[0], &W_descriptor, bx * 32, 0, expert[by], &k_arrived[0]);
  }
  tcgen05_st_sync_aligned_32x32b_x32_b32_f32(&Y_local[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u);
  tcgen05_wait_st_sync_aligned();
  for (int k = 0; k < 2; ++k) {
    const int slot = k & 1;
    mbarrier_wait_parity(&k_arrived[slot], (k >> 1) & 1);
    __syncthreads();
    const int slot_ahead = (k + 1) & 1;
    if (k + 1 < 2) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 4096);
        cp_async_bulk_tensor_3d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&W_shared_stages[slot_ahead * 2048], &W_descriptor, bx * 32, k * 64 + 64, expert[by], &k_arrived[slot_ahead]);
      }
    }
    if (warp == 0 && elect_sync() != 0u) {
      mbarrier_arrive_expect_tx_shared_cta_b64(&X_shared_arrived[0], 16384);
      const int row = mine[0];
      const int row_1 = mine[1];
      const int row_2 = mine[2];
      const int row_3 = mine[3];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[0], &X_descriptor, k * 64, row, row_1, row_2, row_3, &X_shared_arrived[0]);
      const int row_4 = mine[4];
      const int row_5 = mine[5];
      const int row_6 = mine[6];
      const int row_7 = mine[7];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[256], &X_descriptor, k * 64, row_4, row_5, row_6, row_7, &X_shared_arrived[0]);
      const int row_8 = mine[8];
      const int row_9 = mine[9];
      const int row_10 = mine[10];
      const int row_11 = mine[11];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[512], &X_descriptor, k * 64, row_8, row_9, row_10, row_11, &X_shared_arrived[0]);
      const int row_12 = mine[12];
      const int row_13 = mine[13];
      const int row_14 = mine[14];
      const int row_15 = mine[15];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[768], &X_descriptor, k * 64, row_12, row_13, row_14, row_15, &X_shared_arrived[0]);
      const int row_16 = mine[16];
      const int row_17 = mine[17];
      const int row_18 = mine[18];
      const int row_19 = mine[19];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[1024], &X_descriptor, k * 64, row_16, row_17, row_18, row_19, &X_shared_arrived[0]);
      const int row_20 = mine[20];
      const int row_21 = mine[21];
      const int row_22 = mine[22];
      const int row_23 = mine[23];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[1280], &X_descriptor, k * 64, row_20, row_21, row_22, row_23, &X_shared_arrived[0]);
      const int row_24 = mine[24];
      const int row_25 = mine[25];
      const int row_26 = mine[26];
      const int row_27 = mine[27];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[1536], &X_descriptor, k * 64, row_24, row_25, row_26, row_27, &X_shared_arrived[0]);
      const int row_28 = mine[28];
      const int row_29 = mine[29];
      const int row_30 = mine[30];
      const int row_31 = mine[31];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[1792], &X_descriptor, k * 64, row_28, row_29, row_30, row_31, &X_shared_arrived[0]);
      const int row_32 = mine[32];
      const int row_33 = mine[33];
      const int row_34 = mine[34];
      const int row_35 = mine[35];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[2048], &X_descriptor, k * 64, row_32, row_33, row_34, row_35, &X_shared_arrived[0]);
      const int row_36 = mine[36];
      const int row_37 = mine[37];
      const int row_38 = mine[38];
      const int row_39 = mine[39];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[2304], &X_descriptor, k * 64, row_36, row_37, row_38, row_39, &X_shared_arrived[0]);
      const int row_40 = mine[40];
      const int row_41 = mine[41];
      const int row_42 = mine[42];
      const int row_43 = mine[43];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[2560], &X_descriptor, k * 64, row_40, row_41, row_42, row_43, &X_shared_arrived[0]);
      const int row_44 = mine[44];
      const int row_45 = mine[45];
      const int row_46 = mine[46];
      const int row_47 = mine[47];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[2816], &X_descriptor, k * 64, row_44, row_45, row_46, row_47, &X_shared_arrived[0]);
      const int row_48 = mine[48];
      const int row_49 = mine[49];
      const int row_50 = mine[50];
      const int row_51 = mine[51];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[3072], &X_descriptor, k * 64, row_48, row_49, row_50, row_51, &X_shared_arrived[0]);
      const int row_52 = mine[52];
      const int row_53 = mine[53];
      const int row_54 = mine[54];
      const int row_55 = mine[55];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[3328], &X_descriptor, k * 64, row_52, row_53, row_54, row_55, &X_shared_arrived[0]);
      const int row_56 = mine[56];
      const int row_57 = mine[57];
      const int row_58 = mine[58];
      const int row_59 = mine[59];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[3584], &X_descriptor, k * 64, row_56, row_57, row_58, row_59, &X_shared_arrived[0]);
      const int row_60 = mine[60];
      const int row_61 = mine[61];
      const int row_62 = mine[62];
      const int row_63 = mine[63];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[3840], &X_descriptor, k * 64, row_60, row_61, row_62, row_63, &X_shared_arrived[0]);
      const int row_64 = mine[64];
      const int row_65 = mine[65];
      const int row_66 = mine[66];
      const int row_67 = mine[67];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[4096], &X_descriptor, k * 64, row_64, row_65, row_66, row_67, &X_shared_arrived[0]);
      const int row_68 = mine[68];
      const int row_69 = mine[69];
      const int row_70 = mine[70];
      const int row_71 = mine[71];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[4352], &X_descriptor, k * 64, row_68, row_69, row_70, row_71, &X_shared_arrived[0]);
      const int row_72 = mine[72];
      const int row_73 = mine[73];
      const int row_74 = mine[74];
      const int row_75 = mine[75];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[4608], &X_descriptor, k * 64, row_72, row_73, row_74, row_75, &X_shared_arrived[0]);
      const int row_76 = mine[76];
      const int row_77 = mine[77];
      const int row_78 = mine[78];
      const int row_79 = mine[79];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[4864], &X_descriptor, k * 64, row_76, row_77, row_78, row_79, &X_shared_arrived[0]);
      const int row_80 = mine[80];
      const int row_81 = mine[81];
      const int row_82 = mine[82];
      const int row_83 = mine[83];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[5120], &X_descriptor, k * 64, row_80, row_81, row_82, row_83, &X_shared_arrived[0]);
      const int row_84 = mine[84];
      const int row_85 = mine[85];
      const int row_86 = mine[86];
      const int row_87 = mine[87];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[5376], &X_descriptor, k * 64, row_84, row_85, row_86, row_87, &X_shared_arrived[0]);
      const int row_88 = mine[88];
      const int row_89 = mine[89];
      const int row_90 = mine[90];
      const int row_91 = mine[91];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[5632], &X_descriptor, k * 64, row_88, row_89, row_90, row_91, &X_shared_arrived[0]);
      const int row_92 = mine[92];
      const int row_93 = mine[93];
      const int row_94 = mine[94];
      const int row_95 = mine[95];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[5888], &X_descriptor, k * 64, row_92, row_93, row_94, row_95, &X_shared_arrived[0]);
      const int row_96 = mine[96];
      const int row_97 = mine[97];
      const int row_98 = mine[98];
      const int row_99 = mine[99];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[6144], &X_descriptor, k * 64, row_96, row_97, row_98, row_99, &X_shared_arrived[0]);
      const int row_100 = mine[100];
      const int row_101 = mine[101];
      const int row_102 = mine[102];
      const int row_103 = mine[103];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[6400], &X_descriptor, k * 64, row_100, row_101, row_102, row_103, &X_shared_arrived[0]);
      const int row_104 = mine[104];
      const int row_105 = mine[105];
      const int row_106 = mine[106];
      const int row_107 = mine[107];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[6656], &X_descriptor, k * 64, row_104, row_105, row_106, row_107, &X_shared_arrived[0]);
      const int row_108 = mine[108];
      const int row_109 = mine[109];
      const int row_110 = mine[110];
      const int row_111 = mine[111];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[6912], &X_descriptor, k * 64, row_108, row_109, row_110, row_111, &X_shared_arrived[0]);
      const int row_112 = mine[112];
      const int row_113 = mine[113];
      const int row_114 = mine[114];
      const int row_115 = mine[115];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[7168], &X_descriptor, k * 64, row_112, row_113, row_114, row_115, &X_shared_arrived[0]);
      const int row_116 = mine[116];
      const int row_117 = mine[117];
      const int row_118 = mine[118];
      const int row_119 = mine[119];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[7424], &X_descriptor, k * 64, row_116, row_117, row_118, row_119, &X_shared_arrived[0]);
      const int row_120 = mine[120];
      const int row_121 = mine[121];
      const int row_122 = mine[122];
      const int row_123 = mine[123];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[7680], &X_descriptor, k * 64, row_120, row_121, row_122, row_123, &X_shared_arrived[0]);
      const int row_124 = mine[124];
      const int row_125 = mine[125];
      const int row_126 = mine[126];
      const int row_127 = mine[127];
      cp_async_bulk_tensor_2d_shared_cta_global_tile_gather4_mbarrier_complete_tx_bytes(&X_shared[7936], &X_descriptor, k * 64, row_124, row_125, row_126, row_127, &X_shared_arrived[0]);
    }
    mbarrier_wait_parity(&X_shared_arrived[0], X_shared_phase);
    X_shared_phase = 1u - (unsigned)X_shared_phase;
    const unsigned columns = tensor_columns[0];
    tcgen05_fence_before_thread_sync();
    __syncthreads();
    if (tid == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_mma_cta_group_1_kind_f16(columns, &X_shared[0], 16, 1024, 2, 0, &W_shared_stages[slot * 2048], 4096, 512, 4, 0, 134807568u, 1);
      tcgen05_mma_cta_group_1_kind_f16(columns, &X_shared[0], 16, 1024, 2, 2, &W_shared_stages[slot * 2048], 4096, 512, 4, 64, 134807568u, 1);
      tcgen05_mma_cta_group_1_kind_f16(columns, &X_shared[0], 16, 1024, 2, 4, &W_shared_stages[slot * 2048], 4096, 512, 4, 128, 134807568u, 1);
      tcgen05_mma_cta_group_1_kind_f16(columns, &X_shared[0], 16, 1024, 2, 6, &W_shared_stages[slot * 2048], 4096, 512, 4, 192, 134807568u, 1);
      tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&product_done[products & 1]);
    }
    products = (int)((unsigned)products + 1u) & 3;
    mbarrier_wait_parity(&product_done[(products + 1) & 1], ((products - 1) >> 1) & 1);
    tcgen05_fence_after_thread_sync();
  }
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
  }
  tcgen05_ld_sync_aligned_32x32b_x32_b32_f32(&Y_local[0], tensor_columns[0] + (unsigned)((tid >> 5) & 3) * 2097152u);
  tcgen05_wait_ld_sync_aligned();
  keep_f32_32(&Y_local[0]);
  const int i0 = tid;
  __align__(16) float Y_shared_v[32];
  #pragma unroll
  for (int r_1 = 0; r_1 < 32; ++r_1) {
    Y_shared_v[r_1] = Y_local[r_1];
  }
  *(uint4*)&Y_shared[i0 * 32 + (i0 & 7) * 4] = *(const uint4*)&Y_shared_v[0];
  *(uint4*)&Y_shared[i0 * 32 + (1 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[4];
  *(uint4*)&Y_shared[i0 * 32 + (2 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[8];
  *(uint4*)&Y_shared[i0 * 32 + (3 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[12];
  *(uint4*)&Y_shared[i0 * 32 + (4 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[16];
  *(uint4*)&Y_shared[i0 * 32 + (5 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[20];
  *(uint4*)&Y_shared[i0 * 32 + (6 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[24];
  *(uint4*)&Y_shared[i0 * 32 + (7 ^ (i0 & 7)) * 4] = *(const uint4*)&Y_shared_v[28];
  if (bx < 1) {
    __syncthreads();
    const int i0_1 = tid & 31;
    if (warp == 0) {
      for (int i = 0; i < 128; ++i) {
        const long long row_128 = (long long)mine[i];
        if (row_128 >= 0LL && row_128 < 150LL) {
          Y[row_128 * 48LL + (long long)(bx * 32 + i0_1)] = Y_shared[i * 32 + ((i0_1 >> 2) ^ (i & 7)) * 4 + (i0_1 & 3)];
        }
      }
    }
  }
  else {
    __syncthreads();
    const int i0_2 = tid & 31;
    if (warp == 0) {
      for (int i_1 = 0; i_1 < 128; ++i_1) {
        const long long row_129 = (long long)mine[i_1];
        if (row_129 >= 0LL && row_129 < 150LL) {
          if (bx * 32 + i0_2 < 48) {
            Y[row_129 * 48LL + (long long)(bx * 32 + i0_2)] = Y_shared[i_1 * 32 + ((i0_2 >> 2) ^ (i_1 & 7)) * 4 + (i0_2 & 3)];
          }
        }
      }
    }
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&mine_arrived[0]);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&X_shared_arrived[0]);
  }
  __syncthreads();
  if (warp < 1) {
    tcgen05_dealloc_cta_group_1_sync_aligned_b32(tensor_columns[0], 32);
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&product_done[0]);
    mbarrier_inval_shared_cta_b64(&product_done[1]);
  }
}
