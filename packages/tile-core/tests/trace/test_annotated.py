"""``Annotated``: declarations of parameters that type checkers accept."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadParameter
from tile_core.ir.program import Program


def twice(X: Any, Y: Any, n: Any) -> Program:
    @T.prim_func
    def kernel(A: X, B: Y, count: n):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * count

    return kernel


def test_the_first_declaration_counts():
    vector = T.Tensor((32,), "float32")
    annotated = twice(
        Annotated[T.Buffer, vector], Annotated[Any, "a note", vector, T.Tensor((1,), "int8")], Annotated[int, T.int32]
    )
    plain = twice(vector, vector, T.int32)
    assert annotated.params == plain.params
    a, b = np.arange(32, dtype="float32"), np.zeros(32, "float32")
    tile.compile(annotated, "cpu")(a, b, 3)
    np.testing.assert_array_equal(b, 3 * a)


def test_pointers():
    @T.prim_func
    def kernel(p: Annotated[Any, T.ptr], q: Annotated[Any, T.ptr("float16")], A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = 1

    assert [(p.kind, p.dtype) for p in kernel.params[:2]] == [("pointer", "uint8"), ("pointer", "float16")]


def test_without_a_declaration_it_is_refused():
    with pytest.raises(BadParameter, match=r"A: T\.Tensor"):
        twice(Annotated[T.Buffer, "a note"], T.Tensor((32,), "float32"), T.int32)


def test_in_the_body_of_an_eager_kernel():
    @tile.jit(target="cpu")
    def doubled(A: T.Buffer, factor: Annotated[float, T.float32]):
        n = T.const("n")
        A: Annotated[T.Buffer, T.Tensor((n,), "float32")]
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                scaled: Annotated[float, T.float16] = A[bx * 32 + i]
                B[bx * 32 + i] = scaled * factor
        return B

    a = np.linspace(0, 1, 45, dtype="float32")
    np.testing.assert_array_equal(doubled(a, 2.0), a.astype("float16").astype("float32") * 2)


def test_the_type_of_a_program():
    assert T.PrimFunc is Program
    assert isinstance(twice(T.Tensor((32,), "int8"), T.Tensor((32,), "int8"), T.int32), T.PrimFunc)
