typedef unsigned short f16;
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ float max_f32(float a, float b) { float d; asm("max.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; }
__device__ __forceinline__ float div_full_f32(float a, float b) {
  float d;
  asm("div.full.f32 %0, %1, %2;"
      : "=f"(d)
      : "f"(a), "f"(b));
  return d;
}
__device__ __forceinline__ float ex2_approx_ftz_f32(float x) { float d; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x)); return d; }
__device__ __forceinline__ float exp2_of_half_f32(float half) {
  const float root = ex2_approx_ftz_f32(half);
  return root * root;
}
__device__ __forceinline__ unsigned shfl_sync_idx_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ unsigned shfl_sync_bfly_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;"
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
__device__ __forceinline__ void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned* d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
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
__device__ __forceinline__ void cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(void* smem, const CUtensorMap* map, int at0, int at1, int at2, int at3, void* barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
      :
      : "r"(shared_address(smem)), "l"(map), "r"(at0), "r"(at1), "r"(at2), "r"(at3), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ unsigned shfl_sync_bfly_u32(unsigned x, int lane, int clamp, unsigned mask) { return shfl_sync_bfly_b32(x, lane, clamp, mask); }

extern "C" __global__ void __launch_bounds__(128) main_1(
    const f16* __restrict__ Q,
    const f16* __restrict__ K,
    const f16* __restrict__ V,
    f16* __restrict__ Output,
    const __grid_constant__ CUtensorMap Q_descriptor,
    const __grid_constant__ CUtensorMap K_descriptor,
    const __grid_constant__ CUtensorMap V_descriptor
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int bz = blockIdx.z;
  const int tid = threadIdx.x;
  const int warp = (int)shfl_sync_idx_b32((unsigned)(tid >> 5), 0, 31, 4294967295u);
  unsigned long long* const Q_shared_arrived = (unsigned long long*)(smem + 20496);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&Q_shared_arrived[0], 1);
  }
  f16* const Q_shared = (f16*)(smem + 16384);
  f16* const K_shared_stages = (f16*)smem;
  f16* const V_shared_stages = (f16*)(smem + 8192);
  float scores[32];
  __align__(16) f16 weights[32];
  float output[16];
  float top[2];
  float top_before[2];
  float correction[2];
  float row_sum[2];
  float total[2];
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&Q_shared_arrived[0], 4096);
    cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&Q_shared[0], &Q_descriptor, 0, 0, 0, 0, &Q_shared_arrived[0]);
  }
  mbarrier_wait_parity(&Q_shared_arrived[0], 0);
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        output[r * 4 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  #pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    total[r_2] = 0.0f;
  }
  #pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    top[r_3] = __int_as_float(0xff800000);
  }
  const int n_trips = (min(96, (bx + 1) * 64 + 32) + 64 - 1) >> 6;
  unsigned long long* const n_arrived = (unsigned long long*)(smem + 20480);
  if (tid == 0) {
    mbarrier_init_shared_cta_b64(&n_arrived[0], 1);
    mbarrier_init_shared_cta_b64(&n_arrived[1], 1);
  }
  fence_mbarrier_init_release_cluster();
  __syncthreads();
  if (warp == 0 && elect_sync() != 0u) {
    mbarrier_arrive_expect_tx_shared_cta_b64(&n_arrived[0], 8192);
    cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&K_shared_stages[0], &K_descriptor, 0, 0, 0, 0, &n_arrived[0]);
    cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&V_shared_stages[0], &V_descriptor, 0, 0, 0, 0, &n_arrived[0]);
  }
  for (int n = 0; n < 2; ++n) {
    const int slot = n & 1;
    mbarrier_wait_parity(&n_arrived[slot], (n >> 1) & 1);
    __syncthreads();
    const int slot_ahead = (n + 1) & 1;
    if (n + 1 < n_trips) {
      if (warp == 0 && elect_sync() != 0u) {
        mbarrier_arrive_expect_tx_shared_cta_b64(&n_arrived[slot_ahead], 8192);
        cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&K_shared_stages[slot_ahead * 2048], &K_descriptor, 0, n * 64 + 64, 0, 0, &n_arrived[slot_ahead]);
        cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(&V_shared_stages[slot_ahead * 2048], &V_descriptor, 0, n * 64 + 64, 0, 0, &n_arrived[slot_ahead]);
      }
    }
    const int lane = tid & 31;
    const int warp_row = (tid >> 5) * 16;
    const int warp_column = 0;
    #pragma unroll
    for (int column_tile = 0; column_tile < 8; ++column_tile) {
      #pragma unroll
      for (int half_1 = 0; half_1 < 2; ++half_1) {
        #pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          scores[column_tile * 4 + half_1 * 2 + pair] = 0.0f;
        }
      }
    }
    unsigned a_words[8];
    unsigned b_words[32];
    const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
    const int a_k = ((lane >> 3) >> 1) * 8;
    const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
    const int b_k = ((lane >> 3) & 1) * 8;
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &Q_shared[a_line * 32 + ((a_k >> 3) ^ ((a_line & 7) >> 1)) * 8]);
    #pragma unroll
    for (int b_tile = 0; b_tile < 4; ++b_tile) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile * 4], (f16*)((char*)K_shared_stages + ((unsigned)(slot * 4096 + b_line * 64 + ((b_k >> 3) ^ ((b_line & 7) >> 1)) * 16) + (unsigned)(b_tile * 512) * 2u)));
    }
    ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[4], &Q_shared[a_line * 32 + (((a_k >> 3) + 2) ^ ((a_line & 7) >> 1)) * 8]);
    #pragma unroll
    for (int b_tile_1 = 0; b_tile_1 < 4; ++b_tile_1) {
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[b_tile_1 * 4 + 16], (f16*)((char*)K_shared_stages + ((unsigned)(slot * 4096 + b_line * 64 + (((b_k >> 3) + 2) ^ ((b_line & 7) >> 1)) * 16) + (unsigned)(b_tile_1 * 512) * 2u)));
    }
    #pragma unroll
    for (int column_tile_1 = 0; column_tile_1 < 8; ++column_tile_1) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&scores[column_tile_1 * 4], &a_words[0], &b_words[column_tile_1 * 2], &scores[column_tile_1 * 4]);
    }
    #pragma unroll
    for (int column_tile_2 = 0; column_tile_2 < 8; ++column_tile_2) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&scores[column_tile_2 * 4], &a_words[4], &b_words[column_tile_2 * 2 + 16], &scores[column_tile_2 * 4]);
    }
    const int i = (tid >> 5) * 16 + ((tid & 31) >> 2);
    const int j = (tid & 3) * 2;
    if (n * 64 + (56 + j + 1) < 96 && bx * 64 + i + 32 >= n * 64 + (56 + j + 1)) {
      #pragma unroll
      for (int r_4 = 0; r_4 < 8; ++r_4) {
        #pragma unroll
        for (int r_5 = 0; r_5 < 2; ++r_5) {
          #pragma unroll
          for (int v_1 = 0; v_1 < 2; ++v_1) {
            scores[r_4 * 4 + r_5 * 2 + v_1] = scores[r_4 * 4 + r_5 * 2 + v_1] * 0.25503486f;
          }
        }
      }
    }
    else {
      #pragma unroll
      for (int r_6 = 0; r_6 < 8; ++r_6) {
        #pragma unroll
        for (int r_7 = 0; r_7 < 2; ++r_7) {
          #pragma unroll
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            scores[r_6 * 4 + r_7 * 2 + v_2] = n * 64 + (r_6 * 8 + j + v_2) < 96 && bx * 64 + (r_7 * 8 + i) + 32 >= n * 64 + (r_6 * 8 + j + v_2) ? scores[r_6 * 4 + r_7 * 2 + v_2] * 0.25503486f : __int_as_float(0xff800000);
          }
        }
      }
    }
    #pragma unroll
    for (int r_8 = 0; r_8 < 2; ++r_8) {
      top_before[r_8] = top[r_8];
    }
    float acc[2];
    #pragma unroll
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      acc[r_9] = __int_as_float(0xff800000);
      #pragma unroll
      for (int r_10 = 0; r_10 < 8; ++r_10) {
        #pragma unroll
        for (int r_11 = 0; r_11 < 2; ++r_11) {
          acc[r_9] = max_f32(acc[r_9], scores[r_10 * 4 + r_9 * 2 + r_11]);
        }
      }
    }
    #pragma unroll
    for (int r_12 = 0; r_12 < 2; ++r_12) {
      const float mine = acc[r_12];
      const float other = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine), 1, 31, 0xffffffffu));
      acc[r_12] = max_f32(acc[r_12], other);
    }
    #pragma unroll
    for (int r_13 = 0; r_13 < 2; ++r_13) {
      const float mine_1 = acc[r_13];
      const float other_1 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_1), 2, 31, 0xffffffffu));
      acc[r_13] = max_f32(acc[r_13], other_1);
    }
    #pragma unroll
    for (int r_14 = 0; r_14 < 2; ++r_14) {
      top[r_14] = max_f32(top[r_14], acc[r_14]);
    }
    #pragma unroll
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      correction[r_15] = exp2_of_half_f32(top_before[r_15] * 0.5f - top[r_15] * 0.5f);
    }
    #pragma unroll
    for (int r_16 = 0; r_16 < 8; ++r_16) {
      #pragma unroll
      for (int r_17 = 0; r_17 < 2; ++r_17) {
        #pragma unroll
        for (int v_3 = 0; v_3 < 2; ++v_3) {
          scores[r_16 * 4 + r_17 * 2 + v_3] = exp2_of_half_f32(scores[r_16 * 4 + r_17 * 2 + v_3] * 0.5f - top[r_17] * 0.5f);
        }
      }
    }
    float acc_1[2];
    #pragma unroll
    for (int r_18 = 0; r_18 < 2; ++r_18) {
      acc_1[r_18] = 0.0f;
      #pragma unroll
      for (int r_19 = 0; r_19 < 8; ++r_19) {
        #pragma unroll
        for (int r_20 = 0; r_20 < 2; ++r_20) {
          acc_1[r_18] = acc_1[r_18] + scores[r_19 * 4 + r_18 * 2 + r_20];
        }
      }
    }
    #pragma unroll
    for (int r_21 = 0; r_21 < 2; ++r_21) {
      const float mine_2 = acc_1[r_21];
      const float other_2 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_2), 1, 31, 0xffffffffu));
      acc_1[r_21] = acc_1[r_21] + other_2;
    }
    #pragma unroll
    for (int r_22 = 0; r_22 < 2; ++r_22) {
      const float mine_3 = acc_1[r_22];
      const float other_3 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_3), 2, 31, 0xffffffffu));
      acc_1[r_22] = acc_1[r_22] + other_3;
    }
    #pragma unroll
    for (int r_23 = 0; r_23 < 2; ++r_23) {
      row_sum[r_23] = acc_1[r_23];
    }
    #pragma unroll
    for (int r_24 = 0; r_24 < 2; ++r_24) {
      total[r_24] = total[r_24] * correction[r_24] + row_sum[r_24];
    }
    #pragma unroll
    for (int r_25 = 0; r_25 < 8; ++r_25) {
      #pragma unroll
      for (int r_26 = 0; r_26 < 2; ++r_26) {
        #pragma unroll
        for (int v_4 = 0; v_4 < 2; ++v_4) {
          weights[r_25 * 4 + r_26 * 2 + v_4] = cvt_rn_f16_f32(scores[r_25 * 4 + r_26 * 2 + v_4]);
        }
      }
    }
    #pragma unroll
    for (int r_27 = 0; r_27 < 4; ++r_27) {
      #pragma unroll
      for (int r_28 = 0; r_28 < 2; ++r_28) {
        #pragma unroll
        for (int v_5 = 0; v_5 < 2; ++v_5) {
          output[r_27 * 4 + r_28 * 2 + v_5] = output[r_27 * 4 + r_28 * 2 + v_5] * correction[r_28];
        }
      }
    }
    const int lane_1 = tid & 31;
    const int warp_column_1 = 0;
    unsigned a_words_1[8];
    unsigned b_words_1[16];
    const int b_line_1 = warp_column_1 + ((lane_1 >> 3) >> 1) * 8;
    const int b_k_1 = ((lane_1 >> 3) & 1) * 8 + (lane_1 & 7);
    *(unsigned*)&a_words_1[0] = *(const unsigned*)&weights[0];
    *(unsigned*)&a_words_1[1] = *(const unsigned*)&weights[2];
    *(unsigned*)&a_words_1[2] = *(const unsigned*)&weights[4];
    *(unsigned*)&a_words_1[3] = *(const unsigned*)&weights[6];
    #pragma unroll
    for (int b_tile_2 = 0; b_tile_2 < 2; ++b_tile_2) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words_1[b_tile_2 * 4], &V_shared_stages[slot * 2048 + b_k_1 * 32 + ((b_tile_2 * 2 + (b_line_1 >> 3)) ^ ((b_k_1 & 7) >> 1)) * 8]);
    }
    *(unsigned*)&a_words_1[4] = *(const unsigned*)&weights[8];
    *(unsigned*)&a_words_1[5] = *(const unsigned*)&weights[10];
    *(unsigned*)&a_words_1[6] = *(const unsigned*)&weights[12];
    *(unsigned*)&a_words_1[7] = *(const unsigned*)&weights[14];
    #pragma unroll
    for (int b_tile_3 = 0; b_tile_3 < 2; ++b_tile_3) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words_1[b_tile_3 * 4 + 8], &V_shared_stages[slot * 2048 + b_k_1 * 32 + ((b_tile_3 * 2 + (b_line_1 >> 3)) ^ ((b_k_1 & 7) >> 1)) * 8 + 512]);
    }
    #pragma unroll
    for (int column_tile_3 = 0; column_tile_3 < 4; ++column_tile_3) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&output[column_tile_3 * 4], &a_words_1[0], &b_words_1[column_tile_3 * 2], &output[column_tile_3 * 4]);
    }
    *(unsigned*)&a_words_1[0] = *(const unsigned*)&weights[16];
    *(unsigned*)&a_words_1[1] = *(const unsigned*)&weights[18];
    *(unsigned*)&a_words_1[2] = *(const unsigned*)&weights[20];
    *(unsigned*)&a_words_1[3] = *(const unsigned*)&weights[22];
    #pragma unroll
    for (int b_tile_4 = 0; b_tile_4 < 2; ++b_tile_4) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words_1[b_tile_4 * 4], &V_shared_stages[slot * 2048 + b_k_1 * 32 + ((b_tile_4 * 2 + (b_line_1 >> 3)) ^ ((b_k_1 & 7) >> 1)) * 8 + 1024]);
    }
    #pragma unroll
    for (int column_tile_4 = 0; column_tile_4 < 4; ++column_tile_4) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&output[column_tile_4 * 4], &a_words_1[4], &b_words_1[column_tile_4 * 2 + 8], &output[column_tile_4 * 4]);
    }
    *(unsigned*)&a_words_1[4] = *(const unsigned*)&weights[24];
    *(unsigned*)&a_words_1[5] = *(const unsigned*)&weights[26];
    *(unsigned*)&a_words_1[6] = *(const unsigned*)&weights[28];
    *(unsigned*)&a_words_1[7] = *(const unsigned*)&weights[30];
    #pragma unroll
    for (int b_tile_5 = 0; b_tile_5 < 2; ++b_tile_5) {
      ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(&b_words_1[b_tile_5 * 4 + 8], &V_shared_stages[slot * 2048 + b_k_1 * 32 + ((b_tile_5 * 2 + (b_line_1 >> 3)) ^ ((b_k_1 & 7) >> 1)) * 8 + 1536]);
    }
    #pragma unroll
    for (int column_tile_5 = 0; column_tile_5 < 4; ++column_tile_5) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&output[column_tile_5 * 4], &a_words_1[0], &b_words_1[column_tile_5 * 2], &output[column_tile_5 * 4]);
    }
    #pragma unroll
    for (int column_tile_6 = 0; column_tile_6 < 4; ++column_tile_6) {
      mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&output[column_tile_6 * 4], &a_words_1[4], &b_words_1[column_tile_6 * 2 + 8], &output[column_tile_6 * 4]);
    }
  }
  __syncthreads();
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&n_arrived[0]);
    mbarrier_inval_shared_cta_b64(&n_arrived[1]);
  }
  #pragma unroll
  for (int r_29 = 0; r_29 < 4; ++r_29) {
    #pragma unroll
    for (int r_30 = 0; r_30 < 2; ++r_30) {
      #pragma unroll
      for (int v_6 = 0; v_6 < 2; ++v_6) {
        output[r_29 * 4 + r_30 * 2 + v_6] = div_full_f32(output[r_29 * 4 + r_30 * 2 + v_6], total[r_30]);
      }
    }
  }
  const int i0 = (tid >> 5) * 16 + ((tid & 31) >> 2);
  const int i1 = (tid & 3) * 2;
  #pragma unroll
  for (int r_31 = 0; r_31 < 4; ++r_31) {
    #pragma unroll
    for (int r_32 = 0; r_32 < 2; ++r_32) {
      __align__(16) f16 Output_v[2];
      #pragma unroll
      for (int v_7 = 0; v_7 < 2; ++v_7) {
        Output_v[v_7] = cvt_rn_f16_f32(output[r_31 * 4 + r_32 * 2 + v_7]);
      }
      *(unsigned*)(&Output[i0 * 32 + i1] + (r_32 * 256 + r_31 * 8)) = *(const unsigned*)&Output_v[0];
    }
  }
  if (tid == 0) {
    mbarrier_inval_shared_cta_b64(&Q_shared_arrived[0]);
  }
}
