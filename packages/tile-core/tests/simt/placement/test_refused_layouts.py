"""Layouts that no target could follow are refused by all of them, at the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadAnnotation
from tile_core.layout import make_swizzled_layout, row_major

from ..whole import planned


def annotated(make: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((16, 32), "int32")):
        with T.Kernel(1, threads=64):
            make()
            T.clear(A)

    return main


def of_view() -> None:
    s = T.alloc_shared((16, 32), "int32")
    v = T.view(s, (16, 32), "float32")
    T.annotate_layout({v: make_swizzled_layout((16, 32), element_bits=32)})
    T.clear(v)


def with_view() -> None:
    s = T.alloc_shared((16, 32), "int32")
    T.annotate_layout({s: make_swizzled_layout((16, 32), element_bits=32)})
    T.clear(T.view(s, (16, 32), "float32"))


def of_reducer() -> None:
    r = T.alloc_reducer((32,), "int32", op="sum")
    T.annotate_layout({r: T.Fragment((32,), lambda i: (i, 0 * i))})
    T.finalize_reducer(r)


def of_local() -> None:
    x = T.alloc_local((4,), "int32")
    T.annotate_layout({x: T.Layout((4,), lambda i: 3 - i)})
    T.clear(x)


def fragment_in_memory() -> None:
    f = T.alloc_fragment((16, 32), "int32")
    T.annotate_layout({f: row_major((16, 32))})
    T.clear(f)


def shared_on_threads() -> None:
    s = T.alloc_shared((16, 32), "int32")
    T.annotate_layout({s: T.Fragment((16, 32), lambda i, j: (j, i))})
    T.clear(s)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (of_view, "is a view, which shows the memory of another buffer"),
        (with_view, "has views, which show its memory in row-major order"),
        (of_reducer, "is a reducer"),
        (of_local, "lies in local scratch"),
        (fragment_in_memory, "lies in registers of threads, and its layout gives memory"),
        (shared_on_threads, "lies in shared memory, and its layout gives thread, register"),
    ],
)
def test_what_no_target_can_follow_is_refused_by_all(make: Any, reason: str) -> None:
    for compile_ in (planned, lambda p: tile.compile(p, target="cpu")):
        with pytest.raises(BadAnnotation, match=reason):
            compile_(annotated(make))


BY_COLUMNS = T.Layout((4, 4), lambda i, j: j * 4 + i)


def read_through_a_view(layout: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 4), "int32"), B: T.Tensor((4, 4), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_layout({A: layout})
            v = T.reshape(A, (16,))  # here
            T.copy(A, B)
            T.copy(v, C)

    return main


def written_through_a_view(layout: Any) -> Any:
    @T.prim_func
    def main(B: T.Tensor((4, 4), "float32"), A: T.Tensor((4, 4), "float32")):
        with T.Kernel(1, threads=32):
            v = T.view(A, (4, 4), "int32")  # here
            T.annotate_layout({A: layout})
            T.copy(B, A)
            v[0, 1] = 1

    return main


def a_view_of_a_view(layout: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 4), "int32"), C: T.Tensor((2, 8), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_layout({A: layout})
            flat = T.reshape(A, (16,))  # here
            T.copy(T.reshape(flat, (2, 8)), C)

    return main


@pytest.mark.parametrize("make", [read_through_a_view, written_through_a_view, a_view_of_a_view])
def test_a_tensor_with_views_has_no_layout_of_its_own(make: Any) -> None:
    for compile_ in (planned, lambda p: tile.compile(p, target="cpu")):
        with pytest.raises(BadAnnotation, match=r"K134.*A has views, which show its memory in row-major") as refused:
            compile_(make(BY_COLUMNS))
        assert refused.value.where is not None
        assert refused.value.where.file == __file__
        assert refused.value.where.source.endswith("# here")
        compile_(make(row_major((4, 4))))


def test_a_shared_buffer_with_views_is_refused_at_the_view() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 4), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 4), "int32")
            T.annotate_layout({s: BY_COLUMNS})
            v = T.reshape(s, (16,))  # here
            T.clear(v)
            T.copy(s, A)

    with pytest.raises(BadAnnotation, match="s has views") as refused:
        planned(main)
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")


def test_views_of_a_row_major_tensor_show_its_elements() -> None:
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    b, c = np.zeros((4, 4), np.int32), np.zeros(16, np.int32)
    tile.compile(read_through_a_view(row_major((4, 4))), target="cpu")(a, b, c)
    assert np.array_equal(b, a)
    assert np.array_equal(c, a.reshape(-1))


@pytest.mark.parametrize("copies", [1, 2])
def test_elements_of_a_tensor_are_in_no_thread(copies: int) -> None:
    layout = T.Fragment((16, 32), forward_thread_fn=lambda i, j, copy=0: copy * 32 + j, replicate=copies)
    reason = r"K134.*A is in global memory, but its layout gives thread, register"
    with pytest.raises(BadAnnotation, match=reason) as refused:

        @T.prim_func
        def main(A: T.Tensor((16, 32), "int32")):
            with T.Kernel(1, threads=64):
                T.annotate_layout({A: layout})
                T.clear(A)

    assert refused.value.where is not None
    assert refused.value.where.source == "T.annotate_layout({A: layout})"


def test_extents_that_calls_decide_have_no_layout() -> None:
    n = T.dynamic("n")
    with pytest.raises(BadAnnotation, match=r"K134.*A has the extent n, which calls decide"):

        @T.prim_func
        def main(A: T.Tensor((n, 64), "float32")):
            with T.Kernel(1, threads=64):
                T.annotate_layout({A: T.Layout((64, 64), lambda i, j: j * 64 + i)})
                T.clear(A)


def test_a_view_of_rows_in_order_is_legal() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 32), "int32"), B: T.Tensor((32, 16), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16, 32), "int32")
            T.annotate_layout({s: T.Layout((16, 32), lambda i, j: i * 32 + j)})
            T.copy(A, s)
            T.copy(T.reshape(s, (32, 16)), B)

    planned(main)
