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

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const half* __restrict A [[buffer(0)]],
    device const half* __restrict B [[buffer(1)]],
    device half* __restrict C [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[9728];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = 0;
  const int by = 0;
  float C_local[32];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    #pragma clang loop unroll(full)
    for (int r_1 = 0; r_1 < 4; ++r_1) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        C_local[r * 8 + r_1 * 2 + v] = 0.0f;
      }
    }
  }
  alignas(16) half A_shared_ahead[16];
  alignas(16) half B_shared_ahead[16];
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 8;
  #pragma clang loop unroll(full)
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    *(thread uint4*)&A_shared_ahead[r_2 * 8] = *(device const uint4*)&A[i0 * 96 + i1 + r_2 * 3072 + by * 6144];
  }
  const int i0_1 = tid >> 3;
  const int i1_1 = (tid & 7) * 8;
  #pragma clang loop unroll(full)
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    *(thread uint4*)&B_shared_ahead[r_3 * 8] = *(device const uint4*)&B[i0_1 * 64 + i1_1 + r_3 * 1024 + bx * 64];
  }
  for (int k = 0; k < 3; ++k) {
    threadgroup half* const A_shared = (threadgroup half*)smem;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int i0_2 = tid >> 2;
    const int i1_2 = (tid & 3) * 8;
    #pragma clang loop unroll(full)
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      *(threadgroup uint4*)&A_shared[r_4 * 1280 + i0_2 * 40 + i1_2] = *(thread const uint4*)&A_shared_ahead[r_4 * 8];
    }
    threadgroup half* const B_shared = (threadgroup half*)(smem + 5120);
    const int i0_3 = tid >> 3;
    const int i1_3 = (tid & 7) * 8;
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      *(threadgroup uint4*)&B_shared[r_5 * 1152 + i0_3 * 72 + i1_3] = *(thread const uint4*)&B_shared_ahead[r_5 * 8];
    }
    if (k + 1 < 3) {
      const int i0_4 = tid >> 2;
      const int i1_4 = (tid & 3) * 8;
      #pragma clang loop unroll(full)
      for (int r_6 = 0; r_6 < 2; ++r_6) {
        *(thread uint4*)&A_shared_ahead[r_6 * 8] = *(device const uint4*)&A[i0_4 * 96 + i1_4 + k * 32 + r_6 * 3072 + by * 6144 + 32];
      }
      const int i0_5 = tid >> 3;
      const int i1_5 = (tid & 7) * 8;
      #pragma clang loop unroll(full)
      for (int r_7 = 0; r_7 < 2; ++r_7) {
        *(thread uint4*)&B_shared_ahead[r_7 * 8] = *(device const uint4*)&B[i0_5 * 64 + i1_5 + k * 2048 + r_7 * 1024 + 2048 + bx * 64];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int simd_row = ((tid >> 5) >> 1) * 32;
    const int simd_column = ((tid >> 5) & 1) * 32;
    half a_values[8];
    half b_values[2];
    #pragma clang loop unroll(full)
    for (int k_step = 0; k_step < 4; ++k_step) {
      #pragma clang loop unroll(full)
      for (int a_tile = 0; a_tile < 4; ++a_tile) {
        simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &A_shared[a_tile * 320 + simd_row * 40 + k_step * 8], 40);
      }
      #pragma clang loop unroll(full)
      for (int column_tile = 0; column_tile < 4; ++column_tile) {
        simdgroup_load_f16_threadgroup(&b_values[0], &B_shared[k_step * 576 + column_tile * 8 + simd_column], 72);
        #pragma clang loop unroll(full)
        for (int row_tile = 0; row_tile < 4; ++row_tile) {
          simdgroup_multiply_accumulate_f32_f16(&C_local[row_tile * 8 + column_tile * 2], &a_values[row_tile * 2], &b_values[0]);
        }
      }
    }
  }
  const int i0_6 = (tid >> 6) * 32 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_6 = ((tid & 63) >> 5) * 32 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_8 = 0; r_8 < 4; ++r_8) {
    #pragma clang loop unroll(full)
    for (int r_9 = 0; r_9 < 4; ++r_9) {
      alignas(16) half C_v[2];
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_v[v_1] = (half)C_local[r_8 * 8 + r_9 * 2 + v_1];
      }
      *(device uchar4*)&C[i0_6 * 64 + i1_6 + r_8 * 512 + r_9 * 8 + by * 4096 + bx * 64] = *(thread const uchar4*)&C_v[0];
    }
  }
}
