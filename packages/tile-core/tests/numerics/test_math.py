"""Elementary functions, compiled for this machine in vectorised loops, against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tile_core.numerics import math as tile_math
from tile_core.numerics import standard_math
from tile_core.numerics.minmax import clamp_expr, max_expr, min_expr
from tile_core.passes.legalize_math import MATH

pytestmark = pytest.mark.sweep(3)

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 10.0, 1e-45, -1e-45,
     1.1754942e-38, -1.1754942e-38, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 88.72283, 88.72284,
     -103.97207, -103.97208, -87.33655, 128.0, 127.99999, -149.0, -149.5, -150.0, -126.0, 38.53184, -45.0,
     0.625, 0.9, 9.0, 9.2, 4.0, 16777216.0, 16777217.0, 8388607.5],
    np.float32,
)  # fmt: skip


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0) / (1.0 + np.exp(-np.abs(x)))


REFERENCE: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": sigmoid, "erf": np.vectorize(math.erf),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
LIMIT = {"sigmoid": 3.0}


def arguments(seed: int, count: int = 60_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    near = (rng.uniform(-1, 1, count) * rng.choice([1, 5, 20, 110, 1000], count)).astype(np.float32)
    one = (1 + rng.uniform(-1, 1, count // 4) * 2.0 ** rng.integers(-23, 0, count // 4)).astype(np.float32)
    quarters = (np.arange(-4000, 4000) * (math.pi / 4)).astype(np.float32)
    return np.concatenate([SPECIAL, bits, near, one, quarters, np.nextafter(quarters, np.float32(0))])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distance in ulps of the exact result; NaN, infinities and zeros agree."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    finite = np.isfinite(rounded) & np.isfinite(got)
    at_edge = (np.abs(rounded) == np.finfo(np.float32).max) | (np.abs(got) == np.finfo(np.float32).max)
    differs = ~finite & ~np.isnan(rounded) & ~at_edge
    np.testing.assert_array_equal(got[differs], rounded[differs])
    zero = (exact == 0) & ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))
    below = np.minimum(np.abs(rounded[finite]), np.float32(3e38))  # the spacing at the largest value overflows
    unit = np.spacing(below).astype(np.float64)
    return np.abs(got[finite].astype(np.float64) - exact[finite]) / unit


@pytest.mark.parametrize("seed", [11])
@pytest.mark.parametrize("name", list(REFERENCE))
def test_accuracy(elementwise: Any, name: str, seed: int, record_property: Any) -> None:
    x = arguments(seed)
    with np.errstate(all="ignore"):
        exact = np.asarray(REFERENCE[name](x.astype(np.float64)), np.float64)
    worst = ulps(elementwise(getattr(tile_math, name), ["float32"], "float32")(x), exact).max()
    record_property("ulp", float(worst))
    print(f"{name}: {worst:.3f} ulp")
    assert worst <= LIMIT.get(name, 2.0)


@pytest.mark.parametrize("seed", [11])
@pytest.mark.parametrize("name", standard_math.__all__)
def test_accuracy_of_level_standard(elementwise: Any, name: str, seed: int) -> None:
    x = arguments(seed)
    with np.errstate(all="ignore"):
        exact = np.asarray(REFERENCE[name](x.astype(np.float64)), np.float64)
    worst = ulps(elementwise(getattr(standard_math, name), ["float32"], "float32")(x), exact).max()
    print(f"{name}: {worst:.3f} ulp")
    assert worst <= LIMIT.get(name, 2.0)


@pytest.mark.parametrize("seed", [12])
def test_pow(elementwise: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = elementwise(tile_math.pow, ["float32", "float32"], "float32")
    exponents = np.concatenate([SPECIAL, np.arange(-9, 10, dtype=np.float32) / 2]).astype(np.float32)
    a, b = (g.ravel() for g in np.meshgrid(np.concatenate([SPECIAL, exponents]), exponents))
    bases = np.abs(rng.integers(0, 1 << 32, 40_000, dtype=np.uint32).view(np.float32))
    with np.errstate(all="ignore"):
        scale = (rng.uniform(-150, 130, 40_000) / np.log2(bases)).astype(np.float32)
    signed = rng.uniform(-20, 20, 20_000).astype(np.float32)
    whole = rng.integers(-20, 20, 20_000).astype(np.float32)
    x, y = np.concatenate([a, bases, signed]), np.concatenate([b, scale, whole])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    worst = ulps(kernel(x, y), exact).max()
    print(f"pow: {worst:.3f} ulp")
    assert worst <= 2.0


def test_pow_known_peer_bugs(elementwise: Any) -> None:
    kernel = elementwise(tile_math.pow, ["float32", "float32"], "float32")
    x = np.array([2.0, 2.0, 3.0, -2.0, -2.0, np.nan, 1.0, -1.0, -8.0, 0.0, -0.0, -np.inf], np.float32)
    y = np.array([0.0, -1.0, 5.0, 3.0, -3.0, 0.0, np.nan, np.inf, 0.5, -1.0, -3.0, 3.0], np.float32)
    expected = [1, 0.5, 243, -8, -0.125, 1, 1, 1, np.nan, np.inf, -np.inf, -np.inf]
    np.testing.assert_array_equal(kernel(x, y), np.array(expected, np.float32))


@pytest.mark.parametrize("name", ["exp2", "exp10", "standard exp2"])
def test_integers_are_exact(elementwise: Any, name: str) -> None:
    module = standard_math if name.startswith("standard") else tile_math
    name = name.removeprefix("standard ")
    x = np.arange(-149, 128, dtype=np.float32) if name == "exp2" else np.arange(0, 11, dtype=np.float32)
    got = elementwise(getattr(module, name), ["float32"], "float32")(x)
    np.testing.assert_array_equal(got.astype(np.float64), (2.0 if name == "exp2" else 10.0) ** x.astype(np.float64))


@pytest.mark.parametrize("name", [n for n in MATH if n not in ("tirx.max", "tirx.min", "tirx.fmod")])
def test_tvm_vectorises(name: str) -> None:
    """Some calls (``nearbyint``) make TVM fall back to a scalar loop without a word."""
    from tile_core.compat.tvm import ir, tirx, tvm

    a, c = (tirx.decl_buffer((16,), "float32", n, layout=None, data_alignment=4) for n in "AC")
    j = tirx.Var("j", "int32")
    arguments = [tirx.BufferLoad(a, [j])] * (2 if name in ("tirx.pow", "tirx.atan2", "tirx.hypot") else 1)
    loop = tirx.For(j, 0, 16, tirx.ForKind.VECTORIZED, tirx.BufferStore(c, MATH[name](*arguments), [j]))
    func = tirx.PrimFunc([a, c], loop).with_attr("target", tvm.target.Target("llvm"))
    after = tvm.tirx.transform.VectorizeLoop()(ir.IRModule({"main": func}))
    assert isinstance(after["main"].body, tirx.BufferStore)


def test_two_over_pi() -> None:
    unit = 1 << 600

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, unit // n, 0
        while term:
            total += term // (2 * k + 1) * (-1) ** k
            term, k = term // (n * n), k + 1
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin
    assert ((2 * unit << 196) // pi) == tile_math.TWO_OVER_PI


@pytest.mark.parametrize("bits", [0x7F7FFFFF, 0x60ADAA65, 0x4B8A1FA8, 0x6F79BE45, 0x4016CBE4, 0x5922AA80])
def test_hard_arguments_of_sine(elementwise: Any, bits: int) -> None:
    x = np.array([bits], np.uint32).view(np.float32)
    for name in ("sin", "cos", "tan"):
        got = elementwise(getattr(tile_math, name), ["float32"], "float32")(x)
        assert ulps(got, REFERENCE[name](x.astype(np.float64))).max() <= 2.0


VALUES = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-45, 2.0], np.float32)


@pytest.mark.parametrize("nan_propagate", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_max_min(elementwise: Any, dtype: str, nan_propagate: bool) -> None:
    values = VALUES.astype(dtype) if dtype != "int32" else np.arange(-5, 5, dtype=np.int32)
    a, b = (g.ravel() for g in np.meshgrid(values, values))
    for build, over, skip in ((max_expr, np.maximum, np.fmax), (min_expr, np.minimum, np.fmin)):
        kernel = elementwise(lambda x, y, build=build: build(x, y, nan_propagate), [dtype, dtype], dtype)
        got, swapped = kernel(a, b), kernel(b, a)
        np.testing.assert_array_equal(got, (over if nan_propagate else skip)(a, b))
        np.testing.assert_array_equal(got, swapped)
        if dtype != "int32":
            zero = got == 0
            expect = np.signbit(a) & np.signbit(b) if build is max_expr else np.signbit(a) | np.signbit(b)
            both = zero & (a == 0) & (b == 0)
            np.testing.assert_array_equal(np.signbit(got[both]), expect[both])


def test_clamp_keeps_nan(elementwise: Any) -> None:
    from tile_core.compat.tvm import tirx

    low, high = tirx.FloatImm("float32", -1.0), tirx.FloatImm("float32", 1.5)
    got = elementwise(lambda v: clamp_expr(v, low, high), ["float32"], "float32")(VALUES)
    np.testing.assert_array_equal(got, np.clip(VALUES, np.float32(-1), np.float32(1.5)))
