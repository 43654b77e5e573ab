#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

static inline float max_f32(float a, float b) {
  return a == b ? as_type<float>(as_type<uint>(a) & as_type<uint>(b)) : a > b || b != b ? a : b;
}

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
    device const half* __restrict Q [[buffer(0)]],
    device const half* __restrict K [[buffer(1)]],
    device const half* __restrict V [[buffer(2)]],
    device half* __restrict Output [[buffer(3)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[25600];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = 0;
  const int by = 0;
  const int bz = 0;
  threadgroup half* const Q_shared = (threadgroup half*)smem;
  threadgroup half* const K_shared_stages = (threadgroup half*)(smem + 5120);
  threadgroup half* const V_shared_stages = (threadgroup half*)(smem + 15360);
  float scores[32];
  half weights[32];
  float output[16];
  float top[2];
  float top_before[2];
  float correction[2];
  float row_sum[2];
  float total[2];
  const int i0 = tid / 4;
  const int i1 = (tid % 4) * 8;
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    *(threadgroup uint4*)&Q_shared[r * 1280 + i0 * 40 + i1] = *(device const uint4*)&Q[bz * 2048 + by * 2048 + (bx * 64 + r * 32 + i0) * 32 + i1];
  }
  #pragma clang loop unroll(full)
  for (int r_1 = 0; r_1 < 2; ++r_1) {
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 4; ++r_2) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        output[r_1 * 8 + r_2 * 2 + v] = 0.0f;
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    total[r_3] = 0.0f;
  }
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    top[r_4] = as_type<float>(0xff800000u);
  }
  const int n_trips = (min(96, (bx + 1) * 64 + 32) + 64 - 1) / 64;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (0 < n_trips) {
    const int i0_1 = tid / 4;
    const int i1_1 = (tid % 4) * 8;
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      *(threadgroup uint4*)&K_shared_stages[r_5 * 1280 + i0_1 * 40 + i1_1] = *(device const uint4*)&K[bz * 3072 + by * 3072 + (r_5 * 32 + i0_1) * 32 + i1_1];
    }
    const int i0_2 = tid / 4;
    const int i1_2 = (tid % 4) * 8;
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      *(threadgroup uint4*)&V_shared_stages[r_6 * 1280 + i0_2 * 40 + i1_2] = *(device const uint4*)&V[bz * 3072 + by * 3072 + (r_6 * 32 + i0_2) * 32 + i1_2];
    }
  }
  for (int n = 0; n < 2; ++n) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int slot = n % 2;
    const int slot_ahead = (n + 1) % 2;
    if (n + 1 < n_trips) {
      const int i0_3 = tid / 4;
      const int i1_3 = (tid % 4) * 8;
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 2; ++r_7) {
        alignas(16) half K_shared_stages_v[8];
        #pragma clang loop unroll(full)
        for (int v_1 = 0; v_1 < 8; ++v_1) {
          K_shared_stages_v[v_1] = n * 64 + 64 + (r_7 * 32 + i0_3) < 96 ? K[bz * 3072 + by * 3072 + (n * 64 + r_7 * 32 + i0_3 + 64) * 32 + (i1_3 + v_1)] : (half)0.0f;
        }
        *(threadgroup uint4*)&K_shared_stages[slot_ahead * 2560 + r_7 * 1280 + i0_3 * 40 + i1_3] = *(thread const uint4*)&K_shared_stages_v[0];
      }
      const int i0_4 = tid / 4;
      const int i1_4 = (tid % 4) * 8;
      #pragma clang loop unroll(full)
      for (int r_8 = 0; r_8 < 2; ++r_8) {
        alignas(16) half V_shared_stages_v[8];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 8; ++v_2) {
          V_shared_stages_v[v_2] = n * 64 + 64 + (r_8 * 32 + i0_4) < 96 ? V[bz * 3072 + by * 3072 + (n * 64 + r_8 * 32 + i0_4 + 64) * 32 + (i1_4 + v_2)] : (half)0.0f;
        }
        *(threadgroup uint4*)&V_shared_stages[slot_ahead * 2560 + r_8 * 1280 + i0_4 * 40 + i1_4] = *(thread const uint4*)&V_shared_stages_v[0];
      }
    }
    const int simd_row = (tid / 32) * 16;
    const int simd_column = 0;
    #pragma clang loop unroll(full)
    for (int row_tile = 0; row_tile < 2; ++row_tile) {
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 8; ++column_tile) {
        #pragma clang loop unroll(full)
        for (int e = 0; e < 2; ++e) {
          scores[row_tile * 16 + column_tile * 2 + e] = 0.0f;
        }
      }
    }
    half a_values[4];
    half b_values[16];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &Q_shared[a_tile * 320 + simd_row * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int b_tile = 0; b_tile < 8; ++b_tile) {
        simdgroup_load_f16_threadgroup_transposed(&b_values[b_tile * 2], &K_shared_stages[slot * 2560 + b_tile * 320 + simd_column * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        #pragma clang loop unroll(full)
        for (int column_tile_1 = 0; column_tile_1 < 8; ++column_tile_1) {
          simdgroup_multiply_accumulate_f32_f16(&scores[row_tile_1 * 16 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[column_tile_1 * 2]);
        }
      }
    }
    const int i = (tid / 32) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
    const int j = ((tid % 16) / 8) * 4 + (tid % 2) * 2;
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      #pragma clang loop unroll(full)
      for (int r_10 = 0; r_10 < 8; ++r_10) {
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 2; ++v_3) {
          scores[r_9 * 16 + r_10 * 2 + v_3] = n * 64 + (r_10 * 8 + j + v_3) < 96 && bx * 64 + (r_9 * 8 + i) + 32 >= n * 64 + (r_10 * 8 + j + v_3) ? scores[r_9 * 16 + r_10 * 2 + v_3] * 0.25503486f : as_type<float>(0xff800000u);
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_11 = 0; r_11 < 2; ++r_11) {
      top_before[r_11] = top[r_11];
    }
    float acc[2];
    #pragma clang loop unroll(full)
    for (int r_12 = 0; r_12 < 2; ++r_12) {
      acc[r_12] = as_type<float>(0xff800000u);
      #pragma clang loop unroll(full)
      for (int r_13 = 0; r_13 < 8; ++r_13) {
        #pragma clang loop unroll(full)
        for (int r_14 = 0; r_14 < 2; ++r_14) {
          acc[r_12] = max_f32(acc[r_12], scores[r_12 * 16 + r_13 * 2 + r_14]);
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      const float mine = acc[r_15];
      const float other = as_type<float>(simd_shuffle_xor(as_type<uint>(mine), (ushort)1));
      acc[r_15] = max_f32(acc[r_15], other);
    }
    #pragma clang loop unroll(full)
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      const float mine_1 = acc[r_16];
      const float other_1 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_1), (ushort)8));
      acc[r_16] = max_f32(acc[r_16], other_1);
    }
    #pragma clang loop unroll(full)
    for (int r_17 = 0; r_17 < 2; ++r_17) {
      top[r_17] = max_f32(top[r_17], acc[r_17]);
    }
    #pragma clang loop unroll(full)
    for (int r_18 = 0; r_18 < 2; ++r_18) {
      correction[r_18] = precise::exp2(top_before[r_18] - top[r_18]);
    }
    #pragma clang loop unroll(full)
    for (int r_19 = 0; r_19 < 2; ++r_19) {
      #pragma clang loop unroll(full)
      for (int r_20 = 0; r_20 < 8; ++r_20) {
        #pragma clang loop unroll(full)
        for (int v_4 = 0; v_4 < 2; ++v_4) {
          scores[r_19 * 16 + r_20 * 2 + v_4] = precise::exp2(scores[r_19 * 16 + r_20 * 2 + v_4] - top[r_19]);
        }
      }
    }
    float acc_1[2];
    #pragma clang loop unroll(full)
    for (int r_21 = 0; r_21 < 2; ++r_21) {
      acc_1[r_21] = 0.0f;
      #pragma clang loop unroll(full)
      for (int r_22 = 0; r_22 < 8; ++r_22) {
        #pragma clang loop unroll(full)
        for (int r_23 = 0; r_23 < 2; ++r_23) {
          acc_1[r_21] = acc_1[r_21] + scores[r_21 * 16 + r_22 * 2 + r_23];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_24 = 0; r_24 < 2; ++r_24) {
      const float mine_2 = acc_1[r_24];
      const float other_2 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_2), (ushort)1));
      acc_1[r_24] = acc_1[r_24] + other_2;
    }
    #pragma clang loop unroll(full)
    for (int r_25 = 0; r_25 < 2; ++r_25) {
      const float mine_3 = acc_1[r_25];
      const float other_3 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_3), (ushort)8));
      acc_1[r_25] = acc_1[r_25] + other_3;
    }
    #pragma clang loop unroll(full)
    for (int r_26 = 0; r_26 < 2; ++r_26) {
      row_sum[r_26] = acc_1[r_26];
    }
    #pragma clang loop unroll(full)
    for (int r_27 = 0; r_27 < 2; ++r_27) {
      total[r_27] = total[r_27] * correction[r_27] + row_sum[r_27];
    }
    #pragma clang loop unroll(full)
    for (int r_28 = 0; r_28 < 2; ++r_28) {
      #pragma clang loop unroll(full)
      for (int r_29 = 0; r_29 < 8; ++r_29) {
        #pragma clang loop unroll(full)
        for (int v_5 = 0; v_5 < 2; ++v_5) {
          weights[r_28 * 16 + r_29 * 2 + v_5] = (half)scores[r_28 * 16 + r_29 * 2 + v_5];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_30 = 0; r_30 < 2; ++r_30) {
      #pragma clang loop unroll(full)
      for (int r_31 = 0; r_31 < 4; ++r_31) {
        #pragma clang loop unroll(full)
        for (int v_6 = 0; v_6 < 2; ++v_6) {
          output[r_30 * 8 + r_31 * 2 + v_6] = output[r_30 * 8 + r_31 * 2 + v_6] * correction[r_30];
        }
      }
    }
    const int simd_column_1 = 0;
    half b_values_1[8];
    #pragma clang loop unroll(full)
    for (int k_step_1 = 0; k_step_1 < 8; ++k_step_1) {
      #pragma clang loop unroll(full)
      for (int b_tile_1 = 0; b_tile_1 < 4; ++b_tile_1) {
        simdgroup_load_f16_threadgroup(&b_values_1[b_tile_1 * 2], &V_shared_stages[slot * 2560 + k_step_1 * 320 + b_tile_1 * 8 + simd_column_1], 40);
      }
      #pragma clang loop unroll(full)
      for (int row_tile_2 = 0; row_tile_2 < 2; ++row_tile_2) {
        #pragma clang loop unroll(full)
        for (int column_tile_2 = 0; column_tile_2 < 4; ++column_tile_2) {
          simdgroup_multiply_accumulate_f32_f16(&output[row_tile_2 * 8 + column_tile_2 * 2], &weights[row_tile_2 * 16 + k_step_1 * 2], &b_values_1[column_tile_2 * 2]);
        }
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_32 = 0; r_32 < 2; ++r_32) {
    #pragma clang loop unroll(full)
    for (int r_33 = 0; r_33 < 4; ++r_33) {
      #pragma clang loop unroll(full)
      for (int v_7 = 0; v_7 < 2; ++v_7) {
        output[r_32 * 8 + r_33 * 2 + v_7] = output[r_32 * 8 + r_33 * 2 + v_7] / total[r_32];
      }
    }
  }
  const int i0_5 = (tid / 32) * 16 + ((tid % 32) / 16) * 4 + (tid % 8) / 2;
  const int i1_5 = ((tid % 16) / 8) * 4 + (tid % 2) * 2;
  #pragma clang loop unroll(full)
  for (int r_34 = 0; r_34 < 2; ++r_34) {
    #pragma clang loop unroll(full)
    for (int r_35 = 0; r_35 < 4; ++r_35) {
      alignas(16) half Output_v[2];
      #pragma clang loop unroll(full)
      for (int v_8 = 0; v_8 < 2; ++v_8) {
        Output_v[v_8] = (half)output[r_34 * 8 + r_35 * 2 + v_8];
      }
      *(device uchar4*)&Output[bz * 2048 + by * 2048 + (bx * 64 + r_34 * 8 + i0_5) * 32 + (r_35 * 8 + i1_5)] = *(thread const uchar4*)&Output_v[0];
    }
  }
}
