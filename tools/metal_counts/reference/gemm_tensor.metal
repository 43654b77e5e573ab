// A product of half matrices by the tensor operations of Metal 4, as one writes it by hand: each simdgroup computes
// 32 x 32 elements of C and reads its operands from device memory, without threadgroup memory and barriers. TURNED: B is
// stored as (N, K), by rows of which lanes read it, and the descriptor transposes it.
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;

constant int N = 128, K = 128;

static inline void multiply(thread float* c, thread const half* a, thread const half* b) {
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, TURNED, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;
  auto left = product.get_left_input_cooperative_tensor<half, half, float>();
  auto right = product.get_right_input_cooperative_tensor<half, half, float>();
  auto sum = product.get_destination_cooperative_tensor<metal::remove_addrspace_t<decltype(left)>,
                                                        metal::remove_addrspace_t<decltype(right)>, float>();
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    left[i] = a[i];
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    right[i] = b[i];
    sum[i] = c[i];
  }
  product.run(left, right, sum);
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    c[i] = sum[i];
  }
}

// A lane holds two rows, 8 apart, of 4 elements each.
static inline void read(device const half* from, thread half* to, int pitch) {
  *(thread uint2*)&to[0] = *(device const uint2*)&from[0];
  *(thread uint2*)&to[4] = *(device const uint2*)&from[8 * pitch];
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const half* A [[buffer(0)]],
    device const half* B [[buffer(1)]],
    device half* C [[buffer(2)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const uint tid = thread_position_in_threadgroup.x, lane = tid % 32;
  const uint lane_row = lane / 16 * 4 + lane % 8 / 2, lane_column = lane / 8 % 2 * 8 + lane % 2 * 4;
  const uint row = threadgroup_position_in_grid.y * 64 + tid / 64 * 32 + lane_row;
  const uint column = threadgroup_position_in_grid.x * 64 + tid / 32 % 2 * 32 + lane_column;
  device const half* a = A + row * (uint)K + lane_column;
  device const half* b = TURNED ? B + (column - lane_column + lane_row) * (uint)K + lane_column : B + lane_row * (uint)N + column;
  float sum[32] = {0};
  for (int k = 0; k < K; k += 16) {
    alignas(16) half left[16];
    alignas(16) half right[16];
    read(a, &left[0], K);
    read(a + 16 * K, &left[8], K);
    read(b, &right[0], TURNED ? K : N);
    read(TURNED ? b + 16 * K : b + 16, &right[8], TURNED ? K : N);
    multiply(&sum[0], &left[0], right);
    multiply(&sum[16], &left[8], right);
    a += 16;
    b += TURNED ? 16 : 16 * N;
  }
  device half* c = C + row * (uint)N + column;
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 2; ++j) {
#pragma clang loop unroll(full)
      for (int down = 0; down < 2; ++down) {
        alignas(8) half to[4];
#pragma clang loop unroll(full)
        for (int e = 0; e < 4; ++e) {
          to[e] = (half)sum[i * 16 + j * 8 + down * 4 + e];
        }
        *(device uint2*)&c[(i * 16 + down * 8) * N + j * 16] = *(thread const uint2*)&to[0];
      }
    }
  }
}
