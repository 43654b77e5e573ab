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
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(shared_address(p))
      : "memory");
}
__device__ __forceinline__ void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float* d, const unsigned* a, const unsigned* b, const float* c) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
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

extern "C" __global__ void __launch_bounds__(128) gemm(
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
  f16* const A_shared_stages = (f16*)smem;
  f16* const B_shared_stages = (f16*)(smem + 4096);
  float C_local[8];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        C_local[r * 4 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  unsigned long long* const k_arrived = (unsigned long long*)(smem + 8192);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&k_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&k_arrived[1], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[0], 4096);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[0], &A_descriptor, 0, by * 32, &k_arrived[0]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[0], &B_descriptor, 0, bx * 32, &k_arrived[0]);
  }
  const int lane = tid & 31;
  const int warp_row = ((tid >> 5) >> 1) * 16;
  const int warp_column = ((tid >> 5) & 1) * 16;
  unsigned a_words[8];
  unsigned b_words[8];
  const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
  const int a_k = ((lane >> 3) >> 1) * 8;
  const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
  const int b_k = ((lane >> 3) & 1) * 8;
  const int slot_next = 0 & 1;
  mbarrier_wait_parity(&k_arrived[slot_next], (0 >> 1) & 1);
  __syncthreads();
  ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &A_shared_stages[slot_next * 1024 + a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
  ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[0], &B_shared_stages[slot_next * 1024 + b_line * 32 + ((b_k >> 3) ^ ((b_line & 7) >> 1)) * 8]);
  const int slot_ahead = (0 + 1) & 1;
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead], 4096);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead * 1024], &A_descriptor, 0 * 32 + 32, by * 32, &k_arrived[slot_ahead]);
    cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead * 1024], &B_descriptor, 0 * 32 + 32, bx * 32, &k_arrived[slot_ahead]);
  }
  for (int k = 0; k < 3; ++k) {
    const int slot = k & 1;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], (f16*)((char*)A_shared_stages + ((unsigned)(slot * 2048) + (unsigned)(a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[4], (f16*)((char*)B_shared_stages + ((unsigned)(slot * 2048) + (unsigned)(b_line * 32 + (((b_k >> 3) + 2) ^ ((b_line & 7) >> 1)) * 8) * 2u)));
    #pragma unroll
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &C_local[column_tile * 4]);
    }
    const int slot_next_1 = k + 1 < 3 ? (k + 1) & 1 : k & 1;
    mbarrier_wait_parity(&k_arrived[slot_next_1], ((k + 1 < 3 ? k + 1 : k) >> 1) & 1);
    __syncthreads();
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], (f16*)((char*)A_shared_stages + ((unsigned)(slot_next_1 * 2048) + (unsigned)(a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8) * 2u)));
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[0], (f16*)((char*)B_shared_stages + ((unsigned)(slot_next_1 * 2048) + (unsigned)(b_line * 32 + ((b_k >> 3) ^ ((b_line & 7) >> 1)) * 8) * 2u)));
    const int slot_ahead_1 = (k + 1 + 1) & 1;
    if (k + 1 + 1 < 3) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&k_arrived[slot_ahead_1], 4096);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&A_shared_stages[slot_ahead_1 * 1024], &A_descriptor, (k + 1) * 32 + 32, by * 32, &k_arrived[slot_ahead_1]);
        cp_async_bulk_tensor_2d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&B_shared_stages[slot_ahead_1 * 1024], &B_descriptor, (k + 1) * 32 + 32, bx * 32, &k_arrived[slot_ahead_1]);
      }
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&C_local[column_tile_1 * 4], &a_words[4], &b_words[column_tile_1 * 2 + 4], &C_local[column_tile_1 * 4]);
    }
  }
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&k_arrived[0]);
    mbarrier_inval_shared_cta_b64(&k_arrived[1]);
  }
  if (by < 1 && bx < 2) {
    const int i0 = (tid >> 6) * 16 + ((tid & 31) >> 2);
    const int i1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
    #pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      #pragma unroll
      for (int r_3 = 0; r_3 < 2; ++r_3) {
        __align__(16) f16 C_v[2];
        #pragma unroll
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = cvt_rn_f16_f32(C_local[r_2 * 4 + r_3 * 2 + v_1]);
        }
        *(unsigned*)(&C[(by * 32 + i0) * 72 + (bx * 32 + i1)] + (r_3 * 576 + r_2 * 8)) = *(const unsigned*)&C_v[0];
      }
    }
  }
  else {
    const int i0_1 = (tid >> 6) * 16 + ((tid & 31) >> 2);
    const int i1_1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
    #pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      #pragma unroll
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        if (by * 32 + (r_5 * 8 + i0_1) < 40 && bx * 32 + (r_4 * 8 + i1_1) < 72) {
          __align__(16) f16 C_v_1[2];
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = cvt_rn_f16_f32(C_local[r_4 * 4 + r_5 * 2 + v_2]);
          }
          *(unsigned*)(&C[(by * 32 + i0_1) * 72 + (bx * 32 + i1_1)] + (r_5 * 576 + r_4 * 8)) = *(const unsigned*)&C_v_1[0];
        }
      }
    }
  }
}
