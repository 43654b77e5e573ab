// A product with 4-bit integers, two in a byte, scaled per group of 64, stored as (N, K), as one writes it by hand: each
// number is decoded once, where it is staged, by the bits of a half of which it is the last digits; 32 x 32 elements of C
// per threadgroup of two simdgroups of 16 x 32, one slot of 64 steps of K, rows of threadgroup memory 16 bytes apart.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant int N = 64, K = 128, GROUP = 64, STEP = 64;
constant int PITCH = STEP + 8;

static inline void decode(uint codes, half scale, thread half* to) {
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {
    const uint pair = (codes >> (i * 4) & 15u) | (codes >> (i * 4 + 4) & 15u) << 16;
    const half2 numbers = as_type<half2>(pair ^ 0x64086408u) - as_type<half2>(0x64086408u);
    to[i] = numbers.x * scale;
    to[i + 1] = numbers.y * scale;
  }
}

[[kernel, max_total_threads_per_threadgroup(64)]] void gemm(
    device const half* A [[buffer(0)]],
    device const uchar* W [[buffer(1)]],
    device const half* scale [[buffer(2)]],
    device float* C [[buffer(3)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[9216];
  threadgroup half* const staged_a = (threadgroup half*)smem;
  threadgroup half* const staged_b = staged_a + 32 * PITCH;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  device const half* a = A + (threadgroup_position_in_grid.y * 32 + tid / 8) * K + tid % 8 * 8;
  device const uchar* w = W + (threadgroup_position_in_grid.x * 32 + tid / 4) * (K / 2) + tid % 4 * 8;
  device const half* s = scale + (threadgroup_position_in_grid.x * 32 + tid / 4) * (K / GROUP);
  threadgroup half* to_a = staged_a + tid / 8 * PITCH + tid % 8 * 8;
  threadgroup half* to_b = staged_b + tid / 4 * PITCH + tid % 4 * 16;

  simdgroup_matrix<float, 8, 8> sum[2][4];
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      sum[i][j].thread_elements()[0] = 0.0f;
      sum[i][j].thread_elements()[1] = 0.0f;
    }
  }
  for (int k = 0; k < K; k += STEP) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      *(threadgroup uint4*)&to_a[i * 8 * PITCH] = *(device const uint4*)&a[i * 8 * K];
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; ++i) {
      const uint2 codes = *(device const uint2*)&w[i * 16 * (K / 2)];
      alignas(16) half numbers[16];
      decode(codes.x, s[i * 16 * (K / GROUP)], &numbers[0]);
      decode(codes.y, s[i * 16 * (K / GROUP)], &numbers[8]);
      *(threadgroup uint4*)&to_b[i * 16 * PITCH] = *(thread const uint4*)&numbers[0];
      *(threadgroup uint4*)&to_b[i * 16 * PITCH + 8] = *(thread const uint4*)&numbers[8];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (int step = 0; step < STEP; step += 8) {
      simdgroup_matrix<half, 8, 8> left[2], right[4];
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; ++i) {
        simdgroup_load(left[i], &staged_a[(tid / 32 * 16 + i * 8) * PITCH + step], PITCH);
      }
#pragma clang loop unroll(full)
      for (int j = 0; j < 4; ++j) {
        simdgroup_load(right[j], &staged_b[j * 8 * PITCH + step], PITCH, ulong2(0, 0), true);
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
        for (int j = 0; j < 4; ++j) {
          simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
      }
    }
    a += STEP;
    w += STEP / 2;
    s += STEP / GROUP;
  }
  const uint lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 4 + lane % 2 * 2;
  device float* c = C + (threadgroup_position_in_grid.y * 32 + tid / 32 * 16 + lane_row) * N +
                    threadgroup_position_in_grid.x * 32 + lane_column;
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      *(device float2*)&c[i * 8 * N + j * 8] = float2(sum[i][j].thread_elements()[0], sum[i][j].thread_elements()[1]);
    }
  }
}
