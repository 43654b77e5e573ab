"""Values with names: compositions of elementary functions compile in linear time and mean what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu.spill import spill
from tile_core.ir.visit import collect


def _map(function: Callable[[Any], Any], size: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(size):
                B[i] = function(A[i])

    return main


COMPOSITIONS = {
    "mish": (lambda x: x * T.tanh(T.log1p(T.exp(x))), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "exponentials": (
        lambda x: T.exp(-T.exp(-T.exp(-T.exp(-T.exp(x))))),
        lambda x: np.exp(-np.exp(-np.exp(-np.exp(-np.exp(x))))),
    ),
    "six functions": (
        lambda x: T.sigmoid(T.tanh(T.sin(T.exp2(T.cos(T.log(T.abs(x) + 1.0)))))),
        lambda x: 1 / (1 + np.exp(-np.tanh(np.sin(np.exp2(np.cos(np.log(np.abs(x) + 1))))))),
    ),
    "maxima": (
        lambda x: T.max(T.min(T.max(T.min(T.max(x, 0.5), x * 2.0), x * 3.0), x * 4.0), -1.0),
        lambda x: np.maximum(np.minimum(np.maximum(np.minimum(np.maximum(x, 0.5), x * 2), x * 3), x * 4), -1),
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("size", [1, 67])
def test_compositions_compile_and_are_right(name: str, size: int) -> None:
    ours, exact = COMPOSITIONS[name]
    x = np.linspace(-2, 2, size, dtype="float32")
    y = np.full(size, np.nan, "float32")
    tile.compile(_map(ours, size), target="cpu")(x, y)
    np.testing.assert_allclose(y, exact(x.astype("float64")), rtol=2e-6, atol=1e-6)


def test_numbers_go_to_memory_and_bools_stay() -> None:
    out = tirx.decl_buffer((4,), "float32", "out", layout=None)
    flag, number = tirx.Var("flag", "bool"), tirx.Var("number", "float32")
    value = tirx.Let(
        flag, tirx.LT(out[0], out[1]), tirx.Let(number, out[2], tirx.Select(flag, number, number * number))
    )
    body = spill(tirx.BufferStore(out, value, [3]))
    assert [let.var.name for let in collect(body, tirx.Let)] == ["flag"]
    assert [alloc.buffer.name for alloc in collect(body, tirx.AllocBuffer)] == ["number"]


def test_a_statement_without_names_is_returned_itself() -> None:
    out = tirx.decl_buffer((4,), "float32", "out", layout=None)
    store = tirx.BufferStore(out, out[0] + out[1], [3])
    assert spill(store) is store


@pytest.mark.parametrize("size", [1, 67])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "bfloat16", "float64"])
def test_chains_that_use_a_value_twice_compile_in_linear_time(size: int, dtype: str) -> None:
    """Unfolded, the last value has 2**60 names: a test that does not end where the values of names are unfolded."""

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(size):
                x = A[i]
                for _ in T.static_range(60):
                    x = T.cast(T.max(x - A[i], A[i] - x) + 1, dtype)
                B[i] = x

    numbers = np.random.default_rng(size).integers(0, 10, size)
    kernel = tile.compile(main, target="cpu", out_idx=-1)
    a = numbers.astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
    x = numbers.astype("int64")
    for _ in range(60):
        x = np.abs(x - numbers) + 1
    np.testing.assert_array_equal(kernel(a).astype("int64"), x)
