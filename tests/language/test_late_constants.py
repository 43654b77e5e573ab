"""Scalar rules hold for operands that become constant in the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(2)

N = 8
#: Zeros: conversions of fractions, reads outside of tensors, known choices, differences.
ZEROS = {
    "fraction": lambda Z, i, dtype: T.cast(T.cast(0.5, "float32"), dtype),
    "behind": lambda Z, i, dtype: Z[i + N],
    "before": lambda Z, i, dtype: Z[i - N],
    "choice": lambda Z, i, dtype: T.Select(Z[i] == Z[i], T.cast(0, dtype), Z[i]),
    "limits": lambda Z, i, dtype: T.clamp(Z[i], 0, 0),
    "difference": lambda Z, i, dtype: Z[i] - Z[i],
    "bits": lambda Z, i, dtype: Z[i] ^ Z[i],
    "quotient": lambda Z, i, dtype: T.cast(i // N, dtype),
}
QUOTIENTS = (T.floordiv, T.floormod, T.truncdiv, T.truncmod, T.ceildiv)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint64"])
@pytest.mark.parametrize("target", TARGETS)
def test_divisors(target: str, dtype: str) -> None:
    rows = len(ZEROS) * len(QUOTIENTS)

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), Z: T.Tensor((N,), dtype), B: T.Tensor((rows, N), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                for z, zero in enumerate(ZEROS.values()):
                    for q, quotient in enumerate(QUOTIENTS):
                        B[z * len(QUOTIENTS) + q, i] = quotient(A[i], zero(Z, i, dtype))

    b = np.full((rows, N), 77, dtype)
    compiled(main, target)(np.arange(3, 3 + N).astype(dtype), np.arange(N).astype(dtype), b)
    assert not b.any()


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("target", TARGETS)
def test_counts_of_bits(target: str, dtype: str) -> None:
    bits = np.dtype(dtype).itemsize * 8
    counts = (0, 1, bits - 1, bits, 100)

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), Z: T.Tensor((N,), dtype), B: T.Tensor((2 * len(counts), N), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                for c, count in enumerate(counts):
                    B[2 * c, i] = A[i] << (Z[i + N] + count)
                    B[2 * c + 1, i] = A[i] >> (T.cast(T.cast(0.25, "float32"), dtype) + count)

    a = np.array([0, 1, 2, 5, 100, 127, 64, 3], dtype)
    b = np.full((2 * len(counts), N), 77, dtype)
    compiled(main, target)(a, np.ones(N, dtype), b)
    for c, count in enumerate(counts):
        left = [(int(x) << count if count < bits else 0) % 2**bits for x in a]
        np.testing.assert_array_equal(b[2 * c].view(f"u{bits // 8}"), left)
        np.testing.assert_array_equal(b[2 * c + 1], [int(x) >> min(count, bits) for x in a])


@pytest.mark.parametrize("target", TARGETS)
def test_floats_that_do_not_fit(target: str) -> None:
    @T.prim_func
    def main(F: T.Tensor((N,), "float32"), B: T.Tensor((5, N), "int32"), C: T.Tensor((2, N), "uint8")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[0, i] = T.cast(1.0 / F[i + N], "int32")
                B[1, i] = T.cast(-1.0 / F[i + N], "int32")
                B[2, i] = T.cast(F[i + N] / F[i + N], "int32")
                B[3, i] = T.cast(F[i + N] + 3e9, "int32")
                B[4, i] = 7 // T.cast(F[i + N] / F[i + N], "int32")
                C[0, i] = T.cast(F[i + N] - 1.0, "uint8")
                C[1, i] = T.cast(T.cast(256.0, "float32"), "uint8")

    b, c = np.full((5, N), 77, np.int32), np.full((2, N), 77, np.uint8)
    compiled(main, target)(np.ones(N, np.float32), b, c)
    assert b[:, 0].tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, 0]
    assert c[:, 0].tolist() == [0, 255]
    assert (b == b[:, :1]).all()
    assert (c == c[:, :1]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_divisor_of_quotients_by_the_same_divisor(target: str) -> None:
    """One condition guards both divisions; the inner one may be computed before it is tested."""

    @T.prim_func
    def main(A: T.Tensor((4 * N,), "int32"), s: T.int32, B: T.Tensor((3, N), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[0, i] = A[((i * 3) // s + 1) // s]
                B[1, i] = A[((i * 3) // s + 1) % s + ((i + 1) // s) // s]
                B[2, i] = A[T.Select(s != 0, (i + 9) // s // s, i)]

    def divided(x: int, s: int) -> tuple[int, int]:
        return (x // s, x % s) if s else (0, 0)

    def read(a: Any, at: int) -> int:
        return int(a[at]) if 0 <= at < len(a) else 0

    kernel, a = compiled(main, target), np.arange(4 * N, dtype=np.int32) + 50
    for s in (0, 3, -1, -2):
        b = np.full((3, N), 77, np.int32)
        kernel(a, s, b)
        for i in range(N):
            quotient, rest = divided(divided(i * 3, s)[0] + 1, s)
            assert b[0, i] == read(a, quotient)
            assert b[1, i] == read(a, rest + divided(divided(i + 1, s)[0], s)[0])
            assert b[2, i] == read(a, divided(divided(i + 9, s)[0], s)[0] if s else i)


@pytest.mark.parametrize("target", TARGETS)
def test_the_greatest_number_of_64_bits(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "uint64"), B: T.Tensor((2, N), "uint64")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[0, i] = T.cast(2**64 - 1, "uint64") - A[i]
                B[1, i] = (A[i + N] - 1) // (A[i + N] + 2**63)

    b = np.zeros((2, N), np.uint64)
    compiled(main, target)(np.arange(N, dtype=np.uint64), b)
    assert b.tolist() == [[2**64 - 1 - i for i in range(N)], [1] * N]
