"""Eager kernels that are compiled before there are arrays, and tuned."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import KernelError


@tile.jit(target="cpu")
def scaled(A, factor: T.float32, block: int = 16):
    M, N = T.const("M, N")
    A: T.Tensor[(M, N), "float32"]
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
        B[bx * block : bx * block + block, :] = A[bx * block : bx * block + block, :] * factor
    return B


def test_a_kernel_is_compiled_for_sizes_before_its_call():
    kernel = scaled.compile(M=21, N=5, block=8)
    assert scaled.compile(M=21, N=5, block=8) is kernel
    assert scaled.compile(M=21, N=6, block=8) is not kernel
    a = np.random.default_rng(0).standard_normal((21, 5)).astype("float32")
    np.testing.assert_array_equal(kernel(a, 2.0), a * 2)
    np.testing.assert_array_equal(scaled(a, 2.0), a * 2)
    assert scaled.program(M=3, N=4).name == "scaled"


def test_sizes_may_be_symbols():
    kernel = scaled.compile(M=T.dynamic("m"), N=5)
    for rows in (1, 16, 33):
        a = np.random.default_rng(rows).standard_normal((rows, 5)).astype("float32")
        np.testing.assert_array_equal(kernel(a, 3.0), a * 3)


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({"M": 4}, "K1", "N"),
        ({"M": 4, "N": 4, "K": 4}, "K146", "its names of T.const: M, N"),
        ({"M": 4.5, "N": 4}, "K128", "M is 4.5"),
        ({"M": -1, "N": 4}, "K128", "M is -1"),
        ({"M": 4, "N": 4, "A": np.zeros((5, 4), "float32")}, "K1", "dimension 0"),
    ],
)
def test_other_sizes_are_refused(given, code, text):
    with pytest.raises(KernelError) as caught:
        scaled.compile(**given)
    assert caught.value.code.startswith(code)
    assert text in str(caught.value)


def test_a_missing_argument_that_is_no_array_is_refused():
    @tile.jit(target="cpu")
    def fixed(A, block):
        n = T.const("n")
        A: T.Tensor[(n,), "float32"]
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]
        return B

    with pytest.raises(KernelError, match="missing a required argument: 'block'"):
        fixed.compile(n=4)
    assert fixed.compile(n=4, block=2)(np.ones(4, "float32")).tolist() == [1] * 4


def test_an_eager_kernel_is_tuned():
    tuned = tile.autotune([{"block": 8}, {"block": 0}, {"block": 32}], warmup=1, repeat=2)(scaled)
    a = np.random.default_rng(3).standard_normal((40, 5)).astype("float32")
    np.testing.assert_array_equal(tuned(a, 2.0), a * 2)
    found = tuned.tune(a, 2.0)
    assert found is tuned.tune(a + 1, 2.0)
    assert found.config in ({"block": 8}, {"block": 32})
    assert "the fastest of 3 is block=" in str(found)
    assert "block=0: [K" in str(found)


def test_an_eager_kernel_is_tuned_for_sizes_alone():
    @tile.jit(target="cpu")
    def copied(A, block: int = 16):
        n = T.const("n")
        A: T.Tensor[(n,), "float32"]
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            B[bx * block : bx * block + block] = A[bx * block : bx * block + block]
        return B

    kernel = tile.autotune([{"block": 8}, {"block": 32}], warmup=1, repeat=2)(copied).compile(n=100)
    assert kernel(np.arange(100, dtype="float32")).tolist() == list(range(100))
