// Attention of 32 queries per threadgroup, as one writes it by hand: a simdgroup has 8 queries and all keys of a block;
// keys and values take turns in one place. Lanes 1 and 8 apart hold one row.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant int QUERIES = 128, KEYS = 128, DIM = DEPTH, BLOCK = WIDTH;
constant int PITCH = DIM + 8, PARTS = BLOCK / 8, STEPS = DIM / 8;

static inline void stage(device const half* from, threadgroup half* to, int rows, uint tid) {
#pragma clang loop unroll(full)
  for (int at = 0; at < rows * DIM; at += 128 * 8) {
    const int row = (at + (int)tid * 8) / DIM, column = (at + (int)tid * 8) % DIM;
    *(threadgroup uint4*)&to[row * PITCH + column] = *(device const uint4*)&from[row * DIM + column];
  }
}

[[kernel, max_total_threads_per_threadgroup(128)]] void attend(
    device const half* Q [[buffer(0)]],
    device const half* K [[buffer(1)]],
    device const half* V [[buffer(2)]],
    device half* Output [[buffer(3)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[SMEM];
  threadgroup half* const queries = (threadgroup half*)smem;
  threadgroup half* const others = queries + 32 * PITCH;
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint head = threadgroup_position_in_grid.y + threadgroup_position_in_grid.z;
  const uint row = threadgroup_position_in_grid.x * 32;
  device const half* keys = K + head * (uint)(KEYS * DIM);
  device const half* values = V + head * (uint)(KEYS * DIM);
  threadgroup const half* const mine = queries + tid / 32 * 8 * PITCH;
  stage(Q + (head * (uint)QUERIES + row) * DIM, queries, 32, tid);

  simdgroup_matrix<float, 8, 8> sum[STEPS];
#pragma clang loop unroll(full)
  for (int d = 0; d < STEPS; ++d) {
    sum[d].thread_elements()[0] = 0.0f;
    sum[d].thread_elements()[1] = 0.0f;
  }
  const float factor = 1.44269504f * rsqrt((float)DIM);
  float top = -INFINITY, total = 0.0f;
  for (int n = 0; n < KEYS; n += BLOCK) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage(keys + n * DIM, others, BLOCK, tid);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<float, 8, 8> score[PARTS];
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTS; ++j) {
      score[j].thread_elements()[0] = 0.0f;
      score[j].thread_elements()[1] = 0.0f;
    }
#pragma clang loop unroll(full)
    for (int d = 0; d < STEPS; ++d) {
      simdgroup_matrix<half, 8, 8> left, right[PARTS];
      simdgroup_load(left, &mine[d * 8], PITCH);
#pragma clang loop unroll(full)
      for (int j = 0; j < PARTS; ++j) {
        simdgroup_load(right[j], &others[j * 8 * PITCH + d * 8], PITCH, ulong2(0, 0), true);
      }
#pragma clang loop unroll(full)
      for (int j = 0; j < PARTS; ++j) {
        simdgroup_multiply_accumulate(score[j], left, right[j], score[j]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage(values + n * DIM, others, BLOCK, tid);
    float now = top;
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTS; ++j) {
#pragma clang loop unroll(full)
      for (int e = 0; e < 2; ++e) {
        score[j].thread_elements()[e] *= factor;
        now = max(now, score[j].thread_elements()[e]);
      }
    }
    now = max(now, simd_shuffle_xor(now, (ushort)1));
    now = max(now, simd_shuffle_xor(now, (ushort)8));
    const float correction = fast::exp2(top - now);
    float part = 0.0f;
    simdgroup_matrix<half, 8, 8> weight[PARTS];
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTS; ++j) {
#pragma clang loop unroll(full)
      for (int e = 0; e < 2; ++e) {
        const float power = fast::exp2(score[j].thread_elements()[e] - now);
        part += power;
        weight[j].thread_elements()[e] = (half)power;
      }
    }
    part += simd_shuffle_xor(part, (ushort)1);
    part += simd_shuffle_xor(part, (ushort)8);
    total = total * correction + part;
    top = now;
#pragma clang loop unroll(full)
    for (int d = 0; d < STEPS; ++d) {
      sum[d].thread_elements()[0] *= correction;
      sum[d].thread_elements()[1] *= correction;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTS; ++j) {
#pragma clang loop unroll(full)
      for (int d = 0; d < STEPS; ++d) {
        simdgroup_matrix<half, 8, 8> right;
        simdgroup_load(right, &others[j * 8 * PITCH + d * 8], PITCH);
        simdgroup_multiply_accumulate(sum[d], weight[j], right, sum[d]);
      }
    }
  }
  const uint lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 4 + lane % 2 * 2;
  device half* to = Output + (head * (uint)QUERIES + row + tid / 32 * 8 + lane_row) * DIM + lane_column;
#pragma clang loop unroll(full)
  for (int d = 0; d < STEPS; ++d) {
    to[d * 8] = (half)(sum[d].thread_elements()[0] / total);
    to[d * 8 + 1] = (half)(sum[d].thread_elements()[1] / total);
  }
}
