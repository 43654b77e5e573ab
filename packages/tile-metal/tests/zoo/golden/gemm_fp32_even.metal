#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline void simdgroup_load_f32_threadgroup(thread float* to, threadgroup const float* from, int pitch) {
  simdgroup_matrix<float, 8, 8> m;
  simdgroup_load(m, from, (ulong)pitch);
  to[0] = m.thread_elements()[0];
  to[1] = m.thread_elements()[1];
}

static inline void simdgroup_multiply_accumulate_f32_f32(thread float* c, thread const float* a, thread const float* b) {
  simdgroup_matrix<float, 8, 8> sum;
  simdgroup_matrix<float, 8, 8> left, right;
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
    device const float* __restrict A [[buffer(0)]],
    device const float* __restrict B [[buffer(1)]],
    device float* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[9216];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = 0;
  threadgroup float* const A_shared = (threadgroup float*)smem;
  threadgroup float* const B_shared = (threadgroup float*)(smem + 4608);
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
  for (int k = 0; k < 1; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0 = tid >> 3;
    const int i1 = (tid & 7) * 4;
    #pragma clang loop unroll(full)
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      *(threadgroup uint4*)&A_shared[r_2 * 576 + i0 * 36 + i1] = *(device const uint4*)&A[i0 * 32 + i1 + r_2 * 512 + by * 1024];
    }
    const int i0_1 = tid >> 3;
    const int i1_1 = (tid & 7) * 4;
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      *(threadgroup uint4*)&B_shared[r_3 * 576 + i0_1 * 36 + i1_1] = *(device const uint4*)&B[i0_1 * 64 + bx * 32 + i1_1 + r_3 * 1024];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = ((tid >> 5) >> 1) * 16;
    const int simd_column = ((tid >> 5) & 1) * 16;
    float a_values[4];
    float b_values[2];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 2; ++a_tile) {
        simdgroup_load_f32_threadgroup(&a_values[a_tile * 2], &A_shared[a_tile * 288 + simd_row * 36 + k_step * 8], 36);
      }
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 2; ++column_tile) {
        simdgroup_load_f32_threadgroup(&b_values[0], &B_shared[k_step * 288 + column_tile * 8 + simd_column], 36);
        #pragma clang loop unroll(full)
        for (int row_tile = 0; row_tile < 2; ++row_tile) {
          simdgroup_multiply_accumulate_f32_f32(&C_local[row_tile * 4 + column_tile * 2], &a_values[row_tile * 2], &b_values[0]);
        }
      }
    }
  }
  const int i0_2 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_2 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      alignas(16) float C_v[2];
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_v[v_1] = C_local[r_4 * 4 + r_5 * 2 + v_1];
      }
      *(device uint2*)&C[i0_2 * 64 + bx * 32 + i1_2 + r_4 * 512 + r_5 * 8 + by * 2048] = *(thread const uint2*)&C_v[0];
    }
  }
}
