#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline void simdgroup_load_bf16_threadgroup(thread bfloat* to, threadgroup const bfloat* from, int pitch) {
  simdgroup_matrix<bfloat, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_load_bf16_threadgroup_transposed(thread bfloat* to, threadgroup const bfloat* from, int pitch) {
  simdgroup_matrix<bfloat, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch, ulong2(0, 0), true);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_multiply_accumulate_f32_bf16(thread float* c, thread const bfloat* a, thread const bfloat* b) {
  simdgroup_matrix<float, 8, 8> sum;
  simdgroup_matrix<bfloat, 8, 8> left, right;
  sum.thread_elements()[0] = c[0];
  sum.thread_elements()[1] = c[1];
  left.thread_elements()[0] = a[0];
  left.thread_elements()[1] = a[1];
  right.thread_elements()[0] = b[0];
  right.thread_elements()[1] = b[1];
  simdgroup_multiply_accumulate(sum, left, right, sum);
  c[0] = sum.thread_elements()[0];
  c[1] = sum.thread_elements()[1];
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const bfloat* __restrict A [[buffer(0)]],
    device const bfloat* __restrict B [[buffer(1)]],
    device bfloat* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[5120];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  float C_local[8];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        C_local[r * 4 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  bfloat A_shared_ahead[8];
  bfloat B_shared_ahead[8];
  if (by < 1) {
    const int i0 = tid >> 2;
    const int i1 = (tid & 3) * 8;
    alignas(16) bfloat A_v[8];
    *(thread uint4*)&A_v[0] = *(device const uint4*)&A[(by * 32 + i0) * 64 + i1];
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      A_shared_ahead[r_2] = A_v[r_2];
    }
  }
  else {
    const int i0_1 = tid >> 2;
    const int i1_1 = (tid & 3) * 8;
    if (by * 32 + i0_1 < 48) {
      alignas(16) bfloat A_v_1[8];
      *(thread uint4*)&A_v_1[0] = *(device const uint4*)&A[(by * 32 + i0_1) * 64 + i1_1];
      #pragma clang loop unroll(full)
      for (int r_3 = 0; r_3 < 8; ++r_3) {
        A_shared_ahead[r_3] = A_v_1[r_3];
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 8; ++r_4) {
        A_shared_ahead[r_4] = (bfloat)0.0f;
      }
    }
  }
  if (bx < 1) {
    const int i0_2 = tid >> 2;
    const int i1_2 = (tid & 3) * 8;
    alignas(16) bfloat B_v[8];
    *(thread uint4*)&B_v[0] = *(device const uint4*)&B[(bx * 32 + i0_2) * 64 + i1_2];
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 8; ++r_5) {
      B_shared_ahead[r_5] = B_v[r_5];
    }
  }
  else {
    const int i0_3 = tid >> 2;
    const int i1_3 = (tid & 3) * 8;
    if (bx * 32 + i0_3 < 56) {
      alignas(16) bfloat B_v_1[8];
      *(thread uint4*)&B_v_1[0] = *(device const uint4*)&B[(bx * 32 + i0_3) * 64 + i1_3];
      #pragma clang loop unroll(full)
      for (int r_6 = 0; r_6 < 8; ++r_6) {
        B_shared_ahead[r_6] = B_v_1[r_6];
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 8; ++r_7) {
        B_shared_ahead[r_7] = (bfloat)0.0f;
      }
    }
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup bfloat* const A_shared = (threadgroup bfloat*)smem;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_4 = tid >> 2;
    const int i1_4 = (tid & 3) * 8;
    alignas(16) bfloat A_shared_v[8];
    #pragma clang loop unroll(full)
    for (int r_8 = 0; r_8 < 8; ++r_8) {
      A_shared_v[r_8] = A_shared_ahead[r_8];
    }
    *(threadgroup uint4*)&A_shared[i0_4 * 40 + i1_4] = *(thread const uint4*)&A_shared_v[0];
    threadgroup bfloat* const B_shared = (threadgroup bfloat*)(smem + 2560);
    const int i0_5 = tid >> 2;
    const int i1_5 = (tid & 3) * 8;
    alignas(16) bfloat B_shared_v[8];
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 8; ++r_9) {
      B_shared_v[r_9] = B_shared_ahead[r_9];
    }
    *(threadgroup uint4*)&B_shared[i0_5 * 40 + i1_5] = *(thread const uint4*)&B_shared_v[0];
    if (k + 1 < 2) {
      if (by < 1) {
        const int i0_6 = tid >> 2;
        const int i1_6 = (tid & 3) * 8;
        alignas(16) bfloat A_v_2[8];
        *(thread uint4*)&A_v_2[0] = *(device const uint4*)&A[(by * 32 + i0_6) * 64 + i1_6 + k * 32 + 32];
        #pragma clang loop unroll(full)
        for (int r_10 = 0; r_10 < 8; ++r_10) {
          A_shared_ahead[r_10] = A_v_2[r_10];
        }
      }
      else {
        const int i0_7 = tid >> 2;
        const int i1_7 = (tid & 3) * 8;
        if (by * 32 + i0_7 < 48) {
          alignas(16) bfloat A_v_3[8];
          *(thread uint4*)&A_v_3[0] = *(device const uint4*)&A[(by * 32 + i0_7) * 64 + i1_7 + k * 32 + 32];
          #pragma clang loop unroll(full)
          for (int r_11 = 0; r_11 < 8; ++r_11) {
            A_shared_ahead[r_11] = A_v_3[r_11];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int r_12 = 0; r_12 < 8; ++r_12) {
            A_shared_ahead[r_12] = (bfloat)0.0f;
          }
        }
      }
      if (bx < 1) {
        const int i0_8 = tid >> 2;
        const int i1_8 = (tid & 3) * 8;
        alignas(16) bfloat B_v_2[8];
        *(thread uint4*)&B_v_2[0] = *(device const uint4*)&B[(bx * 32 + i0_8) * 64 + i1_8 + k * 32 + 32];
        #pragma clang loop unroll(full)
        for (int r_13 = 0; r_13 < 8; ++r_13) {
          B_shared_ahead[r_13] = B_v_2[r_13];
        }
      }
      else {
        const int i0_9 = tid >> 2;
        const int i1_9 = (tid & 3) * 8;
        if (bx * 32 + i0_9 < 56) {
          alignas(16) bfloat B_v_3[8];
          *(thread uint4*)&B_v_3[0] = *(device const uint4*)&B[(bx * 32 + i0_9) * 64 + i1_9 + k * 32 + 32];
          #pragma clang loop unroll(full)
          for (int r_14 = 0; r_14 < 8; ++r_14) {
            B_shared_ahead[r_14] = B_v_3[r_14];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int r_15 = 0; r_15 < 8; ++r_15) {
            B_shared_ahead[r_15] = (bfloat)0.0f;
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = ((tid >> 5) >> 1) * 16;
    const int simd_column = ((tid >> 5) & 1) * 16;
    bfloat a_values[4];
    bfloat b_values[2];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_bf16_threadgroup(&a_values[a_tile * 2], &A_shared[a_tile * 320 + simd_row * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 2; ++column_tile) {
        simdgroup_load_bf16_threadgroup_transposed(&b_values[0], &B_shared[column_tile * 320 + simd_column * 40 + k_step * 8], 40);
        #pragma clang loop unroll(full)
        for (int row_tile = 0; row_tile < 2; ++row_tile) {
          simdgroup_multiply_accumulate_f32_bf16(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[0]);
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_10 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_10 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      #pragma clang loop unroll(full)
      for (int r_17 = 0; r_17 < 2; ++r_17) {
        alignas(16) bfloat C_v[2];
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = (bfloat)C_local[r_16 * 4 + r_17 * 2 + v_1];
        }
        *(device uchar4*)&C[(by * 32 + i0_10) * 56 + bx * 32 + i1_10 + r_16 * 448 + r_17 * 8] = *(thread const uchar4*)&C_v[0];
      }
    }
  }
  else {
    const int i0_11 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_11 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_18 = 0; r_18 < 2; ++r_18) {
      #pragma clang loop unroll(full)
      for (int r_19 = 0; r_19 < 2; ++r_19) {
        if (by * 32 + (r_18 * 8 + i0_11) < 48 && bx * 32 + (r_19 * 8 + i1_11) < 56) {
          alignas(16) bfloat C_v_1[2];
          #pragma clang loop unroll(full)
          for (int v_2 = 0; v_2 < 2; ++v_2) {
            C_v_1[v_2] = (bfloat)C_local[r_18 * 4 + r_19 * 2 + v_2];
          }
          *(device uchar4*)&C[(by * 32 + i0_11) * 56 + bx * 32 + i1_11 + r_18 * 448 + r_19 * 8] = *(thread const uchar4*)&C_v_1[0];
        }
      }
    }
  }
}
