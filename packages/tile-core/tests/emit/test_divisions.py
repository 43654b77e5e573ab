"""Quotients and remainders in C: results, and no signed division of nonnegative integers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core.language as T

from .test_c_family import emitted, needs_compiler, run

DIVISORS = (1, 2, 3, 7, 8, 24, 64, 1000, 1 << 20)


def quotients(dtype: str, n: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((4 * len(DIVISORS), n), dtype)):
        with T.Kernel(1, threads=1):
            for i in T.serial(n):
                for d, divisor in enumerate(DIVISORS):
                    B[4 * d, i] = A[i] // divisor
                    B[4 * d + 1, i] = A[i] % divisor
                    B[4 * d + 2, i] = T.truncdiv(A[i], divisor)
                    B[4 * d + 3, i] = T.truncmod(A[i], divisor)

    return kernel


@pytest.mark.sweep(0.25)
@needs_compiler
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_numbers_of_either_sign(tmp_path: Path, dtype: str, seed: int) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    a = np.concatenate([
        np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype),
        rng.integers(info.min, info.max, 30, dtype=dtype, endpoint=True), rng.integers(0, 99, 9).astype(dtype),
    ])  # fmt: skip
    b = np.full((4 * len(DIVISORS), len(a)), 77, a.dtype)
    run(emitted(quotients(dtype, len(a))).text, tmp_path, a, b)
    for d, divisor in enumerate(DIVISORS):
        exact = [int(x) for x in a]
        cut = [abs(x) // divisor * (1 if x >= 0 else -1) for x in exact]
        want = [[x // divisor for x in exact], [x % divisor for x in exact], cut,
                [x - q * divisor for x, q in zip(exact, cut, strict=True)]]  # fmt: skip
        np.testing.assert_array_equal(b[4 * d : 4 * d + 4], np.array(want, a.dtype), err_msg=f"by {divisor}")


def test_indices_that_are_not_negative_are_divided_without_signs() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((5000,), "float32"), B: T.Tensor((9, 5000), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(5000):
                B[0, i] = A[i // 32 * 5 + i % 32]
                B[1, i] = A[i // 24 * 5 + i % 24]

    text = emitted(kernel).text
    assert "(i >> 5)" in text
    assert "(i & 31)" in text
    assert "(int)((unsigned int)i / 24u)" in text
    assert "(int)((unsigned int)i % 24u)" in text
    assert not re.search(r"[^u]i [/%] ", text.replace("(unsigned int)i", "u"))


def test_64_bits_that_fit_into_32_are_divided_there() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((5000,), "int64"), B: T.Tensor((5000,), "int64")):
        with T.Kernel(1, threads=1):
            for i in T.serial(5000):
                B[i] = T.cast(i, "int64") // 24
                B[i] += A[i] // 24

    text = emitted(kernel).text
    assert "(unsigned int)" in text
    assert "(unsigned long long)" not in text  # the second dividend may be negative
