"""Annotated layouts on the CPU: of parameters in memory, and of scratch without effect."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import LayoutUnsupported
from tile_core.layout import Layout, column_major, make_swizzled_layout


def test_parameters_are_read_and_written_where_their_layout_puts_them() -> None:
    @T.prim_func
    def copy(A: T.Tensor((6, 10), "int32"), B: T.Tensor((6, 10), "int32"), C: T.Tensor((6, 10), "int32")):
        with T.Kernel(2, 2, threads=32) as (bx, by):
            s = T.alloc_shared((4, 6), "int32")
            T.annotate_layout({A: column_major((6, 10)), C: column_major((6, 10)), s: make_swizzled_layout(s)})
            T.copy(A[by * 4, bx * 6], s)
            T.copy(s, B[by * 4, bx * 6])
            for i, j in T.Parallel(4, 6):
                C[by * 4 + i, bx * 6 + j] = s[i, j] + 1

    a = np.arange(60, dtype=np.int32).reshape(6, 10)
    b, c = np.full((6, 10), -1, np.int32), np.full((6, 10), -1, np.int32)
    tile.compile(copy, target="cpu")(a, b, c)
    assert np.array_equal(b, a.reshape(10, 6).T)
    assert np.array_equal(c, a + 1)


def test_a_layout_that_exceeds_its_tensor_is_refused() -> None:
    with pytest.raises(LayoutUnsupported) as refused:

        @T.prim_func
        def padded(A: T.Tensor((4, 6), "int32"), B: T.Tensor((4, 6), "int32")):
            with T.Kernel(1, threads=32):
                T.annotate_layout({A: Layout((4, 6), lambda i, j: i * 8 + j, span=32)})
                T.copy(A, B)

    assert refused.value.code == "U106"
    assert "annotate_layout" in refused.value.where.source
    assert "the layout of A spans 32 elements, but the tensor has 24" in str(refused.value)
