#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

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
  alignas(16) threadgroup uchar smem[10240];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup bfloat* const A_shared_stages = (threadgroup bfloat*)smem;
  threadgroup bfloat* const B_shared_stages = (threadgroup bfloat*)(smem + 5120);
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
  if (by < 1) {
    const int i0 = tid / 4;
    const int i1 = (tid % 4) * 8;
    *(threadgroup uint4*)&A_shared_stages[i0 * 40 + i1] = *(device const uint4*)&A[(by * 32 + i0) * 64 + i1];
  }
  else {
    const int i0_1 = tid / 4;
    const int i1_1 = (tid % 4) * 8;
    alignas(16) bfloat A_shared_stages_v[8];
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      A_shared_stages_v[r_2] = by * 32 + i0_1 < 48 ? A[(by * 32 + i0_1) * 64 + (i1_1 + r_2)] : (bfloat)0.0f;
    }
    *(threadgroup uint4*)&A_shared_stages[i0_1 * 40 + i1_1] = *(thread const uint4*)&A_shared_stages_v[0];
  }
  if (bx < 1) {
    const int i0_2 = tid / 4;
    const int i1_2 = (tid % 4) * 8;
    *(threadgroup uint4*)&B_shared_stages[i0_2 * 40 + i1_2] = *(device const uint4*)&B[(bx * 32 + i0_2) * 64 + i1_2];
  }
  else {
    const int i0_3 = tid / 4;
    const int i1_3 = (tid % 4) * 8;
    alignas(16) bfloat B_shared_stages_v[8];
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 8; ++r_3) {
      B_shared_stages_v[r_3] = bx * 32 + i0_3 < 56 ? B[(bx * 32 + i0_3) * 64 + (i1_3 + r_3)] : (bfloat)0.0f;
    }
    *(threadgroup uint4*)&B_shared_stages[i0_3 * 40 + i1_3] = *(thread const uint4*)&B_shared_stages_v[0];
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int slot = k % 2;
    const int slot_ahead = (k + 1) % 2;
    if (k + 1 < 2) {
      if (by < 1) {
        const int i0_4 = tid / 4;
        const int i1_4 = (tid % 4) * 8;
        *(threadgroup uint4*)&A_shared_stages[slot_ahead * 1280 + i0_4 * 40 + i1_4] = *(device const uint4*)&A[(by * 32 + i0_4) * 64 + (k * 32 + i1_4 + 32)];
      }
      else {
        const int i0_5 = tid / 4;
        const int i1_5 = (tid % 4) * 8;
        alignas(16) bfloat A_shared_stages_v_1[8];
        #pragma clang loop unroll(full)
        for (int r_4 = 0; r_4 < 8; ++r_4) {
          A_shared_stages_v_1[r_4] = by * 32 + i0_5 < 48 ? A[(by * 32 + i0_5) * 64 + (k * 32 + i1_5 + r_4 + 32)] : (bfloat)0.0f;
        }
        *(threadgroup uint4*)&A_shared_stages[slot_ahead * 1280 + i0_5 * 40 + i1_5] = *(thread const uint4*)&A_shared_stages_v_1[0];
      }
      if (bx < 1) {
        const int i0_6 = tid / 4;
        const int i1_6 = (tid % 4) * 8;
        *(threadgroup uint4*)&B_shared_stages[slot_ahead * 1280 + i0_6 * 40 + i1_6] = *(device const uint4*)&B[(bx * 32 + i0_6) * 64 + (k * 32 + i1_6 + 32)];
      }
      else {
        const int i0_7 = tid / 4;
        const int i1_7 = (tid % 4) * 8;
        alignas(16) bfloat B_shared_stages_v_1[8];
        #pragma clang loop unroll(full)
        for (int r_5 = 0; r_5 < 8; ++r_5) {
          B_shared_stages_v_1[r_5] = bx * 32 + i0_7 < 56 ? B[(bx * 32 + i0_7) * 64 + (k * 32 + i1_7 + r_5 + 32)] : (bfloat)0.0f;
        }
        *(threadgroup uint4*)&B_shared_stages[slot_ahead * 1280 + i0_7 * 40 + i1_7] = *(thread const uint4*)&B_shared_stages_v_1[0];
      }
    }
    const int simd_row = (tid / 32 / 2) * 16;
    const int simd_column = ((tid / 32) % 2) * 16;
    bfloat a_values[4];
    bfloat b_values[4];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_bf16_threadgroup(&a_values[a_tile * 2], &A_shared_stages[slot * 1280 + a_tile * 320 + simd_row * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int b_tile = 0; b_tile < 2; ++b_tile) {
        simdgroup_load_bf16_threadgroup_transposed(&b_values[b_tile * 2], &B_shared_stages[slot * 1280 + b_tile * 320 + simd_column * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int row_tile = 0; row_tile < 2; ++row_tile) {
        #pragma clang loop unroll(full)
        for (int column_tile = 0; column_tile < 2; ++column_tile) {
          simdgroup_multiply_accumulate_f32_bf16(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[column_tile * 2]);
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_8 = (tid / 64) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
    const int i1_8 = ((tid % 64) / 32) * 16 + ((tid % 16) / 8) * 4 + (tid % 2) * 2;
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 2; ++r_7) {
        alignas(16) bfloat C_v[2];
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 2; ++v_1) {
          C_v[v_1] = (bfloat)C_local[r_6 * 4 + r_7 * 2 + v_1];
        }
        *(device uchar4*)&C[(by * 32 + r_6 * 8 + i0_8) * 56 + (bx * 32 + r_7 * 8 + i1_8)] = *(thread const uchar4*)&C_v[0];
      }
    }
  }
  else {
    const int i0_9 = (tid / 64) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
    const int i1_9 = ((tid % 64) / 32) * 16 + ((tid % 16) / 8) * 4 + (tid % 2) * 2;
    #pragma clang loop unroll(full)
    for (int r_8 = 0; r_8 < 2; ++r_8) {
      #pragma clang loop unroll(full)
      for (int r_9 = 0; r_9 < 2; ++r_9) {
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 2; ++v_2) {
          if (by * 32 + (r_8 * 8 + i0_9) < 48 && bx * 32 + (r_9 * 8 + i1_9 + v_2) < 56) {
            C[(by * 32 + r_8 * 8 + i0_9) * 56 + (bx * 32 + r_9 * 8 + i1_9 + v_2)] = (bfloat)C_local[r_8 * 4 + r_9 * 2 + v_2];
          }
        }
      }
    }
  }
}
