// A product of float8_e4m3fn matrices, the second one transposed, as one writes it by hand: codes become half numbers
// where they are staged, each once; 64 x 64 elements of C per threadgroup, 4 simdgroups of 32 x 32, one slot of 32 steps
// of K, rows of threadgroup memory 16 bytes apart so that 8 of them lie in different banks.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant int N = 128, K = 128, STEP = 32;
constant int PITCH = 40;

static inline half number(uchar code) {
  const ushort bits = (ushort)((ushort)(code & 128) << 8 | (ushort)(code & 127) << 7);
  const half finite = (half)((float)as_type<half>(bits) * 256.0f);
  return (code & 127) == 127 ? as_type<half>((ushort)0x7e00) : finite;
}

static inline void stage(device const uchar* from, threadgroup half* to, int thread_index) {
  const int row = thread_index / 2, column = thread_index % 2 * 16;
  alignas(16) uchar codes[16];
  alignas(16) half numbers[16];
  *(thread uint4*)&codes[0] = *(device const uint4*)&from[row * K + column];
  for (int i = 0; i < 16; ++i) {
    numbers[i] = number(codes[i]);
  }
  *(threadgroup uint4*)&to[row * PITCH + column] = *(thread const uint4*)&numbers[0];
  *(threadgroup uint4*)&to[row * PITCH + column + 8] = *(thread const uint4*)&numbers[8];
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const uchar* A [[buffer(0)]],
    device const uchar* B [[buffer(1)]],
    device float* C [[buffer(2)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[10240];
  threadgroup half* const staged_a = (threadgroup half*)smem;
  threadgroup half* const staged_b = (threadgroup half*)(smem + 5120);
  const int tid = (int)thread_position_in_threadgroup.x;
  device const uchar* a = A + (int)threadgroup_position_in_grid.y * 64 * K;
  device const uchar* b = B + (int)threadgroup_position_in_grid.x * 64 * K;
  const int row = tid / 64 * 32, column = tid / 32 % 2 * 32, lane = tid % 32;

  simdgroup_matrix<float, 8, 8> sum[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      sum[i][j].thread_elements()[0] = 0.0f;
      sum[i][j].thread_elements()[1] = 0.0f;
    }
  }
  for (int k = 0; k < K; k += STEP) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage(a, staged_a, tid);
    stage(b, staged_b, tid);
    a += STEP;
    b += STEP;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int step = 0; step < STEP; step += 8) {
      simdgroup_matrix<half, 8, 8> left[4], right[4];
      for (int i = 0; i < 4; ++i) {
        simdgroup_load(left[i], &staged_a[(row + i * 8) * PITCH + step], PITCH);
        simdgroup_load(right[i], &staged_b[(column + i * 8) * PITCH + step], PITCH, ulong2(0, 0), true);
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
      }
    }
  }
  const int lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 4 + lane % 2 * 2;
  device float* c = C + ((int)threadgroup_position_in_grid.y * 64 + row + lane_row) * N +
                    (int)threadgroup_position_in_grid.x * 64 + column + lane_column;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      *(device float2*)&c[i * 8 * N + j * 8] = float2(sum[i][j].thread_elements()[0], sum[i][j].thread_elements()[1]);
    }
  }
}
