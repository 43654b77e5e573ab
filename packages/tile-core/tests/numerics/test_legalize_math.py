"""The elementary-function pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.passes.legalize_floats import legalize_floats
from tile_core.passes.legalize_math import MATH, WIDE, legalize_math


def function(build: Any, dtype: str, count: int = 1) -> Any:
    n = 256
    params = [tirx.decl_buffer((n,), dtype, f"A{k}", layout=None, data_alignment=1) for k in range(count)]
    out = tirx.decl_buffer((n,), dtype, "C", layout=None, data_alignment=1)
    i = tirx.Var("i", "int32")
    store = tirx.BufferStore(out, build(*[tirx.BufferLoad(p, [i]) for p in params]), [i])
    return tirx.PrimFunc([*params, out], tirx.For(i, 0, n, tirx.ForKind.VECTORIZED, store))


UNARY = [
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "log1p",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "tan",
    "rsqrt",
]


@pytest.mark.parametrize("name", UNARY)
def test_every_function_is_replaced(name: str) -> None:
    func = legalize_math(function(lambda x: getattr(tirx, name)(x), "float32"))
    assert f"T.{name}(" not in str(func)
    wide = function(lambda x: getattr(tirx, name)(x), "float64")
    assert (legalize_math(wide) is wide) == (f"tirx.{name}" not in WIDE)


@pytest.mark.sweep(0.25)
def test_nested_calls_and_float16(compile_func: Any) -> None:
    x = np.random.default_rng(31).uniform(-3, 3, 256).astype(np.float16)
    out = np.zeros(256, np.float16)
    compile_func(legalize_math(function(lambda v: tirx.exp(tirx.sin(v)), "float16")))(x, out)
    inner = np.sin(x.astype(np.float64)).astype(np.float16)
    np.testing.assert_allclose(out, np.exp(inner.astype(np.float64)).astype(np.float16), rtol=1e-3)


@pytest.mark.sweep(0.25)
def test_pow(compile_func: Any) -> None:
    x = np.random.default_rng(32).uniform(0, 3, 256).astype(np.float32)
    y = np.random.default_rng(33).integers(-3, 4, 256).astype(np.float32)
    out = np.zeros(256, np.float32)
    compile_func(legalize_math(function(tirx.pow, "float32", 2)))(x, y, out)
    np.testing.assert_allclose(out, np.power(x.astype(np.float64), y), rtol=3e-7)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_max_ignores_nan_in_either_order(compile_func: Any, dtype: str) -> None:
    storage = "uint16" if dtype == "bfloat16" else dtype
    nan, one = np.array([0x7FC0, 0x3F80], np.uint16) if dtype == "bfloat16" else np.array([np.nan, 1], dtype)
    a, b = np.full(256, one, storage), np.full(256, nan, storage)
    native = frozenset({"float16", "float32", "float64"})
    for node in (tirx.Max, tirx.Min):
        kernel = compile_func(legalize_math(legalize_floats(function(node, dtype, 2), native)))
        for first, second in ((a, b), (b, a)):
            out = np.zeros(256, storage)
            kernel(first, second, out)
            np.testing.assert_array_equal(out, a)


def test_a_target_may_keep_its_own() -> None:
    func = function(tirx.exp, "float32")
    assert legalize_math(func, {k: v for k, v in MATH.items() if k != "tirx.exp"}) is func
