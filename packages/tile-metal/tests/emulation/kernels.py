# ruff: noqa: E501 - texts of kernels
"""A hand-written or emitted kernel; the seeded faults change one line of it."""

import ml_dtypes
import numpy as np

# 32x32 of C per threadgroup of four simdgroups, K in steps of 16; B is of e4m3, decoded where it is staged.
GEMM = """\
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

constant constexpr int TM = 32, TN = 32, TK = 16;
constant constexpr int LDA = TK + 8, LDB = TN + 8;

struct gemm_args {
  int n;
  int k;
  float alpha;
};

static inline half decode_e4m3(uchar code) {
  const ushort magnitude = code & 0x7f, sign = (ushort)(code & 0x80) << 8;
  const half value = as_type<half>((ushort)(magnitude << 7)) * 256.0h;
  return magnitude == 0x7f ? as_type<half>((ushort)(0x7e00 | sign)) : as_type<half>((ushort)(as_type<ushort>(value) | sign));
}

static inline void stage_a(threadgroup half* to, device const half* from, int pitch, int t) {
  const int row = t >> 2, column = (t & 3) * 4;
  *(threadgroup uint2*)&to[row * LDA + column] = *(device const uint2*)&from[row * pitch + column];
}

static inline void stage_b(threadgroup half* to, device const uchar* from, int pitch, int t) {
  const int row = t >> 3, column = (t & 7) * 4;
  const uchar4 codes = *(device const uchar4*)&from[row * pitch + column];
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; ++i) {
    to[row * LDB + column + i] = decode_e4m3(codes[i]);
  }
}

[[kernel, max_total_threads_per_threadgroup(128)]] void gemm(
    device const half* __restrict A [[buffer(0)]],
    device const uchar* __restrict B [[buffer(1)]],
    device float* __restrict C [[buffer(2)]],
    device float* __restrict peak [[buffer(3)]],
    constant gemm_args& args [[buffer(4)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const int n = args.n;
  const int k = args.k;
  const float alpha = args.alpha;
  alignas(16) threadgroup uchar smem[2816];
  threadgroup half* const A_s = (threadgroup half*)smem;
  threadgroup half* const B_s = (threadgroup half*)(smem + 1536);
  const int t = (int)thread_position_in_threadgroup.x, lane = t & 31, warp = t >> 5;
  const int row = (int)threadgroup_position_in_grid.y * TM, column = (int)threadgroup_position_in_grid.x * TN;
  const int wm = (warp >> 1) * 16, wn = (warp & 1) * 16;
  simdgroup_matrix<float, 8, 8> acc[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
  for (int at = 0; at < k; at += TK) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage_a(A_s, A + row * k + at, k, t);
    stage_b(B_s, B + at * n + column, n, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int step = 0; step < TK; step += 8) {
      simdgroup_half8x8 a[2], b[2];
      for (int i = 0; i < 2; ++i) {
        simdgroup_load(a[i], A_s + (wm + i * 8) * LDA + step, LDA);
        simdgroup_load(b[i], B_s + step * LDB + wn + i * 8, LDB, ulong2(0, 0), false);
      }
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          simdgroup_multiply_accumulate(acc[i][j], a[i], b[j], acc[i][j]);
        }
      }
    }
  }
  float most = 0.0f;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      thread auto& e = acc[i][j].thread_elements();
      e[0] *= alpha;
      e[1] *= alpha;
      most = max(most, max(fabs(e[0]), fabs(e[1])));
      simdgroup_store(acc[i][j], C + (row + wm + i * 8) * n + column + wn + j * 8, n);
    }
  }
  most = simd_max(most);
  if (lane == 0) {
    peak[(row / TM * (n / TN) + column / TN) * 4 + warp] = most;
  }
}
"""


def gemm(rng, m=64, n=96, k=48):
    a = rng.normal(size=(m, k)).astype("float16")
    b = rng.normal(size=(k, n)).astype(ml_dtypes.float8_e4m3fn)
    blocks = m // 32 * (n // 32)
    arrays = {
        "A": a,
        "B": b.view("uint8"),
        "C": np.full((m, n), np.nan, "float32"),
        "peak": np.full(blocks * 4, np.nan, "float32"),
    }
    how = {
        "grid": (n // 32, m // 32, 1),
        "block": (128, 1, 1),
        "shared_bytes": 2816,
        "scalars": {"n": "int32", "k": "int32", "alpha": "float32"},
    }
    expected = 0.5 * a.astype("float64") @ b.astype("float64")
    return {**arrays, "n": n, "k": k, "alpha": 0.5}, how, expected
