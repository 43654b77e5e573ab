"""``T.clamp``: one meaning for constants, scalars and elements, whatever the order of its limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import reference
from tile_core.dtypes import DTYPES

NAN = float("nan")
NUMBERS = {
    "float32": (-3.0, -0.0, 0.0, 1.5, NAN, float("inf")),
    "float64": (-3.0, -0.0, 1.5, NAN),
    "float16": (-3.0, 0.0, 1.5, NAN),
    "int8": (-128, -3, 0, 5, 127),
    "int32": (-3, 0, 5),
    "uint32": (0, 5, 2**32 - 1),
    "int64": (-(2**40), 0, 5),
    "bool": (False, True),
}


def meaning(x, low, high):
    """Return the number that is raised to ``low`` and then lowered to ``high``; a limit that is NaN is none."""
    x = low if x < low else x
    return high if x > high else x


def programs(dtype):
    """Return kernels with the limits as elements, as scalars, and as one of both kinds."""
    n = len(NUMBERS[dtype]) ** 3

    @T.prim_func
    def elements(X: T.Tensor[n, dtype], L: T.Tensor[n, dtype], H: T.Tensor[n, dtype], O: T.Tensor[n, dtype]):  # noqa: E741
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                O[i] = T.clamp(X[i], L[i], H[i])

    @T.prim_func
    def each(x: T.dtype(dtype), low: T.dtype(dtype), high: T.dtype(dtype), O: T.Tensor[1, dtype]):  # noqa: E741
        with T.Kernel(1, threads=32):
            O[0] = T.clamp(x, low, high)

    return elements, each


def same(found, expected):
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]))


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_order_of_every_number(dtype):
    elements, scalar = programs(dtype)
    every = list(itertools.product(NUMBERS[dtype], repeat=3))
    expected = np.array([meaning(*numbers) for numbers in every], dtype)
    arrays = [np.array(column, dtype) for column in zip(*every, strict=True)]
    same(tile.compile(elements, "cpu", out_idx=-1)(*arrays), expected)
    out = np.zeros_like(expected)
    reference.execute(elements, [*arrays, out])
    same(out, expected)
    kernel = tile.compile(scalar, "cpu", out_idx=-1)
    same(np.array([kernel(*numbers)[0] for numbers in every]), expected)
    same(np.array([T.clamp(*numbers) for numbers in every], dtype), expected)
    same(np.array(constants(dtype, every), dtype), expected)
    ordered = np.array([n == n and low == low and high == high for n, low, high in every])
    same(np.clip(*arrays)[ordered] + np.zeros((), dtype), expected[ordered] + np.zeros((), dtype))


def constants(dtype, every):
    """Return what a kernel makes of constants of the type, which passes fold."""
    n = len(every)

    @T.prim_func
    def folded(O: T.Tensor[n, dtype]):  # noqa: E741
        with T.Kernel(1, threads=32):
            for i, (x, low, high) in enumerate(every):
                O[i] = T.clamp(T.cast(x, dtype), T.cast(low, dtype), T.cast(high, dtype))

    return tile.compile(folded, "cpu", out_idx=-1)()


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("loop", [T.Parallel, T.serial, T.vectorized])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_constant_limits_in_the_wrong_order(dtype, loop):
    @T.prim_func
    def k(A: T.Tensor[64, dtype], B: T.Tensor[(3, 64), dtype], low: T.int32):
        with T.Kernel(1, threads=32):
            for i in loop(64):
                B[0, i] = T.clamp(A[i], 7, 2)
                B[1, i] = T.clamp(A[i], T.cast(low, dtype), 2)
                B[2, i] = T.clamp(7, A[i], 2)

    a = np.arange(64).astype(DTYPES[dtype].numpy())
    b = tile.compile(k, "cpu", out_idx=1)(a, 7)
    assert (b == 2).all()


def test_indices_are_known_to_be_inside():
    from tile_core.compiler import lower
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed

    @T.prim_func
    def k(A: T.Tensor[64, "float32"], at: T.Tensor[32, "int32"], B: T.Tensor[32, "float32"]):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[T.clamp(at[i], 0, 63)]

    text = lower(k, make_context("cuda:sm_80"), installed()).lowered.text
    assert "A[min(max(at[i], 0), 63)];" in text
