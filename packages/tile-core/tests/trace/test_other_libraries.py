"""Test refusals of NumPy, math and array methods, with the language's name."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.errors import KernelError

#: name -> (what is done with a tile s, a tensor A, a scalar n, a block's number b; code; texts of the error)
WRONG = {
    "np.exp of a tile": (lambda s, A, n, b: np.exp(s), "K140", "T.exp(s)"),
    "np.exp of an element": (lambda s, A, n, b: np.exp(A[0]), "K140", "T.exp(A[0])"),
    "np.sum": (lambda s, A, n, b: np.sum(s), "K140", "T.reduce_sum(s, out"),
    "np.maximum": (lambda s, A, n, b: np.maximum(s, 0), "K140", "T.max(s, ...)"),
    "np.maximum.reduce": (lambda s, A, n, b: np.maximum.reduce(s), "K140", "T.reduce_max"),
    "np.add.reduce": (lambda s, A, n, b: np.add.reduce(s), "K140", "T.reduce_sum"),
    "np.arctan of an element": (lambda s, A, n, b: np.arctan(A[0]), "K140", "numpy.arctan"),
    "np.asarray": (lambda s, A, n, b: np.asarray(s), "K140", "numpy.asarray"),
    "an array beside a tile": (lambda s, A, n, b: np.zeros(16) + s, "K140", "T.Parallel"),
    "an array beside an element": (lambda s, A, n, b: np.zeros(16) + A[0], "K103", "array of type ndarray"),
    "tile @ tile": (lambda s, A, n, b: s @ s, "K103", "T.gemm"),
    "tile.sum()": (lambda s, A, n, b: s.sum(), "K140", "s.sum", "T.reduce_sum(s, out"),
    "slice.max()": (lambda s, A, n, b: s[0:4].max(), "K140", "T.reduce_max(s, out"),
    "tile.T": (lambda s, A, n, b: s.T, "K140", "T.transpose", "transpose_B"),
    "element.sqrt()": (lambda s, A, n, b: A[0].sqrt(), "K140", "T.sqrt(A[0])"),
    "math.sqrt": (lambda s, A, n, b: math.sqrt(A[0]), "K105", "T.sqrt(value)"),
    "int(n)": (lambda s, A, n, b: int(n), "K105", "T.cast(value, 'int32')"),
    "bool": (lambda s, A, n, b: bool(n > 0), "K105", "T.if_then_else"),
    "a loop over a tile": (lambda s, A, n, b: list(s), "K105", "T.Parallel(n)"),
    "unpacking a value": (lambda s, A, n, b: [*n], "K105", "T.serial(n)"),
    "the truth of a tile": (lambda s, A, n, b: not s, "K105", "compare elements"),
    "a slice that is too long": (lambda s, A, n, b: s[b : b + 99], "K106", "index b:b + 99", "extent 16"),
    "text": (lambda s, A, n, b: A[0] + "a", "K103", "'a'"),
    "an array": (lambda s, A, n, b: A[0] + np.zeros(3), "K103", "ndarray"),
    "a complex number": (lambda s, A, n, b: A[0] * 1j, "K103", "complex"),
    "a variable of TVM": (lambda s, A, n, b: A.__setitem__(0, A[0] + tirx.Var("z", "int32")), "K133", "z is used"),
    "a buffer of TVM": (lambda s, A, n, b: A[0] + s.var, "K103", "the buffer s of TVM"),
    "a private name": (lambda s, A, n, b: getattr(T, "__name"), "K129", "begin with _"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    body, code, *texts = WRONG[name]
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def k(A: T.Tensor((16,), "float32"), n: T.int32):
            with T.Kernel(4, threads=32) as b:
                s = T.alloc_fragment((16,), "float32")
                T.clear(s)
                body(s, A, n, b)

    assert caught.value.code == code
    for text in texts:
        assert text in str(caught.value)


def test_scalars_of_numpy_are_numbers():
    @T.prim_func
    def k(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = np.float32(2) * A[i] + np.float64(0.5) - np.int64(1) * A[i]

    a = np.arange(4, dtype=np.float32)
    assert (tile.compile(k, "cpu", out_idx=1)(a) == a + 0.5).all()


def test_probing_for_attributes_is_python():
    @T.prim_func
    def k(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            assert not hasattr(A, "nonsense")
            assert not hasattr(A, "sum")
            assert getattr(A[0], "item", None) is None
            T.clear(A)

    tile.compile(k, "cpu")


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_packed_types_are_contiguous(dtype):
    for declare in (lambda: T.StridedTensor((8, 8), (16, 1), dtype), lambda: T.Tensor((), dtype)):
        with pytest.raises(KernelError, match=r"\[K128\].*share a byte"):
            declare()


def test_a_result_that_is_returned_is_named_at_its_return():
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def k(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                T.clear(A)
            return A

    assert caught.value.code == "K132"
    assert caught.value.where.source == "return A"


def test_a_factory_is_not_a_program():
    def make(n, block=16):
        return n

    with pytest.raises(KernelError, match=r"tile.compile\(make\(n=\.\.\.\)\)"):
        tile.compile(make, "cpu")
    with pytest.raises(KernelError, match=r"kernel = make\(n=\.\.\.\); tile.compile takes make.program\(n=\.\.\.\)"):
        tile.compile(tile.jit(make), "cpu")
