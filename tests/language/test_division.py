"""Quotients and remainders are Python's for all types; overflow wraps, and /0 is 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.truncation import limits_of

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(4)

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
CONSTANTS = (1, 2, 3, 7, 16, -1, -2, -3, -16, 100)


def truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


PYTHON: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "ceildiv": lambda a, b: -(-a // b),
    "truncdiv": truncdiv, "truncmod": lambda a, b: a - truncdiv(a, b) * b,
}  # fmt: skip


def wrapped(value: int, dtype: str) -> int:
    low, high = limits_of(dtype)
    return (value - low) % (high - low + 1) + low


def expected(name: str, a: Any, b: Any, dtype: str) -> Any:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([wrapped(PYTHON[name](x, y), dtype) if y else 0 for x, y in pairs], dtype)


def operands(dtype: str) -> tuple[Any, Any]:
    low, high = limits_of(dtype)
    edges = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, high // 2, low // 2]
    edges += [] if low == 0 else [-1, -2, -3, -7, -100]
    rng = np.random.default_rng(7)
    drawn = rng.integers(low, high, 40, dtype=dtype, endpoint=True).tolist()
    pairs = [(x, y) for x in edges for y in edges] + list(itertools.pairwise(drawn))
    return np.array([x for x, _ in pairs], dtype), np.array([y for _, y in pairs], dtype)


def runtime(count: int, dtype: str, loop: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), dtype), B: T.Tensor((count,), dtype), Q: T.Tensor((7, count), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count) if loop == "Parallel" else T.serial(count):
                for n, name in enumerate(PYTHON):
                    Q[n, i] = getattr(T, name)(A[i], B[i])
                Q[5, i] = A[i] // B[i]
                Q[6, i] = A[i] % B[i]

    return main


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_by_runtime_numbers(target: str, dtype: str) -> None:
    a, b = operands(dtype)
    out = compiled(runtime(len(a), dtype, "Parallel"), target, out_idx=2)(a, b)
    for found, name in zip(out, (*PYTHON, "floordiv", "floormod"), strict=True):
        np.testing.assert_array_equal(found, expected(name, a, b, dtype), err_msg=name)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint32"])
def test_by_constants(target: str, dtype: str) -> None:
    a = operands(dtype)[0][::11].copy()
    count = len(a)
    divisors = [c for c in CONSTANTS if c > 0 or dtype.startswith("int")]

    @T.prim_func
    def main(A: T.Tensor((count,), dtype), Q: T.Tensor((len(divisors), 5, count), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                for d, divisor in enumerate(divisors):
                    for n, name in enumerate(PYTHON):
                        Q[d, n, i] = getattr(T, name)(A[i], divisor)

    out = compiled(main, target, out_idx=1)(a)
    for found, divisor in zip(out, divisors, strict=True):
        for row, name in zip(found, PYTHON, strict=True):
            want = expected(name, a, np.full_like(a, divisor), dtype)
            np.testing.assert_array_equal(row, want, err_msg=f"{name} by {divisor}")


@pytest.mark.parametrize("target", TARGETS)
def test_scalar_parameters_near_the_limit(target: str) -> None:
    @T.prim_func
    def main(n: T.int32, Q: T.Tensor((5,), "int32")):
        with T.Kernel(1, threads=32):
            Q[0] = T.ceildiv(n, 2)
            Q[1] = T.ceildiv(n, -2)
            Q[2] = T.ceildiv(n, n)
            Q[3] = T.ceildiv(7, n)
            Q[4] = (n + 0) // -1

    kernel = compiled(main, target, out_idx=1)
    for n in (2**31 - 1, -(2**31), -(2**31) + 1, 5, -5, 1, -1):
        want = [-(-n // 2), -(-n // -2), 1, -(-7 // n), wrapped(n // -1, "int32")]
        assert kernel(n).tolist() == want, n


def test_at_trace_time() -> None:
    for a in (-7, -1, 0, 1, 7, 2**31 - 1, 2**40):
        for b in (-7, -2, -1, 1, 2, 7):
            for name, python in PYTHON.items():
                assert getattr(T, name)(a, b) == python(a, b)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_a_size_that_a_tile_would_carry_over_the_limit(target: str) -> None:
    """A kernel rounds its sizes up to tiles in 32 bits."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), "int8"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            B[0] = T.ceildiv(m, 128)

    kernel = compiled(main, target)
    b = np.zeros(1, np.int32)
    kernel(np.zeros(1000, np.int8), b)
    assert b[0] == 8
    long = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31 - 100,), (1,))
    with pytest.raises(tile.TileError, match="K422"):
        kernel(long, b)


def test_sizes_of_eager_kernels_before_the_declarations() -> None:
    @tile.jit(target="cpu")
    def first(A, block: int = 16):
        M, N, K = T.const("M"), T.const("N"), T.const("K")
        blocks = T.ceildiv(M, block)
        A: T.Tensor[(M, N, K), "float32"]
        B = T.empty((blocks, T.ceildiv(N, 2), T.truncdiv(K, 2) + T.max(N, 1)), "int32")
        with T.Kernel(1, threads=32):
            T.fill(B, T.ceildiv(K, 3))
        return B

    b = first(np.zeros((33, 5, 7), np.float32))
    assert b.shape == (3, 3, 8)
    assert (b == 3).all()
