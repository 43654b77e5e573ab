"""Integers wrap, also in comparisons, which code generators like to decide without computing."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.passes import wrapping

COMPARISONS = {
    "next is greater": (lambda a: a + 1 > a, lambda a: a + np.ones_like(a) > a),
    "previous is less": (lambda a: a - 1 < a, lambda a: a - np.ones_like(a) < a),
    "negation is equal": (lambda a: -a == a, lambda a: np.zeros_like(a) - a == a),
    "twice is no less": (lambda a: a * 2 >= a, lambda a: a * np.full_like(a, 2) >= a),
    "five less": (lambda a: 5 - a > 5, lambda a: np.full_like(a, 5) - a > 5),
    "there and back": (lambda a: a * 2 // 2 == a, lambda a: a * np.full_like(a, 2) // np.full_like(a, 2) == a),
}


def edges(dtype):
    info = np.iinfo(dtype)
    return np.array(
        [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 5, info.max // 2, info.max // 2 + 1, 7], dtype
    )


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "int8", "uint16"])
def test_comparisons_of_overflowing_arithmetic(dtype):
    count = len(COMPARISONS)

    @T.prim_func
    def main(A: T.Tensor((10,), dtype), B: T.Tensor((count, 10), "bool")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(10):
                for n, (code, _) in enumerate(COMPARISONS.values()):
                    B[n, i] = code(A[i])

    a, b = edges(dtype), np.zeros((count, 10), bool)
    tile.compile(main, target="cpu")(a, b)
    with np.errstate(all="ignore"):
        expected = np.stack([reference(a) for _, reference in COMPARISONS.values()])
    np.testing.assert_array_equal(b, expected)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("width", [1, 40])
def test_values(dtype, width):
    @T.prim_func
    def main(
        A: T.Tensor((width,), dtype), B: T.Tensor((width,), dtype), S: T.Tensor((width,), dtype),
        D: T.Tensor((width,), dtype), P: T.Tensor((width,), dtype), H: T.Tensor((width,), dtype),
        N: T.Tensor((width,), dtype),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(width):
                S[i] = A[i] + B[i]
                D[i] = A[i] - B[i]
                P[i] = A[i] * B[i]
                H[i] = (A[i] * 1664525 + 1013904223) * A[i] - B[i] * B[i]
                N[i] = -A[i]

    rng = np.random.default_rng(1)
    bits = 8 * np.dtype(dtype).itemsize
    a, b = (rng.integers(0, 2**bits - 1, width, dtype=np.uint64, endpoint=True).astype(dtype) for _ in "ab")
    a[: min(width, 10)] = edges(dtype)[: min(width, 10)]
    outs = [np.zeros(width, dtype) for _ in range(5)]
    tile.compile(main, target="cpu")(a, b, *outs)
    with np.errstate(all="ignore"):
        hashed = (a * np.array(1664525, dtype) + np.array(1013904223, dtype)) * a - b * b
        for found, expected in zip(outs, (a + b, a - b, a * b, hashed, np.zeros_like(a) - a), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_conditions_and_variables():
    """Return a value bound to a name, a variable, and a branch's condition."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(8, threads=1) as bx:
            x = A[bx]
            n = T.alloc_var("int32", init=x)
            if x + 1 > x:
                n = n + 1
            else:
                n = n - 1
            B[bx] = n

    a = np.array([2**31 - 1, 0, 5, -1, -(2**31), 2**31 - 2, 7, 8], np.int32)
    b = np.zeros(8, np.int32)
    tile.compile(main, target="cpu")(a, b)
    np.testing.assert_array_equal(b, np.where(a == 2**31 - 1, a - 1, np.where(a == 2**31 - 1, a, a + np.int32(1))))


@pytest.mark.parametrize("loop", ["serial", "Parallel", "unroll", "vectorized"])
def test_a_large_factor_in_an_index(loop):
    """Every index fits into 32 bits, but not the product of extent and factor."""

    @T.prim_func
    def main(A: T.Tensor((9,), "int8"), B: T.Tensor((4,), "int8")):
        with T.Kernel(1, threads=32):
            for i in getattr(T, loop)(4):
                B[i] = A[i * 600_000_000 + 1]

    a, b = np.arange(1, 10, dtype=np.int8), np.full(4, -1, np.int8)
    tile.compile(main, target="cpu")(a, b)
    np.testing.assert_array_equal(b, [2, 0, 0, 0])


def test_hidden_operations_print_under_their_own_names():
    """TVM warns of an operator without a printed name each time that it prints it."""
    x = tirx.Var("x", "int32")
    assert str(wrapping.operation(tirx.Add(x, x), x, x)) == "T.tile.wrapping_add(x, x)"
