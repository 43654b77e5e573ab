"""Functions of vectors by texts of LLVM: within their bounds for all arguments, and the same without instructions."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tvm
from tile_core.compiler import lower
from tile_core.cpu.build import build
from tile_core.cpu.isa import detect, without
from tile_core.cpu.vector_functions import encoders, vector_math
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

BF16 = np.dtype(ml_dtypes.bfloat16)


def computed(n: int, source: str, target: str, function: Any) -> Any:
    """Return a program that converts elements through a function of ``float32``."""

    @T.prim_func
    def main(X: T.Tensor((n,), source), Y: T.Tensor((n,), target)):
        with T.Kernel(T.ceildiv(n, 999), threads=64) as bx:
            for i in T.Parallel(999):
                Y[bx * 999 + i] = function(T.cast(X[bx * 999 + i], "float32"))

    return main


def exact_erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x.astype("float64").tolist()])


def units(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error in units in the last place of the exact results."""
    size = np.maximum(np.abs(exact), 2.0**-126)
    return float(np.max(np.abs(found - exact) / 2.0 ** (np.frexp(size)[1] - 24)))


def test_erf_of_every_bfloat16() -> None:
    x = np.arange(2**16, dtype="uint16").view(BF16)
    y = tile.compile(computed(2**16, "bfloat16", "float32", T.erf), "cpu", out_idx=1)(x)
    wide = x.astype("float32")
    missing = np.isnan(wide)
    assert np.array_equal(np.isnan(y), missing)
    assert np.array_equal(np.signbit(y[~missing]), np.signbit(wide[~missing]))
    assert units(y[~missing], exact_erf(wide[~missing])) <= 2


@pytest.mark.parametrize(("low", "high"), [(0, 1e-3), (0, 0.7), (0.6, 0.65), (0.6, 4), (3.8, 4)])
def test_erf_within_its_bound(low: float, high: float) -> None:
    n = 40_007
    x = np.random.default_rng().uniform(low, high, n).astype("float32")
    x[: n // 2] *= -1
    x[7], x[8] = high, np.nextafter(np.float32(3.875), np.float32(4))
    y = tile.compile(computed(n, "float32", "float32", T.erf), "cpu", out_idx=1)(x)
    assert units(y, exact_erf(x)) <= 2
    assert y[8] == 1
    assert (np.abs(y) <= 1).all()


def test_gelu_of_large_arguments_is_the_argument_or_zero() -> None:
    """A value of erf other than 1 there would be multiplied by the argument."""

    def gelu(v: Any) -> Any:
        return 0.5 * v * (1.0 + T.erf(v * 0.7071067811865476))

    x = np.array([6, 100, 1e30, 3e38] * 250, "float32")
    kernel = tile.compile(computed(1000, "float32", "float32", gelu), "cpu", out_idx=1)
    assert np.array_equal(kernel(x), x)
    assert not kernel(-x).any()


@pytest.mark.parametrize("kind", ["all exponents", "subnormal", "zeros and subnormal", "ties", "zeros"])
def test_conversion_to_bfloat16(kind: str) -> None:
    n, rng = 30_011, np.random.default_rng()
    bits = rng.integers(0, 2**32, n, "uint32")
    if kind == "subnormal":
        bits &= 0x807FFFFF
    elif kind == "zeros and subnormal":
        bits = np.where(rng.random(n) < 0.1, bits & 0x807FFFFF, np.where(bits & 1, 0x80000000, 0)).astype("uint32")
    elif kind == "ties":
        bits = bits & 0xFFFF0000 | 0x8000
    elif kind == "zeros":
        bits &= 0x80000000
    x = bits.view("float32")
    y = tile.compile(computed(n, "float32", "bfloat16", lambda v: v), "cpu", out_idx=1)(x)
    with np.errstate(invalid="ignore"):
        want = x.astype(BF16)
    missing = np.isnan(x)
    assert np.array_equal(np.isnan(y.astype("float32")), missing)
    assert np.array_equal(y.view("uint16")[~missing], want.view("uint16")[~missing])


def test_strict_kernels_have_the_bits_of_the_language() -> None:
    """Level ``"strict"`` gives no target a function of its own."""
    x = np.random.default_rng().standard_normal(5000).astype("float32")
    program = computed(5000, "float32", "float32", T.erf)
    strict = {"numerics": "strict"}
    found = [tile.compile(program, target, out_idx=1, options=strict)(x) for target in ("cpu", "cpu:x86-64-v3")]
    assert np.array_equal(*found)


@pytest.mark.skipif(not encoders(detect()), reason="no conversion to bfloat16 here")
def test_a_module_without_the_instruction_computes_the_same() -> None:
    plugins = installed()
    plan = lower(computed(4096, "float32", "bfloat16", lambda v: v), make_context("cpu", plugins=plugins), plugins)
    x, found = np.random.default_rng().standard_normal(4096).astype("float32"), []
    for one, has in ((detect(), True), (without(detect(), ["-avx512bf16"]), False)):
        module = build(plan.lowered, one)
        assert ("vcvtneps2bf16" in module.inspect_source("asm")) == has
        arrays = [tvm.runtime.tensor(a) for a in (x, np.zeros(4096, "uint16"))]
        module["main"](*arrays)
        found.append(arrays[1].numpy())
    assert np.array_equal(*found)
    assert np.array_equal(found[0], x.astype(BF16).view("uint16"))


@pytest.mark.skipif(not vector_math(detect()), reason="no permutation of this width here")
def test_whole_vectors_look_coefficients_up() -> None:
    plugins = installed()
    context = make_context("cpu", plugins=plugins)
    module = build(lower(computed(4096, "float32", "float32", T.erf), context, plugins).lowered, detect())
    assert "vpermps" in module.inspect_source("asm")
