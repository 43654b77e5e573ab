# ruff: noqa: E501 - texts of kernels
"""Functions of a simdgroup: shuffles, reductions, votes."""

import numpy as np
import pytest

from .launches import kinds, poison, report_text, right, run

FUNCTIONS = """
kernel void functions(device const float* x [[buffer(0)]], device const int* y [[buffer(1)]], device float* out [[buffer(2)]],
                      device int* out_i [[buffer(3)]], uint t [[thread_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
  const float v = x[t];
  const int k = y[t];
  device float* o = out + t * 14;
  device int* i = out_i + t * 12;
  o[0] = simd_shuffle(v, (ushort)((lane * 5 + 3) % 32));
  o[1] = simd_shuffle_xor(v, (ushort)9);
  o[2] = simd_shuffle_up(v, (ushort)3);
  o[3] = simd_shuffle_down(v, (ushort)5);
  o[4] = simd_broadcast(v, (ushort)17);
  o[5] = simd_sum(v);
  o[6] = simd_max(v);
  o[7] = simd_min(v);
  o[8] = simd_prefix_inclusive_sum(v);
  o[9] = simd_prefix_exclusive_sum(v);
  o[10] = float(simd_sum(half(k & 7)));
  o[11] = simd_shuffle_rotate_up(v, (ushort)4) - simd_shuffle_rotate_down(v, (ushort)4);
  o[12] = simd_broadcast_first(v);
  o[13] = simd_shuffle(float2(v, 1.0f), (ushort)2).x;
  i[0] = simd_sum(k);
  i[1] = simd_and(k);
  i[2] = simd_or(k);
  i[3] = simd_xor(k);
  i[4] = simd_product(k % 3 + 2);
  i[5] = simd_all(k > -1000) + 2 * simd_all(k > 0) + 4 * simd_any(k > 90) + 8 * simd_any(k > 1000);
  i[6] = (int)(ulong)(simd_vote::vote_t)simd_ballot(k > 0);
  i[7] = simd_shuffle((ushort)k, (ushort)31);
  i[8] = (int)simd_max((uint)k);
  i[9] = simd_shuffle_up(simd_shuffle_up(k, (ushort)1), (ushort)31);
  i[10] = (char)simd_min((char)k);
  i[11] = simd_shuffle_down(k, (ushort)32);
}
"""


def test_functions():
    rng = np.random.default_rng(10)
    x = rng.integers(-50, 50, 64).astype("float32") / 4
    y = rng.integers(-99, 99, 64).astype("int32")
    y[40] = 95
    found = right(FUNCTIONS, [x, y, poison(64, 14), poison(64, 12, dtype="int32")], block=(64, 1, 1), order="random")
    lane = np.arange(32)
    for s in range(2):
        v, k = x[s * 32 :][:32], y[s * 32 :][:32].astype("int64")
        o, i = found["out"][s * 32 :][:32], found["out_i"][s * 32 :][:32]
        expected = [
            v[(lane * 5 + 3) % 32], v[lane ^ 9], np.where(lane < 3, v, np.roll(v, 3)), np.where(lane >= 27, v, np.roll(v, -5)),
            v[17], v.sum(), v.max(), v.min(), v.cumsum(), v.cumsum() - v, (k & 7).sum(), np.roll(v, 4) - np.roll(v, -4), v[0], v[2],
        ]  # fmt: skip
        for j, values in enumerate(expected):
            assert np.array_equal(o[:, j], np.broadcast_to(values, 32).astype("float32")), j
        remainder = np.fmod(k, 3) + 2
        product = 1
        for r in remainder:
            product = product * int(r) & 0xFFFFFFFF
        ballot = sum(1 << int(j) for j in lane[k > 0])
        up = np.where(lane < 1, k, np.roll(k, 1))
        integers = [
            k.sum(), np.bitwise_and.reduce(k), np.bitwise_or.reduce(k), np.bitwise_xor.reduce(k), product,
            1 + 2 * (k > 0).all() + 4 * (k > 90).any(), ballot, k[31] & 0xFFFF, (k & 0xFFFFFFFF).max(), np.where(lane < 31, up, up[0]), k.min(), k,
        ]  # fmt: skip
        for j, values in enumerate(integers):
            values = np.broadcast_to(values, 32).astype("int64") & 0xFFFFFFFF
            assert np.array_equal(i[:, j].astype("int64") & 0xFFFFFFFF, values), j


# Name: code, kind, words. `t` is the thread of 40, `v` a float.
CASES = {
    "a lane behind the last one": ("v = simd_shuffle(v, (ushort)32);", "collective", "lane 32"),
    "a lane that does not exist": ("if (t >= 32) v = simd_shuffle(v, (ushort)8);", "collective", "lane 8, which takes no part"),
    "a shift from a lane that does not exist": ("v = simd_shuffle_down(v, (ushort)1);", "collective", "lane 8"),
    "shifts by different numbers": ("v = simd_shuffle_up(v, (ushort)(t & 1));", "collective", "different numbers"),
    "a broadcast of different lanes": ("v = simd_broadcast(v, (ushort)(t & 1));", "collective", "different numbers"),
    "half of a simdgroup": ("if (t < 16) v = simd_sum(v);", "deadlock", "simd_sum"),
    "the same at two lines": ("if (t < 16) v = simd_max(v);\nelse v = simd_max(v);", "divergence", "different places"),
    "a ballot in a branch": ("if (t == 3) v = simd_any(v > 0.0f);", "deadlock", "simd_any"),
    "a matrix of 8 lanes": ("simdgroup_float8x8 m; if (t >= 32) simdgroup_store(m, out);", "collective", "8 of 32 lanes"),
    "a matrix at different addresses": ("simdgroup_float8x8 m; if (t < 32) simdgroup_load(m, x + t);", "collective", "are different"),
    "a matrix at an odd address": ("simdgroup_half8x8 m; if (t < 32) simdgroup_load(m, (device const half*)((device const uchar*)x + 1));", "misaligned", ""),
    "a matrix out of bounds": ("simdgroup_float8x8 m; if (t < 32) simdgroup_load(m, x + 8);", "bounds", ""),
    "a matrix that is too wide": ("simdgroup_float8x8 m; if (t < 32) simdgroup_load(m, x, 9);", "bounds", ""),
    "a transposed matrix with an origin": ("simdgroup_float8x8 m; if (t < 32) simdgroup_load(m, x, 8, ulong2(1, 0), true);", "matrix", "no model"),
    "a product in a branch": ("simdgroup_float8x8 m(1.0f); if (t < 31) simdgroup_multiply(m, m, m);", "deadlock", "simdgroup_multiply"),
    "a store over what others read": ("simdgroup_float8x8 m(1.0f); v = out[t]; if (t < 32) simdgroup_store(m, out);", "race", ""),
}  # fmt: skip
NAMES = list(CASES)
CASES_TEXT = (
    "kernel void cases(constant int& which [[buffer(0)]], device const float* x [[buffer(1)]], device float* out [[buffer(2)]],\n"
    "                  uint t [[thread_index_in_threadgroup]]) {\n  float v = x[t];\n  switch (which) {\n"
    + "".join(f"    case {i}: {{ {CASES[name][0]} break; }}\n" for i, name in enumerate(NAMES))
    + "  }\n  if (t > 1000) out[t] = v;\n}\n"
)


@pytest.mark.sweep(1)
def test_faults_are_reported():
    x = np.zeros(64, "float32")
    for number, name in enumerate(NAMES):
        _, kind, words = CASES[name]
        result = run(CASES_TEXT, [number, x, np.zeros(64, "float32")], block=(40, 1, 1))
        assert kind in kinds(result), (name, report_text(result))
        assert words in report_text(result), (name, report_text(result))
    assert run(CASES_TEXT, [-1, x, np.zeros(64, "float32")], block=(40, 1, 1)).ok
