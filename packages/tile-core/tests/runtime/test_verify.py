"""``Kernel.verify`` of compiled kernels: empty arrays, strides, pointers, and what a broken reference gives."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import InternalError


@pytest.fixture(scope="module")
def rows():
    n = T.dynamic("n")

    @T.prim_func
    def rows(A: T.Tensor((n, 4), "float32"), B: T.Tensor((n, 4), "float32")):
        with T.Kernel(n) as i:
            for j in T.Parallel(4):
                B[i, j] = A[i, j] + 1

    return tile.compile(rows, target="cpu", out_idx=1)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_arrays_without_elements(rows, n):
    report = rows.verify(np.ones((n, 4), "float32"))
    assert report.outputs[0].elements == 4 * n


def test_a_broken_reference_is_an_internal_error(rows):
    kernel = tile.Kernel(rows.signature, lambda *_: None, program=rows.program, reference=lambda *_: 1 / 0)
    with pytest.raises(InternalError, match="internal error in the reference: ZeroDivisionError") as info:
        kernel.verify(np.ones((1, 4), "float32"))
    assert info.value.code == "I000"
    assert info.value.where == rows.signature.where


def test_a_launch_that_raises_is_an_internal_error_in_verify_and_bench(rows):
    kernel = tile.Kernel(rows.signature, lambda *_: 1 / 0, reference=lambda *_: None)
    for action in (kernel.verify, kernel.bench, kernel):
        with pytest.raises(InternalError, match="internal error in launch: ZeroDivisionError"):
            action(np.ones((1, 4), "float32"))


def test_strides_are_those_of_the_declaration():
    @T.prim_func
    def strided(A: T.StridedTensor((4, 4), (9, 2), "float32"), B: T.StridedTensor((4, 4), (8, 1), "float32")):
        with T.Kernel(4) as i:
            for j in T.Parallel(4):
                B[i, j] = A[i, j] + 1

    kernel = tile.compile(strided, target="cpu")
    wide, memory = np.arange(40, dtype="float32"), np.full((4, 8), 7, "float32")
    a, b = np.lib.stride_tricks.as_strided(wide, (4, 4), (36, 8)), memory[:, :4]
    kernel.verify(a, b)
    np.testing.assert_array_equal(b, a + 1)
    assert (memory[:, 4:] == 7).all()


def test_pointers():
    @T.prim_func
    def copy(p: T.ptr, n: T.int32, C: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            X = T.make_tensor(p, (n,), "float32")
            for j in T.Parallel(4):
                C[j] = X[j]

    data, out = np.arange(4, dtype="float32"), np.full(4, -1, "float32")
    tile.compile(copy, target="cpu").verify(data.ctypes.data, 4, out)
    np.testing.assert_array_equal(out, data)
