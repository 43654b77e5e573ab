# ruff: noqa: E501 - texts of kernels
"""Two kernels as an emitter prints them; the seeded faults change one line of them."""

import ml_dtypes
import numpy as np

PRELUDE = """\
typedef unsigned short f16;
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ldmatrix_x4(unsigned* d, const void* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(p)) : "memory"); }
__device__ __forceinline__ void ldmatrix_x2_trans(unsigned* d, const void* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(d[0]), "=r"(d[1]) : "r"(shared_address(p)) : "memory"); }
__device__ __forceinline__ void cp_async_16(void* to, const void* from, unsigned valid) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared_address(to)), "l"(from), "r"(valid) : "memory"); }
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_1() { asm volatile("cp.async.wait_group 1;" : : : "memory"); }
__device__ __forceinline__ void cp_async_wait_0() { asm volatile("cp.async.wait_group 0;" : : : "memory"); }
__device__ __forceinline__ void mma(float* d, const unsigned* a, const unsigned* b, const float* c) { asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3])); }
__device__ __forceinline__ void mma_sp(float* d, const unsigned* a, const unsigned* b, const float* c, unsigned e) { asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16, 0x0;" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(e)); }
"""

# 32x16 of C per block of two warps, K in steps of 16, three stages of asynchronous copies; rows of A behind m are zero.
GEMM = """\
extern "C" __global__ void __launch_bounds__(64) gemm(const f16* __restrict__ A, const f16* __restrict__ B, float* __restrict__ out, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char smem[];
  f16* const A_s = (f16*)(smem + 0);
  f16* const B_s = (f16*)(smem + 4608);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const int row = blockIdx.y * 32, column = blockIdx.x * 16, steps = k / 16;
  float c[2][4];
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 4; ++i) c[j][i] = 0.0f;
  for (int s = 0; s < 2; ++s) {
    if (s < steps) {
      cp_async_16(A_s + s * 768 + t / 2 * 24 + t % 2 * 8, A + min(row + t / 2, m - 1) * k + s * 16 + t % 2 * 8, row + t / 2 < m ? 16 : 0);
      if (t < 32) cp_async_16(B_s + s * 384 + t / 2 * 24 + t % 2 * 8, B + (s * 16 + t / 2) * n + column + t % 2 * 8, 16);
    }
    cp_async_commit();
  }
  for (int s = 0; s < steps; ++s) {
    cp_async_wait_1();
    __syncthreads();
    const int next = s + 2, stage = next % 3;
    if (next < steps) {
      cp_async_16(A_s + stage * 768 + t / 2 * 24 + t % 2 * 8, A + min(row + t / 2, m - 1) * k + next * 16 + t % 2 * 8, row + t / 2 < m ? 16 : 0);
      if (t < 32) cp_async_16(B_s + stage * 384 + t / 2 * 24 + t % 2 * 8, B + (next * 16 + t / 2) * n + column + t % 2 * 8, 16);
    }
    cp_async_commit();
    unsigned a[4], b[2];
    ldmatrix_x4(a, A_s + s % 3 * 768 + (warp * 16 + lane % 16) * 24 + lane / 16 * 8);
    for (int j = 0; j < 2; ++j) {
      ldmatrix_x2_trans(b, B_s + s % 3 * 384 + lane % 16 * 24 + j * 8);
      mma(c[j], a, b, c[j]);
    }
  }
  cp_async_wait_0();
  for (int j = 0; j < 2; ++j)
    for (int h = 0; h < 2; ++h) {
      const int r = row + warp * 16 + lane / 4 + h * 8;
      if (r < m) *(float2*)(out + r * n + column + j * 8 + lane % 4 * 2) = make_float2(c[j][h * 2], c[j][h * 2 + 1]);
    }
}
"""

# 16x16 of C per warp, K in steps of 32: compressed A with 16 bits of metadata for 16 columns of a row.
SPARSE = """\
extern "C" __global__ void __launch_bounds__(32) gemm_sp(const f16* __restrict__ A, const unsigned short* __restrict__ E, const f16* __restrict__ B, float* __restrict__ out, int n, int k) {
  extern __shared__ __align__(1024) unsigned char smem[];
  f16* const A_s = (f16*)(smem + 0);
  f16* const B_s = (f16*)(smem + 1024);
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 16;
  float c[2][4];
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 4; ++i) c[j][i] = 0.0f;
  for (int s = 0; s < k; s += 32) {
    __syncthreads();
    *(uint4*)(A_s + lane / 2 * 24 + lane % 2 * 8) = *(const uint4*)(A + (row + lane / 2) * (k / 2) + s / 2 + lane % 2 * 8);
    for (int i = 0; i < 2; ++i)
      *(uint4*)(B_s + lane * 24 + i * 8) = __ldg((const uint4*)(B + (s + lane) * n + column + i * 8));
    __syncthreads();
    unsigned a[4], b[4];
    ldmatrix_x4(a, A_s + lane % 16 * 24 + lane / 16 * 8);
    const int g = lane / 4, q = lane % 2;
    const unsigned short* const e = E + (row + g) * (k / 16) + s / 16 + q;
    const unsigned meta = e[0] | (unsigned)e[8 * (k / 16)] << 16;
    for (int j = 0; j < 2; ++j) {
      ldmatrix_x2_trans(b, B_s + lane % 16 * 24 + j * 8);
      ldmatrix_x2_trans(b + 2, B_s + (16 + lane % 16) * 24 + j * 8);
      mma_sp(c[j], a, b, c[j], meta);
    }
  }
  for (int j = 0; j < 2; ++j)
    for (int h = 0; h < 2; ++h)
      *(float2*)(out + (row + lane / 4 + h * 8) * n + column + j * 8 + lane % 4 * 2) = make_float2(c[j][h * 2], c[j][h * 2 + 1]);
}
"""


def gemm(rng, m=37, n=32, k=80):
    a, b = (rng.normal(size=shape).astype("float16") for shape in ((m, k), (k, n)))
    args = [a.view("uint16"), b.view("uint16"), np.full((m, n), np.nan, "float32"), m, n, k]
    how = {"grid": (n // 16, -(-m // 32), 1), "block": (64, 1, 1), "shared_bytes": 4608 + 2304}
    return PRELUDE + GEMM, args, how, a.astype("float64") @ b.astype("float64")


def sparse(rng, m=32, n=32, k=96):
    legal = np.array([4, 8, 9, 12, 13, 14])
    nibbles = rng.choice(legal, (m, k // 4))
    values = rng.normal(size=(m, k // 2)).astype(ml_dtypes.float8_e4m3fn).astype("float16")
    dense = np.zeros((m, k))
    for i in range(2):
        columns = 4 * np.arange(k // 4) + (nibbles >> 2 * i & 3)
        np.put_along_axis(dense, columns, values[:, i::2].astype("float64"), axis=1)
    metadata = (nibbles.reshape(m, k // 16, 4) << 4 * np.arange(4)).sum(axis=2).astype("uint16")
    b = rng.normal(size=(k, n)).astype("float16")
    args = [values.view("uint16"), metadata, b.view("uint16"), np.full((m, n), np.nan, "float32"), n, k]
    how = {"grid": (n // 16, m // 16, 1), "block": (32, 1, 1), "shared_bytes": 1024 + 32 * 48}
    return PRELUDE + SPARSE, args, how, dense @ b.astype("float64")
