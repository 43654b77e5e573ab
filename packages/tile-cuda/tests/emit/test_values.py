"""Printed expressions: arithmetic, conversions and functions, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes

from .kit import computed

pytestmark = pytest.mark.sweep(3)

COUNT = 251
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def integers(dtype: str, seed: int) -> np.ndarray:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, COUNT, dtype, endpoint=True)
    values[::2] >>= rng.integers(0, info.bits, len(values[::2])).astype(dtype)
    values[:6] = [info.min, info.max, 0, 1, info.max, info.min]
    return values


def floats(dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(COUNT) * 10.0 ** rng.integers(-6, 5, COUNT)
    values[:11] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-45, 65520.0, 3.4e38]
    with np.errstate(all="ignore"):
        return values.astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_divisions_have_a_result(dtype: str) -> None:
    a, b = integers(dtype, 1), integers(dtype, 2)
    count = np.abs(b.astype(object)) % np.iinfo(dtype).bits
    n = count.astype(dtype)
    outputs: dict[str, Any] = {
        "add": (dtype, lambda x, y, s: tirx.Add(x, y)),
        "sub": (dtype, lambda x, y, s: tirx.Sub(x, y)),
        "mul": (dtype, lambda x, y, s: tirx.Mul(x, y)),
        "chain": (dtype, lambda x, y, s: tirx.Sub(tirx.Mul(tirx.Add(x, y), y), x)),
        "halves": (dtype, lambda x, y, s: tirx.shift_right(tirx.Add(x, y), nodes.const(1, dtype))),
        "above": ("int32", lambda x, y, s: tirx.Cast("int32", tirx.GT(tirx.Add(x, nodes.const(1, dtype)), x))),
        "floor": (dtype, lambda x, y, s: tirx.FloorDiv(x, y)),
        "rest": (dtype, lambda x, y, s: tirx.FloorMod(x, y)),
        "trunc": (dtype, lambda x, y, s: tirx.Div(x, y)),
        "least": (dtype, lambda x, y, s: tirx.Min(x, y)),
        "most": (dtype, lambda x, y, s: tirx.Max(x, y)),
        "left": (dtype, lambda x, y, s: tirx.shift_left(x, s)),
        "right": (dtype, lambda x, y, s: tirx.shift_right(x, s)),
        "bits": (
            dtype,
            lambda x, y, s: tirx.bitwise_xor(tirx.bitwise_and(x, tirx.bitwise_not(y)), tirx.bitwise_or(x, y)),
        ),
        "set": ("int32", lambda x, y, s: tirx.Cast("int32", tirx.popcount(x))),
        "choice": (dtype, lambda x, y, s: tirx.Select(tirx.LT(x, y), tirx.Sub(y, x), tirx.Sub(x, y))),
    }
    if dtype in ("int8", "uint8", "int16", "uint16"):
        del outputs["set"]
    found = computed(outputs, [a, b, n], [dtype] * 3)
    with np.errstate(all="ignore"):
        zero = np.zeros_like(a)
        floor = np.where(b == 0, zero, np.floor_divide(a, b))
        trunc = [
            int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1) if y else 0
            for x, y in zip(a, b, strict=True)
        ]
        bits = np.iinfo(dtype).bits
        want: dict[str, Any] = {
            "add": a + b, "sub": a - b, "mul": a * b, "chain": (a + b) * b - a, "halves": (a + b) >> np.array(1, dtype),
            "above": (a + np.array(1, dtype)) > a, "floor": floor, "rest": np.where(b == 0, zero, np.mod(a, b)),
            "trunc": np.array([t % 2**bits for t in trunc], f"uint{bits}").view(dtype),
            "least": np.minimum(a, b), "most": np.maximum(a, b), "left": a << n, "right": a >> n,
            "bits": (a & ~b) ^ (a | b), "choice": np.where(a < b, b - a, a - b),
            "set": np.array([bin(int(v) % 2**bits).count("1") for v in a]),
        }  # fmt: skip
    for name, value in found.items():
        np.testing.assert_array_equal(value, want[name], err_msg=name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_arithmetic_is_rounded_after_every_operation(dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    with np.errstate(all="ignore"):
        a, b = (floats("float64", s).astype(kind) for s in (3, 4))
    b = np.roll(b, 5)
    nodes_of = {"add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "div": tirx.Div}
    outputs: dict[str, Any] = {name: (dtype, node) for name, node in nodes_of.items()}
    outputs["cancel"] = (dtype, lambda x, y: tirx.Sub(tirx.Add(x, y), y))
    tests = {"eq": tirx.EQ, "ne": tirx.NE, "lt": tirx.LT, "le": tirx.LE, "gt": tirx.GT, "ge": tirx.GE}
    for name, node in tests.items():
        outputs[name] = ("int32", lambda x, y, node=node: tirx.Cast("int32", node(x, y)))
    outputs["nan"] = ("bool", lambda x, y: tirx.isnan(tirx.Cast("float64", x)))
    outputs["true"] = ("bool", lambda x, y: tirx.Cast("bool", y))
    outputs["constant"] = (
        dtype,
        lambda x, y: tirx.Select(tirx.LT(x, y), nodes.const(0.1, dtype), nodes.const(-3.0, dtype)),
    )
    found = computed(outputs, [a, b], [dtype] * 2)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        want = {
            "add": a + b, "sub": a - b, "mul": a * b, "div": a / b, "cancel": (a + b) - b, "eq": x == y, "ne": x != y,
            "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "nan": x != x, "true": y != 0,
            "constant": np.where(x < y, np.array(0.1, kind), np.array(-3.0, kind)),
        }  # fmt: skip
    for name, value in found.items():
        np.testing.assert_array_equal(value.astype(np.float64), np.asarray(want[name]).astype(np.float64), err_msg=name)


def _in_range(data: Any, target: str) -> Any:
    """Return which values a plain conversion to a type is defined for."""
    if target not in INTEGERS or data.dtype.kind in "iub":
        return np.ones(data.shape, bool)
    info = np.iinfo(target)
    with np.errstate(all="ignore"):
        whole = np.trunc(data.astype(np.float64))
    return (whole >= float(info.min)) & (whole <= float(info.max) * (1 - 2**-50))


@pytest.mark.parametrize("source", [*INTEGERS, "float16", "bfloat16", "float32", "float64", "bool"])
def test_conversions_between_all_types(source: str) -> None:
    targets = [*INTEGERS, "float16", "bfloat16", "float32", "float64"]
    if source == "bool":
        data = np.random.default_rng(5).random(COUNT) < 0.5
    elif source in INTEGERS:
        data = integers(source, 6)
    else:
        kind = ml_dtypes.bfloat16 if source == "bfloat16" else np.dtype(source)
        with np.errstate(all="ignore"):
            data = floats("float64", 7).astype(kind)
    targets = [t for t in targets if t != source]
    outputs: dict[str, Any] = {
        f"to_{t}": (t, lambda *given, t=t, n=n: tirx.Cast(t, given[n])) for n, t in enumerate(targets)
    }
    # Out of range a plain conversion has no result, and is a fault.
    inputs = [np.where(_in_range(data, t), data, data.dtype.type(0)) for t in targets]
    found = computed(outputs, inputs, [source] * len(targets))
    for target in targets:
        value = found[f"to_{target}"]
        kind = ml_dtypes.bfloat16 if target == "bfloat16" else np.dtype(target)
        keep = _in_range(data, target)
        with np.errstate(all="ignore"):
            if target == "bfloat16" and data.dtype.kind in "iu":
                want = np.array([_bfloat16(int(v)) for v in data], ml_dtypes.bfloat16)
            elif target == "bfloat16" and source == "float64":
                want = np.array([_bfloat16(float(v)) for v in data], ml_dtypes.bfloat16)
            else:
                want = data.astype(np.float32).astype(kind) if source == "bfloat16" else data.astype(kind)
        np.testing.assert_array_equal(value[keep].astype(np.float64), want[keep].astype(np.float64), err_msg=target)


def _bfloat16(value: Any) -> float:
    """One rounding, which NumPy's conversion through float32 is not."""
    from fractions import Fraction

    if isinstance(value, float) and (value != value or abs(value) == np.inf or value == 0):
        return value
    exact = Fraction(value)
    if not exact:
        return 0.0
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(exact)
    unit = Fraction(2) ** (max(exponent, -126) - 7)
    rounded = round(exact / unit) * unit
    if abs(rounded) >= 2**128:
        return float("inf") if rounded > 0 else -float("inf")
    return float(rounded)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "exp": (tirx.exp, np.exp), "exp2": (tirx.exp2, np.exp2), "exp10": (tirx.exp10, lambda x: 10.0**x),
    "log": (tirx.log, np.log), "log2": (tirx.log2, np.log2), "log10": (tirx.log10, np.log10),
    "log1p": (tirx.log1p, np.log1p), "sqrt": (tirx.sqrt, np.sqrt), "rsqrt": (tirx.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (tirx.sin, np.sin), "cos": (tirx.cos, np.cos), "tan": (tirx.tan, np.tan), "tanh": (tirx.tanh, np.tanh),
    "sigmoid": (tirx.sigmoid, lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))),
    "floor": (tirx.floor, np.floor), "ceil": (tirx.ceil, np.ceil), "trunc": (tirx.trunc, np.trunc),
    "round": (tirx.round, np.rint), "nearbyint": (tirx.nearbyint, np.rint), "fabs": (tirx.abs, np.abs),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(dtype: str) -> None:
    x, y = floats(dtype, 8), np.roll(floats(dtype, 9), 3)
    x[20:80] = np.random.default_rng(10).uniform(-5, 5, 60)
    outputs: dict[str, Any] = {name: (dtype, lambda a, b, f=f: f(a)) for name, (f, _) in FUNCTIONS.items()}
    outputs["pow"] = (dtype, lambda a, b: tirx.pow(tirx.abs(a), b))
    outputs["most"] = (dtype, tirx.Max)
    outputs["least"] = (dtype, tirx.Min)
    outputs["infinite"] = ("bool", lambda a, b: tirx.isinf(a))
    outputs["finite"] = ("bool", lambda a, b: tirx.isfinite(a))
    found = computed(outputs, [x, y], [dtype] * 2)
    wide, other = x.astype(np.longdouble), y.astype(np.longdouble)
    with np.errstate(all="ignore"):
        want = {name: f(wide).astype(dtype) for name, (_, f) in FUNCTIONS.items()}
        want["pow"] = np.power(np.abs(wide), other).astype(dtype)
        want["most"], want["least"] = np.fmax(x, y), np.fmin(x, y)
        want["infinite"], want["finite"] = np.isinf(x), np.isfinite(x)
    for name, value in found.items():
        if value.dtype == bool:
            np.testing.assert_array_equal(value, want[name], err_msg=name)
        else:
            np.testing.assert_allclose(
                value, want[name], rtol=6 * np.finfo(dtype).eps, atol=0 if dtype == "float64" else 2e-45, err_msg=name
            )


def test_bits_of_values() -> None:
    x = floats("float32", 11)
    d, h = x.astype(np.float64) * 1.5, np.arange(COUNT).astype(np.uint16) * 263
    bits = {
        "u32": ("uint32", lambda a, b, c: tirx.reinterpret("uint32", a)),
        "s32": ("int32", lambda a, b, c: tirx.reinterpret("int32", a)),
        "f32": ("float32", lambda a, b, c: tirx.reinterpret("float32", tirx.reinterpret("uint32", a))),
        "u64": ("uint64", lambda a, b, c: tirx.reinterpret("uint64", b)),
        "f64": ("float64", lambda a, b, c: tirx.reinterpret("float64", tirx.reinterpret("uint64", b))),
        "f16": ("float16", lambda a, b, c: tirx.reinterpret("float16", c)),
        "s16": ("int16", lambda a, b, c: tirx.reinterpret("int16", tirx.reinterpret("bfloat16", c))),
    }
    found = computed(bits, [x, d, h], ["float32", "float64", "uint16"])
    want = {
        "u32": x.view(np.uint32), "s32": x.view(np.int32), "f32": x, "u64": d.view(np.uint64), "f64": d,
        "f16": h.view(np.float16), "s16": h.view(np.int16),
    }  # fmt: skip
    for name, value in found.items():
        np.testing.assert_array_equal(value, want[name], err_msg=name)
