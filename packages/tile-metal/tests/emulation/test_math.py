# ruff: noqa: E501 - texts of kernels
"""Functions of floats and of integers, against NumPy."""

import numpy as np
import pytest

from .launches import poison, right

pytestmark = pytest.mark.sweep(4)

ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "fabs": np.abs, "floor": np.floor,
    "log": np.log, "log10": np.log10, "log2": np.log2, "rint": np.rint, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "exp10": lambda x: 10.0**x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "fract": lambda x: x - np.floor(x),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
}  # fmt: skip
TWO = {
    "atan2": np.arctan2, "copysign": np.copysign, "fmax": np.fmax, "fmin": np.fmin, "fmod": np.fmod, "pow": np.power,
    "fdim": lambda x, y: np.maximum(x - y, 0), "divide": np.divide, "max": np.fmax, "min": np.fmin,
}  # fmt: skip
OTHERS = {
    "fma(a, b, 0.5f)": lambda a, b: a * b + 0.5, "clamp(a, -1.0f, 2.0f)": lambda a, b: np.clip(a, -1, 2),
    "mix(a, b, 0.25f)": lambda a, b: a + (b - a) * 0.25, "saturate(a)": lambda a, b: np.clip(a, 0, 1),
    "sign(a)": lambda a, b: np.sign(a), "step(a, b)": lambda a, b: (b >= a) * 1.0, "abs(a)": lambda a, b: np.abs(a),
    "select(a, b, a < b)": lambda a, b: np.where(a < b, b, a), "ldexp(a, 3)": lambda a, b: a * 8,
    "float(isnan(log(a))) + 2 * isinf(a / 0.0f) + 4 * isfinite(a) + 8 * signbit(b) + 16 * isnormal(a)":
        lambda a, b: (a < 0) * 1 + 2 + 4 + 8.0 * np.signbit(b) + 16, "nextafter(a, b)": lambda a, b: a,
    "(float)popcount((uint)fabs(a * 1000.0f))": lambda a, b: [bin(int(v)).count("1") for v in abs(a * 1000)],
}  # fmt: skip


def float_kernel():
    lines = [f"precise::{name}(a)" for name in ONE] + [f"fast::{name}(a)" for name in ONE]
    lines += [f"{name}(a, b)" for name in TWO] + list(OTHERS) + [f"float({name}(half(a)))" for name in ONE]
    body = "".join(f"  o[{i}] = {code};\n" for i, code in enumerate(lines))
    text = (
        "kernel void math(device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],\n"
        "                 uint t [[thread_index_in_threadgroup]]) {\n"
        f"  float a = x[t], b = y[t];\n  device float* o = out + t * {len(lines)};\n{body}}}\n"
    )
    return text, lines


def test_floats():
    rng = np.random.default_rng(8)
    x = (rng.normal(size=128) * 3).astype("float32")
    y = (rng.normal(size=128) * 2).astype("float32")
    text, lines = float_kernel()
    out = right(text, [x, y, poison(128, len(lines))], block=(128, 1, 1))["out"]
    a, b, h = x.astype("float64"), y.astype("float64"), x.astype("float16").astype("float64")
    with np.errstate(all="ignore"):
        ones = [f(a) for f in ONE.values()]
        halves = [f(h).astype("float16").astype("float64") for f in ONE.values()]
        expected = ones + ones + [f(a, b) for f in TWO.values()] + [f(a, b) for f in OTHERS.values()] + halves
    for i, (line, values) in enumerate(zip(lines, expected, strict=True)):
        tolerance = 2e-3 if "half" in line else 2e-6
        np.testing.assert_allclose(out[:, i], values, rtol=tolerance, atol=tolerance, err_msg=line)


def test_special_values():
    text = """
    kernel void special(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
      out[0] = max(x[0], 1.0f); out[1] = min(1.0f, x[0]); out[2] = sign(x[0]); out[3] = cospi(0.5f); out[4] = sinpi(1e6f);
      out[5] = exp2(-149.0f); out[6] = powr(-1.0f, 2.0f); out[7] = rsqrt(0.0f); out[8] = x[0] > NAN ? 1.0f : 2.0f;
      out[9] = rint(2.5f) + 10 * rint(-3.5f); out[10] = float(half(65520.0f)); out[11] = fract(-1e-10f);
    }
    """
    out = right(text, [np.full(1, np.nan, "float32"), poison(12)], block=(1, 1, 1))["out"]
    expected = np.array([1, 1, 0, 0, 0, 2**-149, np.nan, np.inf, 2, 2 - 40, np.inf, 1 - 2**-24], "float32")
    assert np.array_equal(out, expected, equal_nan=True)


INTEGERS = """
kernel void integers(device const KIND* x [[buffer(0)]], device const KIND* y [[buffer(1)]], device KIND* out [[buffer(2)]],
                     constant int& n [[buffer(3)]], uint t [[thread_index_in_threadgroup]]) {
  for (int i = t; i < n; i += 64) {
    KIND a = x[i], b = y[i];
    device KIND* o = out + i * 16;
    o[0] = min(a, b); o[1] = max(a, b); o[2] = clamp(a, (KIND)3, (KIND)90); o[3] = abs(a); o[4] = absdiff(a, b);
    o[5] = addsat(a, b); o[6] = subsat(a, b); o[7] = hadd(a, b); o[8] = rhadd(a, b); o[9] = mulhi(a, b);
    o[10] = popcount(a); o[11] = clz(a); o[12] = ctz(a); o[13] = reverse_bits(a); o[14] = rotate(a, (KIND)3);
    o[15] = insert_bits(a, b, 2, 5) ^ extract_bits(a, 3, 4);
  }
}
"""
TYPES = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "uint": "uint32",
    "int": "int32",
    "ulong": "uint64",
    "long": "int64",
}


def by_hand(a, b, dtype):
    """The sixteen results, computed with whole numbers."""
    bits, info = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype)
    mask, wrap = (1 << bits) - 1, lambda v: ((v - info.min) & ((1 << bits) - 1)) + info.min
    ua, ub = a & mask, b & mask
    field = ua >> 3 & 15
    cut = field - 16 if info.min < 0 and field & 8 else field
    inserted = (ua & ~(31 << 2)) | (ub << 2 & (31 << 2))
    values = [
        min(a, b), max(a, b), min(max(a, 3), 90), abs(a), abs(a - b), min(max(a + b, info.min), info.max),
        min(max(a - b, info.min), info.max), (a + b) >> 1, (a + b + 1) >> 1, a * b >> bits, bin(ua).count("1"),
        bits - ua.bit_length(), (ua & -ua).bit_length() - 1 if ua else bits, int(f"{ua:0{bits}b}"[::-1], 2),
        (ua << 3 | ua >> (bits - 3)) & mask, inserted ^ (cut & mask),
    ]  # fmt: skip
    return [wrap(v) for v in values]


@pytest.mark.parametrize("kind", TYPES)
def test_integers(kind):
    dtype = np.dtype(TYPES[kind])
    info, rng = np.iinfo(dtype), np.random.default_rng(9)
    if dtype.itemsize == 1:  # all pairs
        x, y = (v.ravel().astype(dtype) for v in np.meshgrid(*[np.arange(info.min, info.max + 1)] * 2))
    else:
        x, y = (rng.integers(info.min, info.max, 500, dtype, endpoint=True) for _ in range(2))
        x[:6] = y[3:9] = [0, 1, info.min, info.max, info.max - 1, 5]
    args = [x, y, np.zeros((len(x), 16), dtype), len(x)]
    out = right(INTEGERS.replace("KIND", kind), args, block=(64, 1, 1), checks=())["out"]
    step = 7 if dtype.itemsize == 1 else 1
    for i in range(0, len(x), step):
        assert out[i].tolist() == by_hand(int(x[i]), int(y[i]), dtype), (x[i], y[i])
