"""One-sided limits, multiples, declarations of one dimension, and names of other versions."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadArgument
from tile_core.errors.ops import ViewSize


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_clamp_with_one_limit(dtype):
    @T.prim_func
    def k(A: T.Tensor[9, dtype], B: T.Tensor[(2, 9), dtype]):
        with T.Kernel(threads=32):
            for i in T.Parallel(9):
                B[0, i] = T.clamp(A[i], min_val=-1)
                B[1, i] = T.clamp(A[i], max_val=2)

    a = np.array([-4, -1, 0, 1, 2, 3, 100, -100, 2], dtype)
    if dtype != "int8":
        a[-1] = math.nan
    b = tile.compile(k, "cpu", out_idx=1)(a)
    np.testing.assert_array_equal(b, [np.maximum(a, a.dtype.type(-1)), np.minimum(a, a.dtype.type(2))])


def test_clamp_of_python_numbers():
    assert T.clamp(5, max_val=3) == 3
    assert T.clamp(5, min_val=7) == 7
    assert T.clamp(0.5, 0, 1) == 0.5
    assert math.isnan(T.clamp(math.nan, min_val=0.0))
    with pytest.raises(BadArgument, match="a limit"):
        T.clamp(1)


def test_align_up():
    assert [T.align_up(n, 8) for n in (0, 1, 8, 9)] == [0, 8, 8, 16]

    @T.prim_func
    def k(n: T.int32, B: T.Tensor[1, "int32"]):
        with T.Kernel():
            B[0] = T.align_up(n, 24)

    kernel = tile.compile(k, "cpu", out_idx=1)
    assert [int(kernel(n)[0]) for n in (0, 1, 24, 25)] == [0, 24, 24, 48]


@pytest.mark.parametrize("dtype", ["float16", T.float16, np.float16, np.dtype("float16")])
def test_a_tensor_of_one_dimension(dtype):
    assert T.Tensor[7, dtype] == T.Tensor((7,), "float16")
    assert T.Tensor[7, 8] == T.Tensor((7, 8), "float32")
    m = T.dynamic("m")
    assert len(T.Tensor[m, 8].shape) == 2
    assert len(T.Tensor[m, dtype].shape) == 1


@pytest.mark.parametrize(
    ("name", "other"),
    [("im2col", "c2d_im2col"), ("gemm_v2", "gemm"), ("symbolic", "dynamic"), ("gemm_sp_v2", "gemm_sp")],
)
def test_some_names_are_others(name, other):
    assert inspect.unwrap(getattr(T, name)) is inspect.unwrap(getattr(T, other))
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing "):
        getattr(T, name)()


@pytest.mark.parametrize("how", ["third", "data"])
def test_a_tensor_on_the_storage_of_a_buffer(how):
    @T.prim_func
    def k(A: T.Tensor((8,), "float32"), B: T.Tensor((2, 4), "int32")):
        with T.Kernel(threads=32):
            s = T.alloc_shared((8,), "float32")
            T.copy(A, s)
            T.copy(T.Tensor((2, 4), "int32", s.data) if how == "third" else T.Tensor((2, 4), "int32", data=s.data), B)

    a = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(tile.compile(k, "cpu", out_idx=1)(a), a.view("int32").reshape(2, 4))
    with pytest.raises(ViewSize):

        @T.prim_func
        def other(A: T.Tensor((8,), "float32"), B: T.Tensor((9,), "float32")):
            with T.Kernel(threads=32):
                T.copy(T.Tensor((9,), "float32", A.data), B)
