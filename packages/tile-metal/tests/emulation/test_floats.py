# ruff: noqa: E501 - texts of kernels
"""The 16-bit floats: conversions of all codes, of floats near ties, and arithmetic."""

import ml_dtypes
import numpy as np
import pytest

from .launches import poison, right

CODES = np.arange(65536, dtype="uint16")
TYPES = {"half": np.dtype("float16"), "bfloat": np.dtype(ml_dtypes.bfloat16)}

# Each thread takes 64 codes. The second half of the arrays takes other codes of the same numbers.
CONVERT = """
kernel void convert(device const KIND* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],
                    device KIND* out_k [[buffer(3)]], device ushort* out_bits [[buffer(4)]], constant int& n [[buffer(5)]],
                    uint id [[thread_position_in_grid]], uint threads [[threads_per_grid]]) {
  for (int i = id; i < n; i += threads) {
    out[i] = x[i];
    out_k[i] = (KIND)y[i];
    out_bits[i] = as_type<ushort>(KIND(float(x[i])));
  }
}
"""


def hard_floats(dtype):
    """Floats at and next to ties between codes, random bits, and what has no number."""
    with np.errstate(invalid="ignore"):
        values = CODES.view(dtype).astype("float64")
    finite = np.unique(np.abs(values[np.isfinite(values)]))
    ties = ((finite[1:] + finite[:-1]) / 2).astype("float32")
    near = np.concatenate([np.nextafter(ties, np.float32(0)), ties, np.nextafter(ties, np.float32(np.inf))])
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 20000, dtype="uint32").view("float32")
    extremes = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 65519.99, 65520, 3.39e38, 2**-25, 2**-24], "float32")
    return np.concatenate([near, -near, bits, extremes, -extremes])


@pytest.mark.parametrize("kind", TYPES)
def test_conversions(kind):
    dtype = TYPES[kind]
    y = hard_floats(dtype)
    n = len(y)
    assert n > 65536
    x = np.resize(CODES, n).view(dtype)
    args = [x, y, poison(n), np.zeros(n, dtype), poison(n, dtype="uint16"), n]
    found = right(CONVERT.replace("KIND", kind), args, grid=(4, 1, 1), block=(64, 1, 1), checks=())
    with np.errstate(invalid="ignore", over="ignore"):
        wide, narrow = x.astype("float32"), y.astype(dtype)
    assert np.array_equal(found["out"].view("uint32"), wide.view("uint32"))
    numbers = ~np.isnan(y)
    assert np.array_equal(found["out_k"].view("uint16")[numbers], narrow.view("uint16")[numbers])
    assert np.isnan(found["out_k"][~numbers].astype("float32")).all()
    is_number = ~np.isnan(wide)
    assert np.array_equal(found["out_bits"][is_number], x.view("uint16")[is_number])
    assert np.isnan(found["out_bits"][~is_number].view(dtype).astype("float32")).all()


ARITHMETIC = """
kernel void arithmetic(device const KIND* x [[buffer(0)]], device const KIND* y [[buffer(1)]], device KIND* out [[buffer(2)]],
                       device float* out_f [[buffer(3)]], device uchar* out_c [[buffer(4)]],
                       uint t [[thread_index_in_threadgroup]]) {
  for (int i = t; i < 65536; i += 64) {
    KIND a = x[i], b = y[i], s = a;
    s += b;
    out[i * 5] = a + b;
    out[i * 5 + 1] = a - b;
    out[i * 5 + 2] = a * b;
    out[i * 5 + 3] = a / b;
    out[i * 5 + 4] = -s * 2;
    out_f[i] = a * 0.1 + b * 3.0f;
    out_c[i] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5;
  }
}
"""


@pytest.mark.parametrize("kind", TYPES)
def test_arithmetic(kind):
    dtype = TYPES[kind]
    rng = np.random.default_rng(6)
    x, y = CODES.view(dtype), rng.permutation(CODES).view(dtype)
    args = [x, y, np.zeros((65536, 5), dtype), poison(65536), poison(65536, dtype="uint8")]
    found = right(ARITHMETIC.replace("KIND", kind), args, block=(64, 1, 1), checks=())
    a, b = x.astype("float32"), y.astype("float32")
    with np.errstate(all="ignore"):
        added = (a + b).astype(dtype)
        double = (-added.astype("float32") * 2).astype(dtype)
        expected = [added, *(v.astype(dtype) for v in (a - b, a * b, a / b)), double]
        wide = a * np.float32(0.1) + b * np.float32(3)
        tests = [a < b, a <= b, a == b, a != b, a > b, a >= b]
    for i, values in enumerate(expected):
        numbers = ~np.isnan(values.astype("float32"))
        assert np.array_equal(found["out"][:, i].view("uint16")[numbers], values.view("uint16")[numbers]), i
        assert np.isnan(found["out"][:, i].astype("float32")[~numbers]).all(), i
    assert np.array_equal(found["out_f"], wide, equal_nan=True)
    assert np.array_equal(found["out_c"], sum(t.astype("uint8") << i for i, t in enumerate(tests)))
