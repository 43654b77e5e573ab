"""Test that strides of axes of extent 0 or 1 do not matter."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reference import execute

N, S, R = 5, 8, 12
m, n, s, r = (T.dynamic(name) for name in "mnsr")


def plus_one(shape: tuple, strides: tuple) -> tile.Program:
    """Return a kernel of arrays of a declared shape and strides."""

    @T.prim_func
    def main(A: T.StridedTensor(shape, strides, "float32"), B: T.StridedTensor(shape, strides, "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(shape[0], shape[1]):
                B[i, j] = A[i, j] + 1

    return main


CASES = [
    ((m, N), (s, 1), (0, N), (0, 0)),
    ((m, n), (s, 1), (3, 0), (0, 0)),
    ((m, n), (s, r), (0, 0), (0, 0)),
    ((m, n), (S, 1), (0, 4), (-1, 1)),
    ((m, n), (s, 1), (0, 4), (-1, 1)),
    ((m, 1), (s, 1), (5, 1), (7, 3)),
    ((m, 1), (s, 1), (5, 1), (7, -3)),
    ((1, 4), (S, 1), (1, 4), (0, 1)),
    ((m, n), (S, 1), (1, 4), (-1, 1)),
    ((m, n), (s, 2), (1, 4), (0, 2)),
    ((1, 1), (R, S), (1, 1), (0, 0)),
]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("shape", "strides", "extents", "steps"), CASES)
def test_they_do_not_matter(shape: tuple, strides: tuple, extents: tuple, steps: tuple) -> None:
    program = plus_one(shape, strides)
    kernel = tile.compile(program, target="cpu")
    memory = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    bytes_of = tuple(4 * step for step in steps)
    a = np.lib.stride_tricks.as_strided(memory[8:], extents, bytes_of)
    for _ in range(2):  # the second call takes what the first has remembered
        storage = np.zeros(64, np.float32)
        b = np.lib.stride_tricks.as_strided(storage[8:], extents, bytes_of)
        kernel(a, b)
        np.testing.assert_array_equal(b, a + 1)
        assert np.count_nonzero(storage) == b.size
    kernel.verify(a, b)
    again = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32)[8:], extents, bytes_of)
    execute(program, (a, again))
    np.testing.assert_array_equal(again, a + 1)


def test_one_symbol_of_two_arrays_is_that_of_the_axis_that_moves() -> None:
    @T.prim_func
    def main(A: T.StridedTensor((1, n), (s, 1), "float32"), B: T.StridedTensor((m, n), (s, 1), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(m, n):
                B[i, j] = A[0, j]

    a, storage = np.arange(4, dtype=np.float32).reshape(1, 4), np.zeros((3, 9), np.float32)
    tile.compile(main, target="cpu")(a, storage[:, :4])
    np.testing.assert_array_equal(storage[:, :4], np.repeat(a, 3, 0))
    assert not storage[:, 4:].any()


def test_torch_and_narrow_elements() -> None:
    torch = pytest.importorskip("torch")

    @T.prim_func
    def main(A: T.StridedTensor((m, 1), (s, 1), "bfloat16"), B: T.StridedTensor((m, 1), (s, 1), "bfloat16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(m):
                B[i, 0] = A[i, 0]

    kernel = tile.compile(main, target="cpu")
    a, b = (torch.as_strided(t, (5, 1), (7, 3)) for t in (torch.randn(40).bfloat16(), torch.zeros(40).bfloat16()))
    kernel(a, b)
    assert torch.equal(a, b)
    kernel(torch.zeros(0, 1, dtype=torch.bfloat16), torch.zeros(0, 1, dtype=torch.bfloat16))
