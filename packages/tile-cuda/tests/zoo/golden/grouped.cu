typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ int mov_b32_opaque(int x) { int d; asm("mov.b32 %0, %1;" : "=r"(d) : "r"(x)); return d; }
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
__device__ __forceinline__ void cp_async_cg_shared_global_16(void* smem, const void* gmem) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :
      : "r"(shared_address(smem)), "l"(gmem)
      : "memory");
}
__device__ __forceinline__ void cp_async_cg_shared_global_16_zfill(void* smem, const void* gmem, int valid_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :
      : "r"(shared_address(smem)), "l"(gmem), "r"(valid_bytes)
      : "memory");
}
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_group_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }

extern "C" __global__ void __launch_bounds__(128) grouped(
    const f16* __restrict__ X,
    const f16* __restrict__ W,
    const int* __restrict__ ends_of,
    f16* __restrict__ Y
) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tid = threadIdx.x;
  f16* const x_stages = (f16*)smem;
  f16* const w_stages = (f16*)(smem + 2048);
  float y[8];
  int left;
  left = by;
  int group;
  group = 0;
  int first;
  first = 0;
  int end;
  end = 0;
  int begin;
  begin = 0;
  for (int g = 0; g < 3; ++g) {
    const int tiles = (unsigned)((int)((unsigned)ends_of[g] - (unsigned)begin) >> 5) + (unsigned)min((int)((unsigned)ends_of[g] - (unsigned)begin) & 31, 1);
    if (left >= 0 && left < tiles) {
      group = g;
      first = (unsigned)begin + (unsigned)left * 32u;
      end = ends_of[g];
    }
    left = (unsigned)left - (unsigned)tiles;
    begin = ends_of[g];
  }
  if (first < end) {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      #pragma unroll
      for (int r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          y[r * 4 + r_1 * 2 + v] = 0.0f;
        }
      }
    }
    __syncthreads();
    const int corner = first;
    if (corner >= 0 && corner <= 12) {
      if (tid < 64) {
        cp_async_cg_shared_global_16(&x_stages[(tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8], &X[((tid >> 1) + corner) * 72 + (tid & 1) * 8]);
      }
    }
    else if (tid < 64) {
      cp_async_cg_shared_global_16_zfill(&x_stages[(tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8], &X[((tid >> 1) + corner) * 72 + (tid & 1) * 8], (tid >> 1) + corner >= 0 && (tid >> 1) + corner < 44 ? 16 : 0);
    }
    const int corner_1 = group;
    if (corner_1 >= 0 && corner_1 <= 2 && bx * 32 + 32 <= 40) {
      if (tid < 64) {
        cp_async_cg_shared_global_16(&w_stages[(tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8], &W[corner_1 * 2880 + (bx * 32 + (tid >> 1)) * 72 + (tid & 1) * 8]);
      }
    }
    else if (tid < 64) {
      cp_async_cg_shared_global_16_zfill(&w_stages[(tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8], &W[corner_1 * 2880 + (bx * 32 + (tid >> 1)) * 72 + (tid & 1) * 8], corner_1 >= 0 && corner_1 < 3 && bx * 32 + (tid >> 1) < 40 ? 16 : 0);
    }
    cp_async_commit_group();
    for (int t = 0; t < 5; ++t) {
      cp_async_wait_group_0();
      __syncthreads();
      const int slot = t & 1;
      const int slot_ahead = (t + 1) & 1;
      if (t + 1 < 5) {
        const int corner_2 = first;
        if (corner_2 >= 0 && corner_2 <= 12 && t * 16 + 16 + 16 <= 72) {
          if (tid < 64) {
            cp_async_cg_shared_global_16((f16*)((char*)x_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8) * 2u)), &X[((tid >> 1) + corner_2) * 72 + (t * 16 + (tid & 1) * 8 + 16)]);
          }
        }
        else if (tid < 64) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)x_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8) * 2u)), &X[((tid >> 1) + corner_2) * 72 + (t * 16 + (tid & 1) * 8 + 16)], (tid >> 1) + corner_2 >= 0 && (tid >> 1) + corner_2 < 44 && t * 16 + (tid & 1) * 8 + 16 < 72 ? 16 : 0);
        }
        const int corner_3 = group;
        if (corner_3 >= 0 && corner_3 <= 2 && bx * 32 + 32 <= 40 && t * 16 + 16 + 16 <= 72) {
          if (tid < 64) {
            cp_async_cg_shared_global_16((f16*)((char*)w_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8) * 2u)), &W[corner_3 * 2880 + (bx * 32 + (tid >> 1)) * 72 + (t * 16 + (tid & 1) * 8 + 16)]);
          }
        }
        else if (tid < 64) {
          cp_async_cg_shared_global_16_zfill((f16*)((char*)w_stages + ((unsigned)(slot_ahead * 1024) + (unsigned)((tid >> 1) * 16 + ((tid & 1) ^ ((tid & 15) >> 3)) * 8) * 2u)), &W[corner_3 * 2880 + (bx * 32 + (tid >> 1)) * 72 + (t * 16 + (tid & 1) * 8 + 16)], corner_3 >= 0 && corner_3 < 3 && bx * 32 + (tid >> 1) < 40 && t * 16 + (tid & 1) * 8 + 16 < 72 ? 16 : 0);
        }
      }
      cp_async_commit_group();
      const int lane = tid & 31;
      const int warp_row = ((tid >> 5) >> 1) * 16;
      const int warp_column = ((tid >> 5) & 1) * 16;
      unsigned a_words[4];
      unsigned b_words[4];
      const int a_line = warp_row + ((lane >> 3) & 1) * 8 + (lane & 7);
      const int a_k = ((lane >> 3) >> 1) * 8;
      const int b_line = warp_column + ((lane >> 3) >> 1) * 8 + (lane & 7);
      const int b_k = ((lane >> 3) & 1) * 8;
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&a_words[0], &x_stages[slot * 512 + a_line * 16 + ((a_k >> 3) ^ ((a_line & 7) >> 2)) * 8]);
      ldmatrix_sync_aligned_m8n8_x4_shared_b16(&b_words[0], &w_stages[slot * 512 + b_line * 16 + ((b_k >> 3) ^ ((b_line & 7) >> 2)) * 8]);
      #pragma unroll
      for (int column_tile = 0; column_tile < 2; ++column_tile) {
        mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(&y[column_tile * 4], &a_words[0], &b_words[column_tile * 2], &y[column_tile * 4]);
      }
    }
    cp_async_wait_group_0();
    __syncthreads();
    if ((long long)first >= 0LL && (long long)first + 31LL < 44LL && bx < 1) {
      const int i = (tid >> 6) * 16 + ((tid & 31) >> 2);
      const int j = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
      #pragma unroll
      for (int r_2 = 0; r_2 < 2; ++r_2) {
        #pragma unroll
        for (int r_3 = 0; r_3 < 2; ++r_3) {
          if ((int)((unsigned)first + (unsigned)(r_3 * 8 + i)) < end) {
            __align__(16) f16 Y_v[2];
            #pragma unroll
            for (int v_1 = 0; v_1 < 2; ++v_1) {
              Y_v[v_1] = cvt_rn_f16_f32(y[r_2 * 4 + r_3 * 2 + v_1]);
            }
            *(unsigned*)(&Y[(first + i) * 40 + (bx * 32 + j)] + (r_3 * 320 + r_2 * 8)) = *(const unsigned*)&Y_v[0];
          }
        }
      }
    }
    else {
      const int i_1 = (tid >> 6) * 16 + ((tid & 31) >> 2);
      const int j_1 = ((tid & 63) >> 5) * 16 + (tid & 3) * 2;
      #pragma unroll
      for (int r_4 = 0; r_4 < 2; ++r_4) {
        #pragma unroll
        for (int r_5 = 0; r_5 < 2; ++r_5) {
          if ((int)((unsigned)first + (unsigned)(r_5 * 8 + i_1)) < end) {
            if ((int)((unsigned)first + (unsigned)(r_5 * 8 + i_1)) >= 0 && (int)((unsigned)first + (unsigned)(r_5 * 8 + i_1)) < 44 && bx * 32 + (r_4 * 8 + j_1) < 40) {
              __align__(16) f16 Y_v_1[2];
              #pragma unroll
              for (int v_2 = 0; v_2 < 2; ++v_2) {
                Y_v_1[v_2] = cvt_rn_f16_f32(y[r_4 * 4 + r_5 * 2 + v_2]);
              }
              *(unsigned*)(&Y[mov_b32_opaque((int)((unsigned)first + (unsigned)(r_5 * 8 + i_1)) * 40 + (bx * 32 + j_1))] + r_4 * 8) = *(const unsigned*)&Y_v_1[0];
            }
          }
        }
      }
    }
  }
}
