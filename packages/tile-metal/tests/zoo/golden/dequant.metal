#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

static inline void simdgroup_load_f16_threadgroup(thread half* to, threadgroup const half* from, int pitch) {
  simdgroup_matrix<half, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_load_f16_threadgroup_transposed(thread half* to, threadgroup const half* from, int pitch) {
  simdgroup_matrix<half, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch, ulong2(0, 0), true);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_multiply_accumulate_f32_f16(thread float* c, thread const half* a, thread const half* b) {
  simdgroup_matrix<float, 8, 8> sum;
  simdgroup_matrix<half, 8, 8> left, right;
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

[[kernel, max_total_threads_per_threadgroup(128)]] void main_1(
    device const half* __restrict A [[buffer(0)]],
    device const uchar* __restrict W [[buffer(1)]],
    device const half* __restrict scale [[buffer(2)]],
    device float* __restrict C [[buffer(3)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[13824];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup half* const A_shared_stages = (threadgroup half*)smem;
  threadgroup half* const W_shared = (threadgroup half*)(smem + 9216);
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
    const int i0 = tid / 8;
    const int i1 = (tid % 8) * 8;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      *(threadgroup uint4*)&A_shared_stages[r_2 * 1152 + i0 * 72 + i1] = *(device const uint4*)&A[(by * 32 + r_2 * 16 + i0) * 96 + i1];
    }
  }
  else {
    const int i0_1 = tid / 8;
    const int i1_1 = (tid % 8) * 8;
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      alignas(16) half A_shared_stages_v[8];
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 8; ++v_1) {
        A_shared_stages_v[v_1] = by * 32 + (r_3 * 16 + i0_1) < 33 ? A[(by * 32 + r_3 * 16 + i0_1) * 96 + (i1_1 + v_1)] : (half)0.0f;
      }
      *(threadgroup uint4*)&A_shared_stages[r_3 * 1152 + i0_1 * 72 + i1_1] = *(thread const uint4*)&A_shared_stages_v[0];
    }
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int slot = k % 2;
    const int slot_ahead = (k + 1) % 2;
    if (k + 1 < 2) {
      const int i0_2 = tid / 8;
      const int i1_2 = (tid % 8) * 8;
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 2; ++r_4) {
        alignas(16) half A_shared_stages_v_1[8];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 8; ++v_2) {
          A_shared_stages_v_1[v_2] = by * 32 + (r_4 * 16 + i0_2) < 33 && k * 64 + 64 + (i1_2 + v_2) < 96 ? A[(by * 32 + r_4 * 16 + i0_2) * 96 + (k * 64 + i1_2 + v_2 + 64)] : (half)0.0f;
        }
        *(threadgroup uint4*)&A_shared_stages[slot_ahead * 2304 + r_4 * 1152 + i0_2 * 72 + i1_2] = *(thread const uint4*)&A_shared_stages_v_1[0];
      }
    }
    if (bx < 1 && k < 1) {
      const int i = tid / 4;
      const int j = (tid % 4) * 16;
      alignas(16) half W_shared_v[16];
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 16; ++r_5) {
        W_shared_v[r_5] = (half)((float)(half)(float)(char)((((int)(uchar)((uchar)(W[(bx * 32 + i) * 48 + (k * 32 + (j + r_5) / 2)] >> (uchar)(((k * 64 + (j + r_5)) % 2) * 4)) & (uchar)15) & 15) ^ 8) - 8) * (float)((k * 64 + (j + r_5)) / 32 < 3 ? scale[(bx * 32 + i) * 3 + (k * 2 + (j + r_5) / 32)] : (half)0.0f));
      }
      *(threadgroup uint4*)&W_shared[i * 72 + j] = *(thread const uint4*)&W_shared_v[0];
      *(threadgroup uint4*)&W_shared[i * 72 + j + 8] = *(thread const uint4*)&W_shared_v[8];
    }
    else {
      const int i_1 = tid / 4;
      const int j_1 = (tid % 4) * 16;
      alignas(16) half W_shared_v_1[16];
      #pragma clang loop unroll(full)
      for (int r_6 = 0; r_6 < 16; ++r_6) {
        W_shared_v_1[r_6] = (half)((float)(half)(float)(bx * 32 + i_1 < 50 && k * 64 + (j_1 + r_6) < 96 ? (char)((((int)(uchar)((uchar)(W[(bx * 32 + i_1) * 48 + (k * 32 + (j_1 + r_6) / 2)] >> (uchar)(((k * 64 + (j_1 + r_6)) % 2) * 4)) & (uchar)15) & 15) ^ 8) - 8) : (char)0) * (float)(bx * 32 + i_1 < 50 && (k * 64 + (j_1 + r_6)) / 32 < 3 ? scale[(bx * 32 + i_1) * 3 + (k * 2 + (j_1 + r_6) / 32)] : (half)0.0f));
      }
      *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1] = *(thread const uint4*)&W_shared_v_1[0];
      *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1 + 8] = *(thread const uint4*)&W_shared_v_1[8];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = (tid / 32 / 2) * 16;
    const int simd_column = ((tid / 32) % 2) * 16;
    half a_values[4];
    half b_values[4];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 8; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &A_shared_stages[slot * 2304 + a_tile * 576 + simd_row * 72 + k_step * 8], 72);
      }
      #pragma clang loop unroll(full)
      for (int b_tile = 0; b_tile < 2; ++b_tile) {
        simdgroup_load_f16_threadgroup_transposed(&b_values[b_tile * 2], &W_shared[b_tile * 576 + simd_column * 72 + k_step * 8], 72);
      }
      #pragma clang loop unroll(full)
      for (int row_tile = 0; row_tile < 2; ++row_tile) {
        #pragma clang loop unroll(full)
        for (int column_tile = 0; column_tile < 2; ++column_tile) {
          simdgroup_multiply_accumulate_f32_f16(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[column_tile * 2]);
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_3 = (tid / 64) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
    const int i1_3 = ((tid % 64) / 32) * 16 + ((tid % 16) / 8) * 4 + (tid % 2) * 2;
    #pragma clang loop unroll(full)
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      #pragma clang loop unroll(full)
      for (int r_8 = 0; r_8 < 2; ++r_8) {
        alignas(16) float C_v[2];
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 2; ++v_3) {
          C_v[v_3] = C_local[r_7 * 4 + r_8 * 2 + v_3];
        }
        *(device uint2*)&C[(by * 32 + r_7 * 8 + i0_3) * 50 + (bx * 32 + r_8 * 8 + i1_3)] = *(thread const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_4 = (tid / 64) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
    const int i1_4 = ((tid % 64) / 32) * 16 + ((tid % 16) / 8) * 4 + (tid % 2) * 2;
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      #pragma clang loop unroll(full)
      for (int r_10 = 0; r_10 < 2; ++r_10) {
        #pragma clang loop unroll(full)
        for (int v_4 = 0; v_4 < 2; ++v_4) {
          if (by * 32 + (r_9 * 8 + i0_4) < 33 && bx * 32 + (r_10 * 8 + i1_4 + v_4) < 50) {
            C[(by * 32 + r_9 * 8 + i0_4) * 50 + (bx * 32 + r_10 * 8 + i1_4 + v_4)] = C_local[r_9 * 4 + r_10 * 2 + v_4];
          }
        }
      }
    }
  }
}
