"""Indices follow Python on the CPU: quotients and remainders of falling, negative and symbolic integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics import codecs

pytestmark = pytest.mark.sweep(3)

N = 128
INDICES: dict[str, Callable[..., Any]] = {
    "falling remainder": lambda i, c, m: (127 - i) % 4,
    "falling quotient": lambda i, c, m: (127 - i) // 2,
    "by three": lambda i, c, m: (127 - i) // 3 + (127 - i) % 3,
    "of a scalar": lambda i, c, m: (c - i) // 5 + 40,
    "remainder of a scalar": lambda i, c, m: (c - i) % 7,
    "negative divisor": lambda i, c, m: i // -3 + 60,
    "symbolic remainder": lambda i, c, m: i // 6 % m,
    "symbolic quotient": lambda i, c, m: (i * 7 + 3) // m % m,
    "falling symbolic": lambda i, c, m: (60 - i) % m,
    "both": lambda i, c, m: (127 - i) // 2 % m + (c - i) % 3,
}


@pytest.mark.parametrize("loop", ["parallel", "serial", "vectorized"])
@pytest.mark.parametrize("name", INDICES)
def test_reads_and_writes_at_computed_indices(name: str, loop: str) -> None:
    index = INDICES[name]
    m = T.dynamic("m")
    loops = {"parallel": T.Parallel, "serial": T.serial, "vectorized": T.vectorized}

    @T.prim_func
    def main(A: T.Tensor((m,), "int32"), R: T.Tensor((N,), "int32"), W: T.Tensor((m,), "int32"), c: T.int32):
        with T.Kernel(1, threads=32):
            for i in loops[loop](N):
                R[i] = A[index(i, c, m)]
            for i in T.serial(N):
                W[index(i, c, m)] = i

    kernel = tile.compile(main, target="cpu")
    for size, scalar in ((131, 17), (64, -3), (7, 300), (1, 0)):
        a = np.arange(size, dtype="int32") * 3 + 1
        read, written = np.full(N, -1, "int32"), np.full(size, -1, "int32")
        kernel(a, read, written, scalar)
        positions = [index(i, scalar, size) for i in range(N)]
        expected = np.full(size, -1, "int32")
        for i, at in enumerate(positions):
            if 0 <= at < size:
                expected[at] = i
        np.testing.assert_array_equal(read, [a[at] if 0 <= at < size else 0 for at in positions])
        np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("size", [2, 30, 96])
def test_rows_of_four_bits_turned_round(size: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((size,), "uint4"), B: T.Tensor((size,), "uint4")):
        with T.Kernel(1, threads=32):
            for i in T.serial(size):
                B[size - 1 - i] = A[i]

    values = np.random.default_rng(size).integers(0, 16, size).astype("uint8")
    a, b = codecs.pack4(values), np.zeros(size // 2, "uint8")
    tile.compile(main, target="cpu")(a, b)
    np.testing.assert_array_equal(b, codecs.pack4(values[::-1].copy()))


def test_many_quotients_by_a_symbol_compile() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 6), "float32"), B: T.Tensor((m, 6), "float32")):
        with T.Kernel(T.ceildiv(m * 6, 96), threads=32) as bx:
            for t in T.Parallel(96):
                e = bx * 96 + t
                B[e // 6 % m, e % 6] = A[e // 6 % m, e % 6] + A[(e + 7) // 6 % m, (e + 1) % 6]

    a = np.random.default_rng(0).standard_normal((16, 6), "float32")
    out = np.zeros_like(a)
    tile.compile(main, target="cpu")(a, out)
    e = np.arange(96)
    np.testing.assert_array_equal(out.ravel(), a.ravel() + a[(e + 7) // 6 % 16, (e + 1) % 6])


def test_loops_that_are_asked_to_unroll_run_in_order_where_copies_are_many_or_unknown() -> None:
    @T.prim_func
    def main(A: T.Tensor((4000,), "int32"), v: T.int32):
        with T.Kernel(1, threads=32):
            for k in T.unroll(4000):
                A[k] = A[k] + k
            for k in T.unroll(v, unroll_factor=2):
                A[k] = A[k] - 1

    a = np.ones(4000, "int32")
    tile.compile(main, target="cpu")(a, 1001)
    np.testing.assert_array_equal(a, np.arange(4000) + 1 - (np.arange(4000) < 1001))
