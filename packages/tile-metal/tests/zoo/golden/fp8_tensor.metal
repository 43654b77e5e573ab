#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

static inline uint decode_pair_float8_e4m3fn(ushort x) {
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma METAL fp contract(off)
  const uint codes = (((uint)x << 8) | ((uint)x << 16)) & 0xff00ff00u;
  const uint size = (codes & 0x7f007f00u) >> 1;
  const uint nan = ((size + 0x00800080u) & 0x40004000u) >> 1;
  const half2 wide = as_type<half2>(size + 0x20002000u);
  const half low = fmin(wide.x, fma(wide.x, (half)2.0f, (half)-0.015625f));
  const half high = fmin(wide.y, fma(wide.y, (half)2.0f, (half)-0.015625f));
  return as_type<uint>(half2(low, high)) | (codes & 0x80008000u) | nan;
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
    device const uchar* __restrict A [[buffer(0)]],
    device const float* __restrict A_scale [[buffer(1)]],
    device const uchar* __restrict B [[buffer(2)]],
    device const float* __restrict B_scale [[buffer(3)]],
    device bfloat* __restrict C [[buffer(4)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]
) {
  alignas(16) threadgroup uchar smem[9236];
  const int tid = (int)thread_position_in_threadgroup.x;
  const int bx = (int)threadgroup_position_in_grid.x;
  const int by = (int)threadgroup_position_in_grid.y;
  threadgroup float* const A_s = (threadgroup float*)(smem + 9216);
  threadgroup float* const B_s = (threadgroup float*)(smem + 9232);
  if (tid == 0) {
    A_s[0] = A_scale[0];
    B_s[0] = B_scale[0];
  }
  float C_local[8];
  device const uchar* const A_view = (device const uchar*)A;
  device const uchar* const B_view = (device const uchar*)B;
  float fragment_1[8];
  threadgroup half* const shared = (threadgroup half*)smem;
  threadgroup half* const shared_1 = (threadgroup half*)(smem + 4608);
  const int i0 = tid >> 2;
  const int i1 = (tid & 3) * 16;
  alignas(16) uchar A_view_v[16];
  thread ushort* const A_view_v_pairs = (thread ushort*)A_view_v;
  alignas(16) half shared_v[16];
  thread uint* const shared_v_pairs = (thread uint*)shared_v;
  *(thread uint4*)&A_view_v[0] = *(device const uint4*)&A_view[(by * 32 + i0) * 64 + i1];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 8; ++r) {
    shared_v_pairs[r] = decode_pair_float8_e4m3fn(A_view_v_pairs[r]);
  }
  *(threadgroup uint4*)&shared[i0 * 72 + i1] = *(thread const uint4*)&shared_v[0];
  *(threadgroup uint4*)&shared[i0 * 72 + i1 + 8] = *(thread const uint4*)&shared_v[8];
  const int i0_1 = tid >> 2;
  const int i1_1 = (tid & 3) * 16;
  alignas(16) uchar B_view_v[16];
  thread ushort* const B_view_v_pairs = (thread ushort*)B_view_v;
  alignas(16) half shared_1_v[16];
  thread uint* const shared_1_v_pairs = (thread uint*)shared_1_v;
  *(thread uint4*)&B_view_v[0] = *(device const uint4*)&B_view[(bx * 32 + i0_1) * 64 + i1_1];
  #pragma clang loop unroll(full)
  for (int r_1 = 0; r_1 < 8; ++r_1) {
    shared_1_v_pairs[r_1] = decode_pair_float8_e4m3fn(B_view_v_pairs[r_1]);
  }
  *(threadgroup uint4*)&shared_1[i0_1 * 72 + i1_1] = *(thread const uint4*)&shared_1_v[0];
  *(threadgroup uint4*)&shared_1[i0_1 * 72 + i1_1 + 8] = *(thread const uint4*)&shared_1_v[8];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int simd_row = ((tid >> 5) >> 1) * 16;
  const int simd_column = ((tid >> 5) & 1) * 16;
  #pragma clang loop unroll(full)
  for (int row_tile = 0; row_tile < 2; ++row_tile) {
    #pragma clang loop unroll(full)
    for (int column_tile = 0; column_tile < 2; ++column_tile) {
      #pragma clang loop unroll(full)
      for (int e = 0; e < 2; ++e) {
        fragment_1[row_tile * 4 + column_tile * 2 + e] = 0.0f;
      }
    }
  }
  half a_values[4];
  half b_values[2];
  #pragma clang loop unroll(full)
  for (int k_step = 0; k_step < 8; ++k_step) {
    #pragma clang loop unroll(full)
    for (int a_tile = 0; a_tile < 2; ++a_tile) {
      simdgroup_load_f16_threadgroup(&a_values[a_tile * 2], &shared[a_tile * 576 + simd_row * 72 + k_step * 8], 72);
    }
    #pragma clang loop unroll(full)
    for (int column_tile_1 = 0; column_tile_1 < 2; ++column_tile_1) {
      simdgroup_load_f16_threadgroup_transposed(&b_values[0], &shared_1[column_tile_1 * 576 + simd_column * 72 + k_step * 8], 72);
      #pragma clang loop unroll(full)
      for (int row_tile_1 = 0; row_tile_1 < 2; ++row_tile_1) {
        simdgroup_multiply_accumulate_f32_f16(&fragment_1[row_tile_1 * 4 + column_tile_1 * 2], &a_values[row_tile_1 * 2], &b_values[0]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    #pragma clang loop unroll(full)
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      #pragma clang loop unroll(full)
      for (int v = 0; v < 2; ++v) {
        fragment_1[r_2 * 4 + r_3 * 2 + v] = fragment_1[r_2 * 4 + r_3 * 2 + v] * (A_s[0] * B_s[0]);
      }
    }
  }
  #pragma clang loop unroll(full)
  for (int r_4 = 0; r_4 < 2; ++r_4) {
    #pragma clang loop unroll(full)
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      #pragma clang loop unroll(full)
      for (int v_1 = 0; v_1 < 2; ++v_1) {
        C_local[r_4 * 4 + r_5 * 2 + v_1] = fragment_1[r_4 * 4 + r_5 * 2 + v_1];
      }
    }
  }
  const int i0_2 = (tid >> 6) * 16 + ((tid & 31) >> 4) * 4 + ((tid & 7) >> 1);
  const int i1_2 = ((tid & 63) >> 5) * 16 + ((tid & 15) >> 3) * 4 + (tid & 1) * 2;
  #pragma clang loop unroll(full)
  for (int r_6 = 0; r_6 < 2; ++r_6) {
    #pragma clang loop unroll(full)
    for (int r_7 = 0; r_7 < 2; ++r_7) {
      alignas(16) bfloat C_v[2];
      #pragma clang loop unroll(full)
      for (int v_2 = 0; v_2 < 2; ++v_2) {
        C_v[v_2] = (bfloat)C_local[r_6 * 4 + r_7 * 2 + v_2];
      }
      *(device uchar4*)&C[(by * 32 + i0_2) * 64 + bx * 32 + i1_2 + r_6 * 512 + r_7 * 8] = *(thread const uchar4*)&C_v[0];
    }
  }
}
