# ruff: noqa: E501 - texts of kernels
"""Built-in values, parameters, vectors and threadgroup memory."""

import numpy as np
import pytest

from .launches import poison, right

pytestmark = pytest.mark.sweep(2)

BUILTINS = """
[[kernel, max_total_threads_per_threadgroup(64)]] void builtins(
    device uint* out [[buffer(0)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 p [[thread_position_in_threadgroup]], uint3 g [[thread_position_in_grid]], uint3 n [[threads_per_threadgroup]],
    uint3 m [[threadgroups_per_grid]], uint3 all [[threads_per_grid]], uint t [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
    uint ns [[simdgroups_per_threadgroup]], uint w [[threads_per_simdgroup]]) {
  const uint b = threadgroup_position_in_grid.x + m.x * (threadgroup_position_in_grid.y + m.y * threadgroup_position_in_grid.z);
  device uint* o = out + (b * 48 + t) * 8;
  o[0] = p.x + 100 * p.y + 10000 * p.z;
  o[1] = g.x + 100 * g.y + 10000 * g.z;
  o[2] = n.x + 100 * n.y + 10000 * n.z;
  o[3] = m.x + 100 * m.y + 10000 * m.z;
  o[4] = all.x + 100 * all.y + 10000 * all.z;
  o[5] = lane + 100 * s;
  o[6] = ns + 100 * w;
  o[7] = b;
}
"""


def test_builtins():
    grid, block = (2, 1, 3), (4, 6, 2)
    out = right(BUILTINS, [poison(6, 48, 8, dtype="uint32")], grid=grid, block=block)["out"]
    b, t = np.meshgrid(np.arange(6), np.arange(48), indexing="ij")
    at = [b % 2, b // 2 % 1, b // 2]
    inside = [t % 4, t // 4 % 6, t // 24]
    code = lambda v: v[0] + 100 * v[1] + 10000 * v[2]  # noqa: E731
    expected = [
        code(inside), code([at[i] * block[i] + inside[i] for i in range(3)]), np.full_like(b, code(block)),
        np.full_like(b, code(grid)), np.full_like(b, code([grid[i] * block[i] for i in range(3)])), t % 32 + 100 * (t // 32),
        np.full_like(b, 2 + 3200), b,
    ]  # fmt: skip
    for i, values in enumerate(expected):
        assert np.array_equal(out[:, :, i], values), i


ONE_STRUCTURE = """
struct both_args { uchar flag; half alpha; int n; long far; bool yes; };
kernel void both(device const float* a [[buffer(0)]], device float* out [[buffer(1)]], constant both_args& args [[buffer(2)]],
                 uint t [[thread_position_in_grid]]) {
  out[t] = a[t] * float(args.alpha) + args.n + args.flag + (args.yes ? (float)(args.far >> 40) : 0.0f);
}
"""
SINGLE = """
kernel void both(device const float* a [[buffer(0)]], device float* out [[buffer(1)]], constant uchar& flag [[buffer(2)]],
                 constant half& alpha [[buffer(3)]], const constant int& n [[buffer(4)]], constant const long& far [[buffer(5)]],
                 constant bool& yes [[buffer(6)]], uint t [[thread_position_in_grid]]) {
  out[t] = a[t] * float(alpha) + n + flag + (yes ? (float)(far >> 40) : 0.0f);
}
"""
SCALARS = {"flag": "uint8", "alpha": "float16", "n": "int32", "far": "int64", "yes": "bool"}


@pytest.mark.parametrize(("text", "scalars"), [(ONE_STRUCTURE, SCALARS), (SINGLE, None)], ids=["structure", "single"])
def test_scalars(text, scalars):
    a = np.arange(32, dtype="float32")
    out = right(text, [a, poison(32), 200, 0.25, -9, 5 << 40, True], scalars=scalars)["out"]
    assert np.array_equal(out, a * 0.25 - 9 + 200 + 5)


# Sizes, alignments, constructors, operators, and the moves of whole vectors; the slab and an array of the text besides.
VECTORS = """
constant constexpr uint TABLE[4] = {1, 10, 100, 1000};
struct pair { float2 v; half3 h; };
static inline uint sum4(thread const uint4& v) { return v.x + v.y + v.z + v.w; }
static inline void scale(threadgroup half* to, device const half* from, half by) { to[0] = from[0] * by; }
kernel void vectors(device const half* A [[buffer(0)]], device uint* out [[buffer(1)]], device float* out_f [[buffer(2)]],
                    uint t [[thread_index_in_threadgroup]]) {
  alignas(16) threadgroup uchar smem[1024];
  threadgroup float own[2][32];
  threadgroup half* const s = (threadgroup half*)(smem + 512);
  *(threadgroup uint4*)&s[t * 8] = *(device const uint4*)&A[t * 8];
  *(threadgroup ushort*)(smem + t * 2) = *(device const ushort*)&A[t];
  own[1][t] = float(t);
  own[0][t] = 0.5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device uint* o = out + t * 10;
  o[0] = sizeof(uchar2) + 10 * sizeof(half4) + 100 * sizeof(float3) + 10000 * sizeof(ulong4) + 1000000 * sizeof(pair);
  o[1] = alignof(uchar2) + 10 * alignof(half4) + 100 * alignof(float3) + 10000 * alignof(long2) + 1000000 * alignof(ulong4);
  uint4 v = uint4(1, 2, 3, 4) * TABLE[t % 4] + 1;
  o[2] = sum4(v);
  v[2] += 7;
  v = (v << 1u) ^ uint4(uint2(1), 0, t);
  o[3] = v.x + v.y + v.z + v.w;
  uint2 moved = *(threadgroup uint2*)&s[(31 - t) * 8 + 4];
  o[4] = moved.x;
  o[5] = moved.y;
  o[6] = all(uint2(1, 2) == uint2(1, 2)) + 2 * any(uint2(t) < uint2(3, 4));
  o[7] = as_type<uint>(half2(1.0h, -2.0h)) + as_type<ushort>(1.0bf);
  o[8] = as_type<uchar4>(0x04030201u)[t % 4];
  o[9] = (uint)(long)-1 + (uint)(char)200;
  float3 f = float3(half3(1.5h, 2.5h, 3.5h)) / 2.0f;
  out_f[t] = f.x + f.y + f.z + own[1][31 - t] + own[0][t] + float2{1, 2}.y + (-float2(3))[1] + 1e-1;
  if (t == 0) scale(s, A + 5, 2.0h);
}
"""


def test_vectors():
    A = np.arange(256).astype("float16") / 8
    args = [A, poison(32, 10, dtype="uint32"), poison(32)]
    found = right(VECTORS, args, shared_bytes=1024)
    t, out = np.arange(32), found["out"]
    v = np.array([1, 2, 3, 4])[None] * np.array([1, 10, 100, 1000])[t % 4, None] + 1
    more = ((v + np.array([0, 0, 7, 0])) << 1) ^ np.stack([t * 0 + 1, t * 0 + 1, t * 0, t], axis=1)
    words = A.view("uint32").reshape(32, 4)[31 - t]
    expected = [
        np.full(32, 2 + 80 + 1600 + 320000 + 16000000), np.full(32, 2 + 80 + 1600 + 160000 + 32000000), v.sum(axis=1),
        more.sum(axis=1), words[:, 2], words[:, 3], 1 + 2 * (t < 4), np.full(32, 0xC0003C00 + 0x3F80), t % 4 + 1,
        np.full(32, (0xFFFFFFFF + 0xFFFFFFC8) & 0xFFFFFFFF),
    ]  # fmt: skip
    for i, values in enumerate(expected):
        assert np.array_equal(out[:, i], values), i
    np.testing.assert_allclose(found["out_f"], 3.75 + (31 - t) + 0.5 + 2 - 3 + 0.1, rtol=1e-6)
