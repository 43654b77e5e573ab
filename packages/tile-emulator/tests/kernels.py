"""Correct kernels; the tests of faults change one line of them."""

import numpy as np

# A block transposes a tile through shared memory.
TRANSPOSE = """\
__global__ void transpose(const float* a, float* out, int n) {
  extern __shared__ float s[];
  int tile_row = blockIdx.y * 16, tile_column = blockIdx.x * 16;
  for (int r = threadIdx.x / 16; r < 16; r += 4) {
    int row = tile_row + r, column = tile_column + threadIdx.x % 16;
    s[r * 17 + threadIdx.x % 16] = row < n && column < n ? a[row * n + column] : 0.0f;
  }
  __syncthreads();
  for (int r = threadIdx.x / 16; r < 16; r += 4) {
    int row = tile_column + r, column = tile_row + threadIdx.x % 16;
    if (row < n && column < n) out[row * n + column] = s[threadIdx.x % 16 * 17 + r];
  }
}
"""

# A product with the warp's matrix instruction, tiles of K copied asynchronously, three stages in flight.
GEMM = """\
__global__ void gemm(const float* a, const float* b, float* out, int n, int k) {
  extern __shared__ float s[];
  float c[4] = {0, 0, 0, 0};
  int lane = threadIdx.x, row = lane / 4, column = lane % 4, steps = k / 8;
  float* as = s;
  float* bs = s + 3 * 128;
  const float* from = a + blockIdx.y * 16 * k;
  for (int t = 0; t < 2; t++) {
    cp_async16(as + t * 128 + lane * 4, from + lane / 2 * k + t * 8 + lane % 2 * 4);
    if (lane < 16) cp_async16(bs + t * 64 + lane * 4, b + (t * 8 + lane / 2) * n + blockIdx.x * 8 + lane % 2 * 4);
    cp_async_commit();
  }
  for (int t = 0; t < steps; t++) {
    cp_async_wait(1);
    __syncthreads();
    int next = t + 2, slot = next % 3;
    if (next < steps) {
      cp_async16(as + slot * 128 + lane * 4, from + lane / 2 * k + next * 8 + lane % 2 * 4);
      const float* rows = b + (next * 8 + lane / 2) * n;
      if (lane < 16) cp_async16(bs + slot * 64 + lane * 4, rows + blockIdx.x * 8 + lane % 2 * 4);
    }
    cp_async_commit();
    float* ta = as + t % 3 * 128;
    float* tb = bs + t % 3 * 64;
    mma16n8k8(c, ta[row * 8 + column], ta[(row + 8) * 8 + column], ta[row * 8 + column + 4],
              ta[(row + 8) * 8 + column + 4], tb[column * 8 + row], tb[(column + 4) * 8 + row]);
  }
  float* to = out + (blockIdx.y * 16 + row) * n + blockIdx.x * 8 + column * 2;
  *(float2*)to = float2{c[0], c[1]};
  *(float2*)(to + 8 * n) = float2{c[2], c[3]};
}
"""

# A producer warp loads tiles, three warps accumulate them; stages are handed over by phase barriers.
PIPELINE = """\
__global__ void pipeline(const float* a, float* out, int tiles) {
  extern __shared__ float s[];
  float* stage = s + 16;
  char* full = (char*)s;
  char* empty = (char*)s + 16;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mbar_init(full + i * 8, 1);
      mbar_init(empty + i * 8, 96);
    }
  }
  __syncthreads();
  if (threadIdx.x >= 96) {
    if (threadIdx.x == 96) {
      for (int t = 0; t < tiles; t++) {
        if (t >= 2) mbar_wait(empty + t % 2 * 8, t / 2 + 1);
        mbar_expect(full + t % 2 * 8, 384);
        bulk_copy(stage + t % 2 * 96, a + t * 96, 384, full + t % 2 * 8);
      }
    }
  } else {
    float sum = 0;
    for (int t = 0; t < tiles; t++) {
      while (!mbar_test(full + t % 2 * 8, t / 2)) {
      }
      sum += stage[t % 2 * 96 + 95 - threadIdx.x];
      mbar_arrive(empty + t % 2 * 8);
    }
    out[threadIdx.x] = sum;
  }
}
"""

# A sum by shuffles in the warps, then over the warps.
REDUCE = """\
__global__ void reduce(const float* a, float* out, int* count) {
  __shared__ float part[4];
  float v = a[blockIdx.x * 128 + threadIdx.x];
  for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
    atomicAdd(count, 1);
  }
}
"""


def transpose(rng, n=19):
    a = rng.standard_normal((n, n)).astype("float32")
    blocks = -(-n // 16)
    how = {"grid": (blocks, blocks, 1), "block": (64, 1, 1), "shared_bytes": 16 * 17 * 4}
    return TRANSPOSE, [a, np.full((n, n), np.nan, "float32"), n], how, {"out": a.T}


def gemm(rng, m=32, n=16, k=56):
    a, b = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((k, n)).astype("float32")
    how = {"grid": (n // 8, m // 16, 1), "shared_bytes": 3 * (128 + 64) * 4}
    return GEMM, [a, b, np.full((m, n), np.nan, "float32"), n, k], how, {"out": a.astype("float64") @ b}


def pipeline(rng, tiles=7):
    a = rng.standard_normal((tiles, 96)).astype("float32")
    how = {"block": (128, 1, 1), "shared_bytes": 64 + 2 * 96 * 4}
    return PIPELINE, [a, np.full(96, np.nan, "float32"), tiles], how, {"out": a.astype("float64").sum(0)[::-1]}


def reduce(rng, blocks=3):
    a = rng.standard_normal((blocks, 128)).astype("float32")
    args = [a, np.full(blocks, np.nan, "float32"), np.zeros(1, "int32")]
    how = {"grid": (blocks, 1, 1), "block": (128, 1, 1)}
    return REDUCE, args, how, {"out": a.astype("float64").sum(1), "count": [blocks]}


ALL = [transpose, gemm, pipeline, reduce]
