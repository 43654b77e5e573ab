#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline uint half_pair(float low, float high) {
  return as_type<uint>(half2((half)low, (half)high));
}

static inline uint half_pair_difference(uint a, uint b) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  return as_type<uint>(as_type<half2>(a) - as_type<half2>(b));
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
    device const half* __restrict A [[buffer(0)]],
    device const uchar* __restrict W [[buffer(1)]],
    device const half* __restrict scale [[buffer(2)]],
    device float* __restrict C [[buffer(3)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[9216];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup half* const W_shared = (threadgroup half*)smem;
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
  half A_shared_ahead[16];
  if (by < 1) {
    const int i0 = tid >> 3;
    const int i1 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      alignas(16) half A_v[8];
      *(thread uint4*)&A_v[0] = *(device const uint4*)&A[(by * 32 + i0) * 96 + i1 + r_2 * 1536];
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 8; ++v_1) {
        A_shared_ahead[r_2 * 8 + v_1] = A_v[v_1];
      }
    }
  }
  else {
    const int i0_1 = tid >> 3;
    const int i1_1 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      if (by * 32 + (r_3 * 16 + i0_1) < 33) {
        alignas(16) half A_v_1[8];
        *(thread uint4*)&A_v_1[0] = *(device const uint4*)&A[(by * 32 + i0_1) * 96 + i1_1 + r_3 * 1536];
        #pragma clang loop unroll(full)
        for (int v_2 = 0; v_2 < 8; ++v_2) {
          A_shared_ahead[r_3 * 8 + v_2] = A_v_1[v_2];
        }
      }
      else {
        #pragma clang loop unroll(full)
        for (int v_3 = 0; v_3 < 8; ++v_3) {
          A_shared_ahead[r_3 * 8 + v_3] = (half)0.0f;
        }
      }
    }
  }
  alignas(16) uchar W_ahead[8];
  half scale_ahead;
  if (bx < 1 || (1 <= bx && bx * 32 + (tid >> 2) < 50)) {
    *(thread uint2*)&W_ahead[0] = *(device const uint2*)&W[(bx * 32 + (tid >> 2)) * 48 + (tid & 3) * 8];
  }
  if (bx < 1 || (1 <= bx && bx * 32 + (tid >> 2) < 50 && bx * 32 + (tid >> 2) < 50) || (1 <= bx && 50 <= bx * 32 + (tid >> 2) && bx * 32 + (tid >> 2) < 50)) {
    scale_ahead = scale[(bx * 32 + (tid >> 2)) * 3 + ((tid & 3) >> 1)];
  }
  for (int k = 0; k < 2; ++k) {
    threadgroup half* const A_shared = (threadgroup half*)(smem + 4608);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_2 = tid >> 3;
    const int i1_2 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      alignas(16) half A_shared_v[8];
      #pragma clang loop unroll(full)
      for (int v_4 = 0; v_4 < 8; ++v_4) {
        A_shared_v[v_4] = A_shared_ahead[r_4 * 8 + v_4];
      }
      *(threadgroup uint4*)&A_shared[r_4 * 1152 + i0_2 * 72 + i1_2] = *(thread const uint4*)&A_shared_v[0];
    }
    if (k + 1 < 2) {
      const int i0_3 = tid >> 3;
      const int i1_3 = (tid & 7) * 8;
      #pragma clang loop unroll(full)
      for (int r_5 = 0; r_5 < 2; ++r_5) {
        if (by * 32 + (r_5 * 16 + i0_3) < 33 && k * 64 + 64 + i1_3 < 96) {
          alignas(16) half A_v_2[8];
          *(thread uint4*)&A_v_2[0] = *(device const uint4*)&A[(by * 32 + i0_3) * 96 + i1_3 + k * 64 + r_5 * 1536 + 64];
          #pragma clang loop unroll(full)
          for (int v_5 = 0; v_5 < 8; ++v_5) {
            A_shared_ahead[r_5 * 8 + v_5] = A_v_2[v_5];
          }
        }
        else {
          #pragma clang loop unroll(full)
          for (int v_6 = 0; v_6 < 8; ++v_6) {
            A_shared_ahead[r_5 * 8 + v_6] = (half)0.0f;
          }
        }
      }
    }
    if (bx < 1 && k < 1) {
      const int i = tid >> 2;
      const int j = (tid & 3) * 16;
      alignas(16) uchar W_v[8];
      thread uchar* const W_v_pairs = (thread uchar*)W_v;
      half scale_v;
      alignas(16) half W_shared_v[16];
      thread uint* const W_shared_v_pairs = (thread uint*)W_shared_v;
      *(thread uint2*)&W_v[0] = *(thread const uint2*)&W_ahead[0];
      scale_v = scale_ahead;
      #pragma clang loop unroll(full)
      for (int r_6 = 0; r_6 < 8; ++r_6) {
        const uint pair = half_pair_difference((((uint)W_v_pairs[r_6] * 4097u) & 983055u) ^ 1678271496u, 1678271496u);
        W_shared_v_pairs[r_6] = half_pair((float)as_type<half>((ushort)(ushort)pair) * (float)(((k * 64 + (j + r_6 * 2)) >> 5) < 3 ? scale_v : (half)0.0f), (float)as_type<half>((ushort)(ushort)(pair >> 16u)) * (float)(((k * 64 + (j + (r_6 * 2 + 1))) >> 5) < 3 ? scale_v : (half)0.0f));
      }
      *(threadgroup uint4*)&W_shared[i * 72 + j] = *(thread const uint4*)&W_shared_v[0];
      *(threadgroup uint4*)&W_shared[i * 72 + j + 8] = *(thread const uint4*)&W_shared_v[8];
    }
    else {
      const int i_1 = tid >> 2;
      const int j_1 = (tid & 3) * 16;
      if (bx * 32 + i_1 < 50 && k * 64 + j_1 < 96) {
        alignas(16) uchar W_v_1[8];
        thread uchar* const W_v_pairs_1 = (thread uchar*)W_v_1;
        alignas(16) half W_shared_v_1[16];
        thread uint* const W_shared_v_pairs_1 = (thread uint*)W_shared_v_1;
        *(thread uint2*)&W_v_1[0] = *(thread const uint2*)&W_ahead[0];
        #pragma clang loop unroll(full)
        for (int r_7 = 0; r_7 < 8; ++r_7) {
          const uint pair_1 = half_pair_difference((((uint)W_v_pairs_1[r_7] * 4097u) & 983055u) ^ 1678271496u, 1678271496u);
          W_shared_v_pairs_1[r_7] = half_pair((float)as_type<half>((ushort)(ushort)pair_1) * (float)(bx * 32 + i_1 < 50 && ((k * 64 + (j_1 + r_7 * 2)) >> 5) < 3 ? scale_ahead : (half)0.0f), (float)as_type<half>((ushort)(ushort)(pair_1 >> 16u)) * (float)(bx * 32 + i_1 < 50 && ((k * 64 + (j_1 + (r_7 * 2 + 1))) >> 5) < 3 ? scale_ahead : (half)0.0f));
        }
        *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1] = *(thread const uint4*)&W_shared_v_1[0];
        *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1 + 8] = *(thread const uint4*)&W_shared_v_1[8];
      }
      else {
        alignas(16) half W_shared_v_2[16];
        #pragma clang loop unroll(full)
        for (int r_8 = 0; r_8 < 16; ++r_8) {
          W_shared_v_2[r_8] = (half)((float)(half)(float)(char)0 * (float)(bx * 32 + i_1 < 50 && ((k * 64 + (j_1 + r_8)) >> 5) < 3 ? scale_ahead : (half)0.0f));
        }
        *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1] = *(thread const uint4*)&W_shared_v_2[0];
        *(threadgroup uint4*)&W_shared[i_1 * 72 + j_1 + 8] = *(thread const uint4*)&W_shared_v_2[8];
      }
    }
    if (k + 1 < 2) {
      const bool common = bx * 32 + (tid >> 2) < 50 && (k + 1) * 2 + ((tid & 3) >> 1) < 3;
      if (common) {
        *(thread uint2*)&W_ahead[0] = *(device const uint2*)&W[(bx * 32 + (tid >> 2)) * 48 + (tid & 3) * 8 + k * 32 + 32];
      }
      if ((common && (bx * 32 + (tid >> 2) < 50 && (k + 1) * 2 + ((tid & 3) >> 1) < 3)) || ((50 <= bx * 32 + (tid >> 2) || 3 <= (k + 1) * 2 + ((tid & 3) >> 1)) && (bx * 32 + (tid >> 2) < 50 && (k + 1) * 2 + ((tid & 3) >> 1) < 3))) {
        scale_ahead = scale[(bx * 32 + (tid >> 2)) * 3 + ((tid & 3) >> 1) + k * 2 + 2];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = ((tid >> 5) >> 1) * 16;
    const int simd_column = ((tid >> 5) & 1) * 16;
    half a_values[4];
    half b_values[2];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 8; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &A_shared[a_tile * 576 + simd_row * 72 + k_step * 8], 72);
      }
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 2; ++column_tile) {
        simdgroup_load_f16_threadgroup_transposed(&b_values[0], &W_shared[column_tile * 576 + simd_column * 72 + k_step * 8], 72);
        #pragma clang loop unroll(full)
        for (int row_tile = 0; row_tile < 2; ++row_tile) {
          simdgroup_multiply_accumulate_f32_f16(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[0]);
        }
      }
    }
  }
  if (by < 1 && bx < 1) {
    const int i0_4 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_4 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 2; ++r_9) {
      #pragma clang loop unroll(full)
      for (int r_10 = 0; r_10 < 2; ++r_10) {
        alignas(16) float C_v[2];
        #pragma clang loop unroll(full)
        for (int v_7 = 0; v_7 < 2; ++v_7) {
          C_v[v_7] = C_local[r_9 * 4 + r_10 * 2 + v_7];
        }
        *(device uint2*)&C[(by * 32 + i0_4) * 50 + bx * 32 + i1_4 + r_9 * 400 + r_10 * 8] = *(thread const uint2*)&C_v[0];
      }
    }
  }
  else {
    const int i0_5 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
    const int i1_5 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
    #pragma clang loop unroll(full)
    for (int r_11 = 0; r_11 < 2; ++r_11) {
      #pragma clang loop unroll(full)
      for (int r_12 = 0; r_12 < 2; ++r_12) {
        if (by * 32 + (r_11 * 8 + i0_5) < 33 && bx * 32 + (r_12 * 8 + i1_5) < 50) {
          alignas(16) float C_v_1[2];
          #pragma clang loop unroll(full)
          for (int v_8 = 0; v_8 < 2; ++v_8) {
            C_v_1[v_8] = C_local[r_11 * 4 + r_12 * 2 + v_8];
          }
          *(device uint2*)&C[(by * 32 + i0_5) * 50 + bx * 32 + i1_5 + r_11 * 400 + r_12 * 8] = *(thread const uint2*)&C_v_1[0];
        }
      }
    }
  }
}
