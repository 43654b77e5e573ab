// A product of matrices as one writes it by hand: 64 x 64 elements of C per threadgroup of two simdgroups of 64 x 32, one
// slot of 16 steps of K, rows of threadgroup memory 16 bytes apart so that 8 of them lie in different banks. Of 8 steps
// of K, 12 fragments make 32 products. TURNED: B is stored as (N, K), and its fragments are loaded transposed.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

typedef ELEMENT element;

constant int N = 128, K = 128, STEP = 16;
constant int VECTOR = 16 / sizeof(element);
constant int PITCH_A = STEP + VECTOR, PITCH_B = TURNED ? PITCH_A : 64 + VECTOR;
constant int ALONG_N = TURNED ? PITCH_B : 1, ALONG_K = TURNED ? 1 : PITCH_B;

[[kernel, max_total_threads_per_threadgroup(64)]] void gemm(
    device const element* A [[buffer(0)]],
    device const element* B [[buffer(1)]],
    device element* C [[buffer(2)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[SMEM];
  threadgroup element* const staged_a = (threadgroup element*)smem;
  threadgroup element* const staged_b = staged_a + 64 * PITCH_A;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint column = tid / 32 * 32;
  device const element* a = A + (threadgroup_position_in_grid.y * 64 + tid) * K;
  device const element* b = TURNED ? B + (threadgroup_position_in_grid.x * 64 + tid) * K
                                   : B + threadgroup_position_in_grid.x * 64 + tid / 4 * N + tid % 4 * 16;
  threadgroup element* to_a = staged_a + tid * PITCH_A;
  threadgroup element* to_b = TURNED ? staged_b + tid * PITCH_B : staged_b + tid / 4 * PITCH_B + tid % 4 * 16;

  simdgroup_matrix<float, 8, 8> sum[8][4];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      sum[i][j].thread_elements()[0] = 0.0f;
      sum[i][j].thread_elements()[1] = 0.0f;
    }
  }
  for (int k = 0; k < K; k += STEP) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i += VECTOR) {
      *(threadgroup uint4*)&to_a[i] = *(device const uint4*)&a[i];
      *(threadgroup uint4*)&to_b[i] = *(device const uint4*)&b[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (int step = 0; step < STEP; step += 8) {
      simdgroup_matrix<element, 8, 8> left[8], right[4];
#pragma clang loop unroll(full)
      for (int i = 0; i < 8; ++i) {
        simdgroup_load(left[i], &staged_a[i * 8 * PITCH_A + step], PITCH_A);
      }
#pragma clang loop unroll(full)
      for (int j = 0; j < 4; ++j) {
        simdgroup_load(right[j], &staged_b[step * ALONG_K + (column + j * 8) * ALONG_N], PITCH_B, ulong2(0, 0), TURNED);
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < 8; ++i) {
#pragma clang loop unroll(full)
        for (int j = 0; j < 4; ++j) {
          simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
      }
    }
    a += STEP;
    b += TURNED ? STEP : STEP * N;
  }
  const uint lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 4 + lane % 2 * 2;
  device element* c = C + (threadgroup_position_in_grid.y * 64 + lane_row) * N + threadgroup_position_in_grid.x * 64 +
                      column + lane_column;
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      c[i * 8 * N + j * 8] = (element)sum[i][j].thread_elements()[0];
      c[i * 8 * N + j * 8 + 1] = (element)sum[i][j].thread_elements()[1];
    }
  }
}
