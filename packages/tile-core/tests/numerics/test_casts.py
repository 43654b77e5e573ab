"""Conversions to narrow floats round once, from any source type, wherever a kernel converts."""

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics import codecs

# Beside a tie of float8_e8m0fnu (3 * 2**k); float32 would round each of them onto the tie.
VALUES = [3 * 2**29 - 1, 3 * 2**28 + 1, 3 * 2**29, 2**30 + 1, 5, 1]


def kernel(source, target):
    n = len(VALUES)

    @T.prim_func
    def convert(A: T.Tensor((n,), source), B: T.Tensor((n,), target), C: T.Tensor((n,), target)):
        with T.Kernel(1):
            T.copy(A, B)
            for i in T.serial(n):
                C[i] = A[i]

    return tile.compile(convert, target="cpu")


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64", "float64"])
def test_wide_numbers_round_once(source):
    a = np.array(VALUES, source)
    b, c = (np.full(len(VALUES), 0xFF, "uint8").view(ml_dtypes.float8_e8m0fnu) for _ in range(2))
    kernel(source, "float8_e8m0fnu")(a, b, c)
    expected = [2.0**30, 2.0**30, 2.0**31, 2.0**30, 4.0, 1.0]
    np.testing.assert_array_equal(b.astype("float64"), expected)
    np.testing.assert_array_equal(c.astype("float64"), expected)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
@pytest.mark.parametrize("source", ["int8", "int16", "float16", "bfloat16", "int64"])
def test_other_sources(source, target):
    a = np.array([3, 17, 19, -21, 127, -100]).astype(source if source != "bfloat16" else ml_dtypes.bfloat16)
    b, c = (np.full(a.size, 0x55, "uint8").view(getattr(ml_dtypes, target)) for _ in range(2))
    kernel(source, target)(a, b, c)
    expected = codecs.encode(a.astype("float64"), target)
    np.testing.assert_array_equal(b.view("uint8"), expected)
    np.testing.assert_array_equal(c.view("uint8"), expected)
