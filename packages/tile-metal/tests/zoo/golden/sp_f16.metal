#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline void simdgroup_load_f16_threadgroup(thread half* to, threadgroup const half* from, int pitch) {
  simdgroup_matrix<half, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch);
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
    device const half* __restrict A_sparse [[buffer(0)]],
    device const short* __restrict E [[buffer(1)]],
    device const half* __restrict B [[buffer(2)]],
    device float* __restrict C [[buffer(3)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[7936];
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
  half A_shared_ahead[8];
  short E_shared_ahead;
  half B_shared_ahead[16];
  if (by < 1) {
    const int i0 = tid >> 2;
    const int i1 = (tid & 3) * 8;
    alignas(16) half A_sparse_v[8];
    *(thread uint4*)&A_sparse_v[0] = *(device const uint4*)&A_sparse[(by * 32 + i0) * 64 + i1];
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 8; ++r_2) {
      A_shared_ahead[r_2] = A_sparse_v[r_2];
    }
    const int i0_1 = tid >> 2;
    const int i1_1 = tid & 3;
    E_shared_ahead = E[(by * 32 + i0_1) * 8 + i1_1];
  }
  else {
    const int i0_2 = tid >> 2;
    const int i1_2 = (tid & 3) * 8;
    if (by * 32 + i0_2 < 33) {
      alignas(16) half A_sparse_v_1[8];
      *(thread uint4*)&A_sparse_v_1[0] = *(device const uint4*)&A_sparse[(by * 32 + i0_2) * 64 + i1_2];
      #pragma clang loop unroll(full)
      for (int r_3 = 0; r_3 < 8; ++r_3) {
        A_shared_ahead[r_3] = A_sparse_v_1[r_3];
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_4 = 0; r_4 < 8; ++r_4) {
        A_shared_ahead[r_4] = (half)0.0f;
      }
    }
    const int i0_3 = tid >> 2;
    const int i1_3 = tid & 3;
    E_shared_ahead = by * 32 + i0_3 < 33 ? E[(by * 32 + i0_3) * 8 + i1_3] : (short)0;
  }
  if (bx < 1) {
    const int i0_4 = tid >> 2;
    const int i1_4 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      alignas(16) half B_v[8];
      *(thread uint4*)&B_v[0] = *(device const uint4*)&B[i0_4 * 40 + bx * 32 + i1_4 + r_5 * 1280];
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 8; ++v_1) {
        B_shared_ahead[r_5 * 8 + v_1] = B_v[v_1];
      }
    }
  }
  else {
    const int i0_5 = tid >> 2;
    const int i1_5 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      if (bx * 32 + i1_5 < 40) {
        alignas(16) half B_v_1[8];
        *(thread uint4*)&B_v_1[0] = *(device const uint4*)&B[i0_5 * 40 + bx * 32 + i1_5 + r_6 * 1280];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 8; ++v_2) {
          B_shared_ahead[r_6 * 8 + v_2] = B_v_1[v_2];
        }
      }
      else {
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 8; ++v_3) {
          B_shared_ahead[r_6 * 8 + v_3] = (half)0.0f;
        }
      }
    }
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup half* const A_shared = (threadgroup half*)smem;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_6 = tid >> 2;
    const int i1_6 = (tid & 3) * 8;
    alignas(16) half A_shared_v[8];
    #pragma clang loop unroll(full)
    for (int r_7 = 0; r_7 < 8; ++r_7) {
      A_shared_v[r_7] = A_shared_ahead[r_7];
    }
    *(threadgroup uint4*)&A_shared[i0_6 * 40 + i1_6] = *(thread const uint4*)&A_shared_v[0];
    threadgroup short* const E_shared = (threadgroup short*)(smem + 2560);
    const int i0_7 = tid >> 2;
    const int i1_7 = tid & 3;
    E_shared[i0_7 * 4 + i1_7] = E_shared_ahead;
    threadgroup half* const B_shared = (threadgroup half*)(smem + 2816);
    const int i0_8 = tid >> 2;
    const int i1_8 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_8 = 0; r_8 < 2; ++r_8) {
      alignas(16) half B_shared_v[8];
      #pragma clang loop unroll(full)
      for (int v_4 = 0; v_4 < 8; ++v_4) {
        B_shared_v[v_4] = B_shared_ahead[r_8 * 8 + v_4];
      }
      *(threadgroup uint4*)&B_shared[r_8 * 1280 + i0_8 * 40 + i1_8] = *(thread const uint4*)&B_shared_v[0];
    }
    if (k + 1 < 2) {
      if (by < 1) {
        const int i0_9 = tid >> 2;
        const int i1_9 = (tid & 3) * 8;
        alignas(16) half A_sparse_v_2[8];
        *(thread uint4*)&A_sparse_v_2[0] = *(device const uint4*)&A_sparse[(by * 32 + i0_9) * 64 + i1_9 + k * 32 + 32];
        #pragma clang loop unroll(full)
        for (int r_9 = 0; r_9 < 8; ++r_9) {
          A_shared_ahead[r_9] = A_sparse_v_2[r_9];
        }
        const int i0_10 = tid >> 2;
        const int i1_10 = tid & 3;
        E_shared_ahead = E[(by * 32 + i0_10) * 8 + i1_10 + k * 4 + 4];
      }
      else {
        const int i0_11 = tid >> 2;
        const int i1_11 = (tid & 3) * 8;
        if (by * 32 + i0_11 < 33) {
          alignas(16) half A_sparse_v_3[8];
          *(thread uint4*)&A_sparse_v_3[0] = *(device const uint4*)&A_sparse[(by * 32 + i0_11) * 64 + i1_11 + k * 32 + 32];
          #pragma clang loop unroll(full)
          for (int r_10 = 0; r_10 < 8; ++r_10) {
            A_shared_ahead[r_10] = A_sparse_v_3[r_10];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int r_11 = 0; r_11 < 8; ++r_11) {
            A_shared_ahead[r_11] = (half)0.0f;
          }
        }
        const int i0_12 = tid >> 2;
        const int i1_12 = tid & 3;
        E_shared_ahead = by * 32 + i0_12 < 33 ? E[(by * 32 + i0_12) * 8 + i1_12 + k * 4 + 4] : (short)0;
      }
      if (bx < 1) {
        const int i0_13 = tid >> 2;
        const int i1_13 = (tid & 3) * 8;
        #pragma clang loop unroll(full)
        for (int r_12 = 0; r_12 < 2; ++r_12) {
          alignas(16) half B_v_2[8];
          *(thread uint4*)&B_v_2[0] = *(device const uint4*)&B[i0_13 * 40 + bx * 32 + i1_13 + k * 2560 + r_12 * 1280 + 2560];
          #pragma clang loop unroll(full)
          for (int v_5 = 0; v_5 < 8; ++v_5) {
            B_shared_ahead[r_12 * 8 + v_5] = B_v_2[v_5];
          }
        }
      }
      else {
        const int i0_14 = tid >> 2;
        const int i1_14 = (tid & 3) * 8;
        #pragma clang loop unroll(full)
        for (int r_13 = 0; r_13 < 2; ++r_13) {
          if (bx * 32 + i1_14 < 40) {
            alignas(16) half B_v_3[8];
            *(thread uint4*)&B_v_3[0] = *(device const uint4*)&B[i0_14 * 40 + bx * 32 + i1_14 + k * 2560 + r_13 * 1280 + 2560];
            #pragma clang loop unroll(full)
            for (int v_6 = 0; v_6 < 8; ++v_6) {
              B_shared_ahead[r_13 * 8 + v_6] = B_v_3[v_6];
            }
          }
          else {
            #pragma clang loop unroll(full)
            for (int v_7 = 0; v_7 < 8; ++v_7) {
              B_shared_ahead[r_13 * 8 + v_7] = (half)0.0f;
            }
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int lane = tid & 31;
    const int lane_row = (lane >> 4) * 4 + ((lane & 7) >> 1);
    const int lane_column = ((lane >> 3) & 1) * 4 + (lane & 1) * 2;
    const int simd_row = ((tid >> 5) >> 1) * 16;
    const int simd_column = ((tid >> 5) & 1) * 16;
    half a_values[4];
    half b_values[4];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 8; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        short E_shared_v;
        E_shared_v = E_shared[a_tile * 32 + simd_row * 4 + lane_row * 4 + (k_step >> 1)];
        #pragma clang loop unroll(full)
        for (int a_e = 0; a_e < 2; ++a_e) {
          a_values[a_tile * 2 + a_e] = (((int)E_shared_v >> ((((lane_column + a_e + k_step * 8) >> 2) & 3) * 4)) & 15 & 3) == ((lane_column + a_e + k_step * 8) & 3) ? A_shared[a_tile * 320 + simd_row * 40 + lane_row * 40 + k_step * 4 + ((lane_column + a_e) >> 2) * 2] : (((((int)E_shared_v >> ((((lane_column + a_e + k_step * 8) >> 2) & 3) * 4)) & 15) >> 2) & 3) == ((lane_column + a_e + k_step * 8) & 3) ? A_shared[a_tile * 320 + simd_row * 40 + lane_row * 40 + k_step * 4 + ((lane_column + a_e) >> 2) * 2 + 1] : (half)0.0f;
        }
      }
      #pragma clang loop unroll(full)
      for (int b_tile = 0; b_tile < 2; ++b_tile) {
        simdgroup_load_f16_threadgroup(&b_values[b_tile * 2], &B_shared[k_step * 320 + b_tile * 8 + simd_column], 40);
      }
      int odd;
      odd = 0;
      #pragma clang loop unroll(full)
      for (int r_14 = 0; r_14 < 4; ++r_14) {
        if ((as_type<uint>((float)b_values[r_14]) & 2139095040u) == 2139095040u) {
          b_values[r_14] = (half)0.0f;
          odd = 1;
        }
      }
      #pragma clang loop unroll(full)
      for (int row_tile = 0; row_tile < 2; ++row_tile) {
        #pragma clang loop unroll(full)
        for (int column_tile = 0; column_tile < 2; ++column_tile) {
          simdgroup_multiply_accumulate_f32_f16(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[column_tile * 2]);
        }
      }
      const bool any_1 = simd_any(odd != 0);
      if (any_1) {
        for (int k_odd = 0; k_odd < 8; ++k_odd) {
          #pragma clang loop unroll(full)
          for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
            #pragma clang loop unroll(full)
            for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
              #pragma clang loop unroll(full)
              for (int e = 0; e < 2; ++e) {
                const float factor = B_shared[k_step * 320 + k_odd * 40 + column_tile_1 * 8 + simd_column + lane_column + e];
                if ((as_type<uint>(factor) & 2139095040u) == 2139095040u) {
                  if ((((int)E_shared[row_tile_1 * 32 + simd_row * 4 + lane_row * 4 + (k_step >> 1)] >> ((((k_step * 8 + k_odd) >> 2) & 3) * 4)) & 15 & 3) == ((k_step * 8 + k_odd) & 3)) {
                    C_local[row_tile_1 * 4 + column_tile_1 * 2 + e] = C_local[row_tile_1 * 4 + column_tile_1 * 2 + e] + (float)A_shared[row_tile_1 * 320 + simd_row * 40 + lane_row * 40 + k_step * 4 + (k_odd >> 2) * 2] * factor;
                  }
                  if ((((((int)E_shared[row_tile_1 * 32 + simd_row * 4 + lane_row * 4 + (k_step >> 1)] >> ((((k_step * 8 + k_odd) >> 2) & 3) * 4)) & 15) >> 2) & 3) == ((k_step * 8 + k_odd) & 3)) {
                    C_local[row_tile_1 * 4 + column_tile_1 * 2 + e] = C_local[row_tile_1 * 4 + column_tile_1 * 2 + e] + (float)A_shared[row_tile_1 * 320 + simd_row * 40 + lane_row * 40 + k_step * 4 + (k_odd >> 2) * 2 + 1] * factor;
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_15 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_15 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      #pragma clang loop unroll(full)
      for (int r_16 = 0; r_16 < 2; ++r_16) {
        alignas(16) float C_v[2];
        #pragma clang loop unroll(full)
        for (int v_8 = 0; v_8 < 2; ++v_8) {
          C_v[v_8] = C_local[r_15 * 4 + r_16 * 2 + v_8];
        }
        *(device uint2*)&C[(by * 32 + i0_15) * 40 + bx * 32 + i1_15 + r_15 * 320 + r_16 * 8] = *(thread const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_16 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_16 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_17 = 0; r_17 < 2; ++r_17) {
      #pragma clang loop unroll(full)
      for (int r_18 = 0; r_18 < 2; ++r_18) {
        if (by * 32 + (r_17 * 8 + i0_16) < 33 && bx * 32 + (r_18 * 8 + i1_16) < 40) {
          alignas(16) float C_v_1[2];
          #pragma clang loop unroll(full)
          for (int v_9 = 0; v_9 < 2; ++v_9) {
            C_v_1[v_9] = C_local[r_17 * 4 + r_18 * 2 + v_9];
          }
          *(device uint2*)&C[(by * 32 + i0_16) * 40 + bx * 32 + i1_16 + r_17 * 320 + r_18 * 8] = *(thread const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
