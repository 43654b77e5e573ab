// A product of half matrices, as one writes it by hand: 64 x 64 elements of C per threadgroup, 4 simdgroups of 32 x 32,
// two slots of 32 steps of K, rows of threadgroup memory 16 bytes apart so that 8 of them lie in different banks.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant int N = 128, K = 128, STEP = 32;
constant int PITCH_A = 40, PITCH_B = 72;
constant int SLOT_A = 2560, SLOT_B = 2304;

static inline void stage(device const half* a, device const half* b, threadgroup half* to_a, threadgroup half* to_b,
                         int thread_index) {
  for (int i = thread_index; i < 64 * 4; i += 128) {
    const int row = i / 4, column = i % 4 * 8;
    *(threadgroup uint4*)&to_a[row * PITCH_A + column] = *(device const uint4*)&a[row * K + column];
  }
  for (int i = thread_index; i < 32 * 8; i += 128) {
    const int row = i / 8, column = i % 8 * 8;
    *(threadgroup uint4*)&to_b[row * PITCH_B + column] = *(device const uint4*)&b[row * N + column];
  }
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const half* A [[buffer(0)]],
    device const half* B [[buffer(1)]],
    device half* C [[buffer(2)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[19456];
  threadgroup half* const staged_a = (threadgroup half*)smem;
  threadgroup half* const staged_b = (threadgroup half*)(smem + 10240);
  const int tid = (int)thread_position_in_threadgroup.x;
  device const half* a = A + (int)threadgroup_position_in_grid.y * 64 * K;
  device const half* b = B + (int)threadgroup_position_in_grid.x * 64;
  const int row = tid / 64 * 32, column = tid / 32 % 2 * 32, lane = tid % 32;

  simdgroup_matrix<float, 8, 8> sum[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
  stage(a, b, staged_a, staged_b, tid);
  for (int k = 0; k < K; k += STEP) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int slot = k / STEP % 2;
    if (k + STEP < K) {
      a += STEP;
      b += STEP * N;
      stage(a, b, staged_a + (1 - slot) * SLOT_A, staged_b + (1 - slot) * SLOT_B, tid);
    }
    for (int step = 0; step < STEP; step += 8) {
      simdgroup_matrix<half, 8, 8> left[4], right[4];
      for (int i = 0; i < 4; ++i) {
        simdgroup_load(left[i], &staged_a[slot * SLOT_A + (row + i * 8) * PITCH_A + step], PITCH_A);
        simdgroup_load(right[i], &staged_b[slot * SLOT_B + step * PITCH_B + column + i * 8], PITCH_B);
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
      }
    }
  }
  const int lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 4 + lane % 2 * 2;
  device half* c = C + ((int)threadgroup_position_in_grid.y * 64 + row + lane_row) * N +
                   (int)threadgroup_position_in_grid.x * 64 + column + lane_column;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      alignas(4) half pair[2];
      pair[0] = (half)sum[i][j].thread_elements()[0];
      pair[1] = (half)sum[i][j].thread_elements()[1];
      *(device uint*)&c[i * 8 * N + j * 8] = *(thread const uint*)&pair[0];
    }
  }
}
