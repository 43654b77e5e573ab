#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline float max_f32(float a, float b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const int x = as_type<int>(a), y = as_type<int>(b);
  return b != b || (a == a && (x > y) != ((x & y) < 0)) ? a : b;
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
  alignas(16) threadgroup uchar smem[10240];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = 0;
  const int by = 0;
  const int bz = 0;
  threadgroup half* const Q_shared = (threadgroup half*)smem;
  float scores[32];
  half weights[32];
  float output[16];
  float top[2];
  float top_before[2];
  float correction[2];
  float row_sum[2];
  float total[2];
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 8;
  #pragma clang loop unroll(full)
  for (int r = 0; r < 2; ++r) {
    *(threadgroup uint4*)&Q_shared[r * 1280 + i0 * 40 + i1] = *(device const uint4*)&Q[i0 * 32 + i1 + r * 1024 + bz * 2048 + by * 2048 + bx * 2048];
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
  half K_shared_ahead[16];
  half V_shared_ahead[16];
  const int i0_1 = tid >> 2;
  const int i1_1 = (tid & 3) * 8;
  #pragma clang loop unroll(full)
  for (int r_5 = 0; r_5 < 2; ++r_5) {
    alignas(16) half K_v[8];
    *(thread uint4*)&K_v[0] = *(device const uint4*)&K[i0_1 * 32 + i1_1 + r_5 * 1024 + bz * 3072 + by * 3072];
    #pragma clang loop unroll(full)
    for (int v_1 = 0; v_1 < 8; ++v_1) {
      K_shared_ahead[r_5 * 8 + v_1] = K_v[v_1];
    }
  }
  for (int n = 0; n < 2; ++n) {
    threadgroup half* const K_shared = (threadgroup half*)(smem + 5120);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_2 = tid >> 2;
    const int i1_2 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_6 = 0; r_6 < 2; ++r_6) {
      alignas(16) half K_shared_v[8];
      #pragma clang loop unroll(full)
      for (int v_2 = 0; v_2 < 8; ++v_2) {
        K_shared_v[v_2] = K_shared_ahead[r_6 * 8 + v_2];
      }
      *(threadgroup uint4*)&K_shared[r_6 * 1280 + i0_2 * 40 + i1_2] = *(thread const uint4*)&K_shared_v[0];
    }
    if (n < 1) {
      const int i0_3 = tid >> 2;
      const int i1_3 = (tid & 3) * 8;
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 2; ++r_7) {
        alignas(16) half V_v[8];
        *(thread uint4*)&V_v[0] = *(device const uint4*)&V[i0_3 * 32 + i1_3 + n * 2048 + r_7 * 1024 + bz * 3072 + by * 3072];
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 8; ++v_3) {
          V_shared_ahead[r_7 * 8 + v_3] = V_v[v_3];
        }
      }
    }
    else {
      const int i0_4 = tid >> 2;
      const int i1_4 = (tid & 3) * 8;
      #pragma clang loop unroll(full)
      for (int r_8 = 0; r_8 < 2; ++r_8) {
        if (n * 64 + (r_8 * 32 + i0_4) < 96) {
          alignas(16) half V_v_1[8];
          *(thread uint4*)&V_v_1[0] = *(device const uint4*)&V[i0_4 * 32 + i1_4 + n * 2048 + r_8 * 1024 + bz * 3072 + by * 3072];
          #pragma clang loop unroll(full)
          for (int v_4 = 0; v_4 < 8; ++v_4) {
            V_shared_ahead[r_8 * 8 + v_4] = V_v_1[v_4];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int v_5 = 0; v_5 < 8; ++v_5) {
            V_shared_ahead[r_8 * 8 + v_5] = (half)0.0f;
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = (tid >> 5) * 16;
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
    half b_values[2];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &Q_shared[a_tile * 320 + simd_row * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int column_tile_1 = 0; column_tile_1 < 8; ++column_tile_1) {
        simdgroup_load_f16_threadgroup_transposed(&b_values[0], &K_shared[column_tile_1 * 320 + simd_column * 40 + k_step * 8], 40);
        #pragma clang loop unroll(full)
        for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
          simdgroup_multiply_accumulate_f32_f16(&scores[row_tile_1 * 16 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[0]);
        }
      }
    }
    threadgroup half* const V_shared = (threadgroup half*)(smem + 5120);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_5 = tid >> 2;
    const int i1_5 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      alignas(16) half V_shared_v[8];
      #pragma clang loop unroll(full)
      for (int v_6 = 0; v_6 < 8; ++v_6) {
        V_shared_v[v_6] = V_shared_ahead[r_9 * 8 + v_6];
      }
      *(threadgroup uint4*)&V_shared[r_9 * 1280 + i0_5 * 40 + i1_5] = *(thread const uint4*)&V_shared_v[0];
    }
    if (n + 1 < ((min(96, (bx + 1) * 64 + 32) + 64 - 1) >> 6)) {
      const int i0_6 = tid >> 2;
      const int i1_6 = (tid & 3) * 8;
      #pragma clang loop unroll(full)
      for (int r_10 = 0; r_10 < 2; ++r_10) {
        if (n * 64 + 64 + (r_10 * 32 + i0_6) < 96) {
          alignas(16) half K_v_1[8];
          *(thread uint4*)&K_v_1[0] = *(device const uint4*)&K[i0_6 * 32 + i1_6 + n * 2048 + r_10 * 1024 + bz * 3072 + by * 3072 + 2048];
          #pragma clang loop unroll(full)
          for (int v_7 = 0; v_7 < 8; ++v_7) {
            K_shared_ahead[r_10 * 8 + v_7] = K_v_1[v_7];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int v_8 = 0; v_8 < 8; ++v_8) {
            K_shared_ahead[r_10 * 8 + v_8] = (half)0.0f;
          }
        }
      }
    }
    const int i = (tid >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int j = ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    if (n * 64 + (56 + j + 1) < 96 && bx * 64 + i + 32 >= n * 64 + (56 + j + 1)) {
      #pragma clang loop unroll(full)
      for (int r_11 = 0; r_11 < 2; ++r_11) {
        #pragma clang loop unroll(full)
        for (int r_12 = 0; r_12 < 8; ++r_12) {
          #pragma clang loop unroll(full)
          for (int v_9 = 0; v_9 < 2; ++v_9) {
            scores[r_11 * 16 + r_12 * 2 + v_9] = scores[r_11 * 16 + r_12 * 2 + v_9] * 0.25503486f;
          }
        }
      }
    }
    else {
      #pragma clang loop unroll(full)
      for (int r_13 = 0; r_13 < 2; ++r_13) {
        #pragma clang loop unroll(full)
        for (int r_14 = 0; r_14 < 8; ++r_14) {
          #pragma clang loop unroll(full)
          for (int v_10 = 0; v_10 < 2; ++v_10) {
            scores[r_13 * 16 + r_14 * 2 + v_10] = n * 64 + (r_14 * 8 + j + v_10) < 96 && bx * 64 + (r_13 * 8 + i) + 32 >= n * 64 + (r_14 * 8 + j + v_10) ? scores[r_13 * 16 + r_14 * 2 + v_10] * 0.25503486f : as_type<float>(0xff800000u);
          }
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_15 = 0; r_15 < 2; ++r_15) {
      top_before[r_15] = top[r_15];
    }
    float acc[2];
    int keys[2];
    #pragma clang loop unroll(full)
    for (int r_16 = 0; r_16 < 2; ++r_16) {
      acc[r_16] = as_type<float>(0xff800000u);
      #pragma clang loop unroll(full)
      for (int r_17 = 0; r_17 < 8; ++r_17) {
        #pragma clang loop unroll(full)
        for (int r_18 = 0; r_18 < 2; ++r_18) {
          acc[r_16] = fmax(acc[r_16], scores[r_16 * 16 + r_17 * 2 + r_18]);
        }
      }
      if ((as_type<uint>(acc[r_16]) & 2139095040u) == 0u) {
        int above;
        int below;
        above = as_type<int>(as_type<uint>(as_type<float>(0xff800000u)) + 8388608u);
        below = as_type<int>(as_type<uint>(as_type<float>(0xff800000u)));
        #pragma clang loop unroll(full)
        for (int r_19 = 0; r_19 < 8; ++r_19) {
          #pragma clang loop unroll(full)
          for (int r_20 = 0; r_20 < 2; ++r_20) {
            above = max(above, as_type<int>(as_type<uint>(scores[r_16 * 16 + r_19 * 2 + r_20]) + 8388608u));
            below = min(below, as_type<int>(as_type<uint>(scores[r_16 * 16 + r_19 * 2 + r_20])));
          }
        }
        acc[r_16] = as_type<float>(as_type<uint>(above >= 8388608 ? (int)((uint)above - 8388608u) : below));
      }
    }
    #pragma clang loop unroll(full)
    for (int r_21 = 0; r_21 < 2; ++r_21) {
      const int bits = as_type<int>(acc[r_21]);
      keys[r_21] = bits ^ ((bits >> 31) & 2147483647);
    }
    #pragma clang loop unroll(full)
    for (int r_22 = 0; r_22 < 2; ++r_22) {
      const int mine = keys[r_22];
      const int other = as_type<int>(simd_shuffle_xor(as_type<uint>(mine), (ushort)1));
      keys[r_22] = max(keys[r_22], other);
    }
    #pragma clang loop unroll(full)
    for (int r_23 = 0; r_23 < 2; ++r_23) {
      const int mine_1 = keys[r_23];
      const int other_1 = as_type<int>(simd_shuffle_xor(as_type<uint>(mine_1), (ushort)8));
      keys[r_23] = max(keys[r_23], other_1);
    }
    #pragma clang loop unroll(full)
    for (int r_24 = 0; r_24 < 2; ++r_24) {
      const int key = keys[r_24];
      acc[r_24] = as_type<float>(key ^ ((key >> 31) & 2147483647));
    }
    #pragma clang loop unroll(full)
    for (int r_25 = 0; r_25 < 2; ++r_25) {
      top[r_25] = max_f32(top[r_25], acc[r_25]);
    }
    #pragma clang loop unroll(full)
    for (int r_26 = 0; r_26 < 2; ++r_26) {
      correction[r_26] = precise::exp2(top_before[r_26] - top[r_26]);
    }
    #pragma clang loop unroll(full)
    for (int r_27 = 0; r_27 < 2; ++r_27) {
      #pragma clang loop unroll(full)
      for (int r_28 = 0; r_28 < 8; ++r_28) {
        #pragma clang loop unroll(full)
        for (int v_11 = 0; v_11 < 2; ++v_11) {
          scores[r_27 * 16 + r_28 * 2 + v_11] = precise::exp2(scores[r_27 * 16 + r_28 * 2 + v_11] - top[r_27]);
        }
      }
    }
    float acc_1[2];
    #pragma clang loop unroll(full)
    for (int r_29 = 0; r_29 < 2; ++r_29) {
      acc_1[r_29] = 0.0f;
      #pragma clang loop unroll(full)
      for (int r_30 = 0; r_30 < 8; ++r_30) {
        #pragma clang loop unroll(full)
        for (int r_31 = 0; r_31 < 2; ++r_31) {
          acc_1[r_29] = acc_1[r_29] + scores[r_29 * 16 + r_30 * 2 + r_31];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_32 = 0; r_32 < 2; ++r_32) {
      const float mine_2 = acc_1[r_32];
      const float other_2 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_2), (ushort)1));
      acc_1[r_32] = acc_1[r_32] + other_2;
    }
    #pragma clang loop unroll(full)
    for (int r_33 = 0; r_33 < 2; ++r_33) {
      const float mine_3 = acc_1[r_33];
      const float other_3 = as_type<float>(simd_shuffle_xor(as_type<uint>(mine_3), (ushort)8));
      acc_1[r_33] = acc_1[r_33] + other_3;
    }
    #pragma clang loop unroll(full)
    for (int r_34 = 0; r_34 < 2; ++r_34) {
      row_sum[r_34] = acc_1[r_34];
    }
    #pragma clang loop unroll(full)
    for (int r_35 = 0; r_35 < 2; ++r_35) {
      total[r_35] = total[r_35] * correction[r_35] + row_sum[r_35];
    }
    #pragma clang loop unroll(full)
    for (int r_36 = 0; r_36 < 2; ++r_36) {
      #pragma clang loop unroll(full)
      for (int r_37 = 0; r_37 < 8; ++r_37) {
        #pragma clang loop unroll(full)
        for (int v_12 = 0; v_12 < 2; ++v_12) {
          weights[r_36 * 16 + r_37 * 2 + v_12] = (half)scores[r_36 * 16 + r_37 * 2 + v_12];
        }
      }
    }
    #pragma clang loop unroll(full)
    for (int r_38 = 0; r_38 < 2; ++r_38) {
      #pragma clang loop unroll(full)
      for (int r_39 = 0; r_39 < 4; ++r_39) {
        #pragma clang loop unroll(full)
        for (int v_13 = 0; v_13 < 2; ++v_13) {
          output[r_38 * 8 + r_39 * 2 + v_13] = output[r_38 * 8 + r_39 * 2 + v_13] * correction[r_38];
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_column_1 = 0;
    half b_values_1[2];
    #pragma clang loop unroll(full)
    for (int k_step_1 = 0; k_step_1 < 8; ++k_step_1) {
      #pragma clang loop unroll(full)
      for (int column_tile_2 = 0; column_tile_2 < 4; ++column_tile_2) {
        simdgroup_load_f16_threadgroup(&b_values_1[0], &V_shared[k_step_1 * 320 + column_tile_2 * 8 + simd_column_1], 40);
        #pragma clang loop unroll(full)
        for (int row_tile_2 = 0; row_tile_2 < 2; ++row_tile_2) {
          simdgroup_multiply_accumulate_f32_f16(&output[row_tile_2 * 8 + column_tile_2 * 2], &weights[row_tile_2 * 16 + k_step_1 * 2], &b_values_1[0]);
        }
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_40 = 0; r_40 < 2; ++r_40) {
    #pragma clang loop unroll(full)
    for (int r_41 = 0; r_41 < 4; ++r_41) {
      #pragma clang loop unroll(full)
      for (int v_14 = 0; v_14 < 2; ++v_14) {
        output[r_40 * 8 + r_41 * 2 + v_14] = output[r_40 * 8 + r_41 * 2 + v_14] / total[r_40];
      }
    }
  }
  const int i0_7 = (tid >> 5) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_7 = ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_42 = 0; r_42 < 2; ++r_42) {
    #pragma clang loop unroll(full)
    for (int r_43 = 0; r_43 < 4; ++r_43) {
      alignas(16) half Output_v[2];
      #pragma clang loop unroll(full)
      for (int v_15 = 0; v_15 < 2; ++v_15) {
        Output_v[v_15] = (half)output[r_42 * 8 + r_43 * 2 + v_15];
      }
      *(device uchar4*)&Output[i0_7 * 32 + i1_7 + r_42 * 256 + r_43 * 8 + bz * 2048 + by * 2048 + bx * 2048] = *(thread const uchar4*)&Output_v[0];
    }
  }
}
