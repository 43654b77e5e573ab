"""Values with names: compositions of elementary functions compile in linear time, correctly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu.spill import spill, spill_bindings
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import constant


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


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("size", [1, 67])
def test_compositions_compile_and_are_right(name: str, size: int) -> None:
    ours, exact = COMPOSITIONS[name]
    x = np.linspace(-2, 2, size, dtype="float32")
    y = np.full(size, np.nan, "float32")
    tile.compile(_map(ours, size), target="cpu")(x, y)
    np.testing.assert_allclose(y, exact(x.astype("float64")), rtol=2e-6, atol=1e-6)


def test_numbers_and_bools_go_to_memory() -> None:
    out = tirx.decl_buffer((4,), "float32", "out", layout=None)
    flag, number = tirx.Var("flag", "bool"), tirx.Var("number", "float32")
    value = tirx.Let(
        flag, tirx.LT(out[0], out[1]), tirx.Let(number, out[2], tirx.Select(flag, number, number * number))
    )
    body = spill(tirx.BufferStore(out, value, [3]))
    assert not collect(body, tirx.Let)
    stored = {alloc.buffer.name: nodes.element_type(alloc.buffer) for alloc in collect(body, tirx.AllocBuffer)}
    assert stored == {"flag": "int8", "number": "float32"}


@pytest.mark.parametrize("lanes", [1, 16])
def test_bindings_of_bools_go_to_memory(lanes: int) -> None:
    """TVM's analyzer fails over a vector's name whose value holds a comparison."""
    kind = "" if lanes == 1 else f"x{lanes}"
    out = tirx.decl_buffer((64,), "int32", "out", layout=None)
    at = tirx.Ramp(0, 1, lanes) if lanes > 1 else nodes.int_const(0)
    load, five = tirx.BufferLoad(out, [at]), constant(5, "int32", tirx.BufferLoad(out, [at]))
    flag, number, plain = (tirx.Var(n, t + kind) for n, t in (("f", "bool"), ("n", "int32"), ("p", "int32")))
    bindings = [
        tirx.Bind(flag, tirx.LT(load, five)),
        tirx.Bind(number, tirx.Add(tirx.Cast("int32" + kind, flag), load)),
        tirx.Bind(plain, tirx.Add(load, five)),
    ]
    body = spill_bindings(tirx.SeqStmt([*bindings, tirx.BufferStore(out, tirx.Mul(number, plain), [at])]))
    assert [b.var.name for b in collect(body, tirx.Bind)] == (["p"] if lanes > 1 else [])
    stored = {alloc.buffer.name: nodes.element_type(alloc.buffer) for alloc in collect(body, tirx.AllocBuffer)}
    assert stored == {"f": "int8", "n": "int32", **({} if lanes > 1 else {"p": "int32"})}


def test_a_statement_without_names_is_returned_itself() -> None:
    out = tirx.decl_buffer((4,), "float32", "out", layout=None)
    store = tirx.BufferStore(out, out[0] + out[1], [3])
    assert spill(store) is store


@pytest.mark.sweep(1)
@pytest.mark.parametrize("size", [1, 67])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "bfloat16", "float64"])
def test_chains_that_use_a_value_twice_compile_in_linear_time(size: int, dtype: str) -> None:
    """Unfolded, the last value has 2**32 names: the test ends only with names kept."""

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(size):
                x = A[i]
                for _ in T.static_range(32):
                    x = T.cast(T.max(x - A[i], A[i] - x) + 1, dtype)
                B[i] = x

    numbers = np.random.default_rng(size).integers(0, 10, size)
    kernel = tile.compile(main, target="cpu", out_idx=-1)
    a = numbers.astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
    x = numbers.astype("int64")
    for _ in range(32):
        x = np.abs(x - numbers) + 1
    np.testing.assert_array_equal(kernel(a).astype("int64"), x)


BOOLS = {
    "compared": (lambda x, y, a: (x == y) != x, lambda x, y, a: (x == y) != x),
    "joined": (
        lambda x, y, a: T.any_of(T.all_of(x, y), T.all_of(~x, a < 7)),
        lambda x, y, a: (x & y) | (~x & (a < 7)),
    ),
    "selected": (lambda x, y, a: T.Select(x, y, x == (a < 9)), lambda x, y, a: np.where(x, y, a >= 9)),
    "chosen": (
        lambda x, y, a: T.if_then_else(x, y, T.if_then_else(x, a < 5, ~x)),
        lambda x, y, a: np.where(x, y, True),
    ),
}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("size", [1, 67])
@pytest.mark.parametrize("name", BOOLS)
def test_chains_of_bools_compile_in_linear_time(name: str, size: int) -> None:
    """As above: unfolded, they take years."""
    step, exact = BOOLS[name]

    @T.prim_func
    def main(A: T.Tensor((size,), "int32"), B: T.Tensor((size,), "bool"), C: T.Tensor((size,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(size):
                x = A[i] > 3
                y = A[i] > 5
                for _ in T.static_range(61):
                    x = step(x, y, A[i])
                C[i] = T.cast(x, "int32") + A[i]
                B[i] = x

    a = np.random.default_rng(size).integers(0, 11, size).astype("int32")
    b, c = tile.compile(main, target="cpu", out_idx=[1, 2])(a)
    x = a > 3
    for _ in range(61):
        x = exact(x, a > 5, a)
    np.testing.assert_array_equal(b, x)
    np.testing.assert_array_equal(c, x + a)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("loop", "size"), [(T.Parallel, 67), (T.unroll, 16)])
@pytest.mark.parametrize(
    ("divisor", "by"), [(lambda u: u + 1, 2), (lambda u: 7, 7), (lambda u: T.cast(u > 1, "int32") + 2, 2)]
)
def test_chains_of_quotients_compile_in_linear_time(loop: Any, size: int, divisor: Any, by: int) -> None:
    """A floor division copies its dividend: 24 without names copy the first 3**24 times."""

    @T.prim_func
    def main(A: T.Tensor((size,), "int64"), u: T.int32, B: T.Tensor((size,), "int64"), C: T.Tensor((size,), "int64")):
        with T.Kernel(1, threads=64):
            for i in loop(size):
                x, y = A[i], A[i]
                for _ in T.static_range(24):
                    x = A[i] + x // divisor(u)
                    y = A[i] - y % divisor(u)
                B[i] = x
                C[i] = y

    a = np.random.default_rng(size).integers(-(2**40), 2**40, size)
    b, c = tile.compile(main, target="cpu", out_idx=[2, 3])(a, 1)
    x = y = a
    for _ in range(24):
        x, y = a + x // by, a - y % by
    np.testing.assert_array_equal(b, x)
    np.testing.assert_array_equal(c, y)
