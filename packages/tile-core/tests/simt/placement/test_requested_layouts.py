"""Layouts that a program asks for: fragments, shared buffers and the slots of a pipeline have them, or are refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.lowering import FragmentLayoutUnsupported
from tile_core.layout import StackedLayout, fragment_of, make_swizzled_layout
from tile_core.reports import explain, explain_facts
from tile_core.testing.strategies.memory import ON_THREADS

from ..whole import planned, run


def rows(layout: Any, threads: int = 64) -> Any:
    """Double a tile in a fragment that has a layout."""

    @T.prim_func
    def main(A: T.Tensor((16, 32), "int32"), B: T.Tensor((16, 32), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=threads):
            f, g = T.alloc_fragment((16, 32), "int32"), T.alloc_fragment((16, 32), "int32")
            total = T.alloc_fragment((16,), "int32")
            T.annotate_layout({f: layout})
            T.copy(A, f)
            for i, j in T.Parallel(16, 32):
                g[i, j] = f[i, j] * 2
            T.reduce_sum(f, total, dim=1)
            T.copy(g, B)
            T.copy(total, C)

    return main


LAYOUTS = {
    "a row for each of four threads": (lambda i, j: (i * 4 + j // 8, j % 8)),
    "columns": (lambda i, j: (j * 2 + i // 8, i % 8)),
    "every other column": (lambda i, j: ((i % 2) * 32 + j, i // 2)),
    "registers from the last": (lambda i, j: (i * 4 + j % 4, j // 4)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_fragment_is_where_the_program_says(name: str) -> None:
    forward = LAYOUTS[name]
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(-99, 99, (16, 32), dtype=np.int32), np.zeros((16, 32), np.int32), np.zeros(16, np.int32)
    plan = run(rows(T.Fragment((16, 32), forward)), a, b, c)
    np.testing.assert_array_equal(b, a * 2)
    np.testing.assert_array_equal(c, a.sum(1))
    (found,) = (d for f, d in plan.placement.placement.fragments.items() if str(f.name) == "f")
    grid = [(i, j) for i in range(16) for j in range(32)]
    assert [int(t) for t in found.thread_table[:, 0]] == [forward(i, j)[0] for i, j in grid]
    assert [int(r) for r in found.register_table] == [forward(i, j)[1] for i, j in grid]


def test_copies_of_elements() -> None:
    layout = T.Fragment(
        (16, 32), forward_thread_fn=lambda i, j, rep: rep * 32 + j, forward_index_fn=lambda i, j: i, replicate=2
    )
    a, b, c = np.arange(512, dtype=np.int32).reshape(16, 32), np.zeros((16, 32), np.int32), np.zeros(16, np.int32)
    plan = run(rows(layout), a, b, c)
    np.testing.assert_array_equal(b, a * 2)
    (found,) = (d for f, d in plan.placement.placement.fragments.items() if str(f.name) == "f")
    assert found.replicas == 2


def odd(shape: tuple[int, int], layout: Any, threads: int) -> Any:
    """Take a tile of an awkward size through a fragment that has a layout, and sum its rows."""
    m, n = shape

    @T.prim_func
    def main(A: T.Tensor((m, n), "int32"), B: T.Tensor((m, n), "int32"), C: T.Tensor((m,), "int32")):
        with T.Kernel(1, threads=threads):
            f, total = T.alloc_fragment((m, n), "int32"), T.alloc_fragment((m,), "int32")
            T.annotate_layout({f: layout})
            T.copy(A, f)
            for i, j in T.Parallel(m, n):
                f[i, j] = f[i, j] * 2 + j
            T.reduce_sum(f, total, dim=1)
            T.copy(f, B)
            T.copy(total, C)

    return main


ODD = {
    "rows of 33 on 32 threads": ((6, 33), lambda i, j: (i % 2 * 32 + j % 32, i // 2 * 2 + j // 32), 1),
    "rows of 5 in steps of 8 threads": ((7, 5), lambda i, j: (i * 8 + j, 0 * i), 1),
    "columns of 7": ((7, 5), lambda i, j: (j * 8 + i, 0 * i), 1),
    "three rows in registers": ((3, 17), lambda i, j: (j, i), 1),
    "copies in the upper threads": ((3, 17), lambda i, j, copy: (copy * 32 + j, i), 2),
    "every thread holds all": ((3, 2), lambda i, j, copy: (copy, i * 2 + j), 64),
    "one column": ((5, 1), lambda i, j: (i + j, j), 1),
}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("name", ODD)
def test_awkward_sizes_copies_and_widths(name: str, width: int) -> None:
    shape, forward, copies = ODD[name]
    layout = T.Fragment(shape, forward, replicate=copies)
    a = np.random.default_rng(2).integers(-99, 99, shape, dtype=np.int32)
    b, c = np.zeros(shape, np.int32), np.zeros(shape[0], np.int32)
    plan = run(odd(shape, layout, 64), a, b, c, width=width)
    np.testing.assert_array_equal(b, a * 2 + np.arange(shape[1]))
    np.testing.assert_array_equal(c, b.sum(1))
    (found,) = (d for f, d in plan.placement.placement.fragments.items() if str(f.name) == "f")
    for at in layout.coordinates():
        for copy in range(copies):
            assert found.apply(*at, replica=copy) == layout.apply(*at, replica=copy)


@pytest.mark.parametrize("shape", [(8, 64), (17, 33), (3, 5)], ids=str)
@pytest.mark.parametrize("form", ON_THREADS)
def test_what_the_fuzzer_draws_is_obeyed_or_refused(form: str, shape: tuple[int, int]) -> None:
    r, c = shape
    text = form.format(r=r, c=c, t=64, q=-(-c // 64), k=4)
    layout = eval(text, {"T": T})
    program = odd(shape, layout, 64)
    wanted = fragment_of(layout, 64)
    if isinstance(wanted, str):
        with pytest.raises(FragmentLayoutUnsupported, match=re.escape(wanted)):
            planned(program)
        return
    plan = planned(program, last="place")
    (found,) = (d for f, d in plan.placement.placement.fragments.items() if str(f.name) == "f")
    assert [found.apply(*at) for at in found.coordinates()] == [layout.apply(*at) for at in layout.coordinates()]


@T.macro
def column_totals(f: Any, A: Any, B: Any, r: int, c: int) -> None:
    n = T.alloc_fragment((c,), "int32")
    T.reduce_sum(f, n, dim=0)
    for i, j in T.Parallel(r, c):
        B[i, j] = n[j]


@T.macro
def running_totals(f: Any, A: Any, B: Any, r: int, c: int) -> None:
    T.cumsum(f, dim=1)
    T.copy(f, B)


@T.macro
def running_totals_back(f: Any, A: Any, B: Any, r: int, c: int) -> None:
    g = T.alloc_fragment((r, c), "int32")
    T.cumsum(f, g, dim=0, reverse=True)
    T.copy(g, B)


@T.macro
def turned(f: Any, A: Any, B: Any, r: int, c: int) -> None:
    g = T.alloc_fragment((c, r), "int32")
    T.transpose(f, g)
    for i, j in T.Parallel(r, c):
        B[i, j] = g[j, i]


@T.macro
def by_hand(f: Any, A: Any, B: Any, r: int, c: int) -> None:
    for i, j in T.Parallel(r, c):
        if j < c - 1:
            f[i, j] = f[i, j] * 3
    for j in T.Parallel(c):
        f[0, j] = 7
    T.copy(f, B)


WITH_NUMPY = {
    column_totals: lambda a: np.broadcast_to(a.sum(0), a.shape),
    running_totals: lambda a: a.cumsum(1),
    running_totals_back: lambda a: a[::-1].cumsum(0)[::-1],
    turned: lambda a: a,
    by_hand: lambda a: np.where(
        np.arange(a.shape[0])[:, None] == 0, 7, np.where(np.arange(a.shape[1]) < a.shape[1] - 1, a * 3, a)
    ),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("shape", [(17, 33), (3, 5)], ids=str)
@pytest.mark.parametrize("form", range(len(ON_THREADS)))
@pytest.mark.parametrize("what", WITH_NUMPY, ids=lambda f: f.__name__)
def test_ops_on_fragments_with_annotated_layouts(what: Any, form: int, shape: tuple[int, int]) -> None:
    r, c = shape
    layout = eval(ON_THREADS[form].format(r=r, c=c, t=64, q=-(-c // 64), k=4), {"T": T})

    @T.prim_func
    def main(A: T.Tensor((r, c), "int32"), B: T.Tensor((r, c), "int32")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((r, c), "int32")
            T.annotate_layout({f: layout})
            T.copy(A, f)
            what(f, A, B, r, c)

    a = np.random.default_rng(4).integers(-99, 99, shape, dtype=np.int32)
    b = np.zeros(shape, np.int32)
    try:
        run(main, a, b)
    except FragmentLayoutUnsupported:
        return
    np.testing.assert_array_equal(b, WITH_NUMPY[what](a))


def test_what_inference_chose_can_be_asked_for() -> None:
    """A layout that the compiler made is one that a user may give: the same code comes out."""

    def program(layout: Any) -> Any:
        @T.prim_func
        def main(A: T.Tensor((17, 40), "int32"), B: T.Tensor((17, 40), "int32")):
            with T.Kernel(1, threads=64):
                f = T.alloc_fragment((17, 40), "int32")
                if layout is not None:
                    T.annotate_layout({f: layout})
                T.copy(A, f)
                for i, j in T.Parallel(17, 40):
                    B[i, j] = f[i, j] + 1

        return main

    chosen = planned(program(None))
    (layout,) = chosen.placement.placement.fragments.values()
    asked = planned(program(layout))
    assert str(asked.body) == str(chosen.body)


@pytest.mark.parametrize("shape", [(16, 16), (24, 40), (17, 33)], ids=str)
def test_an_accumulator_may_be_asked_to_be_where_its_product_has_it(shape: tuple[int, int]) -> None:
    m, n = shape

    def program(layout: Any) -> Any:
        @T.prim_func
        def main(A: T.Tensor((m, 16), "int32"), B: T.Tensor((16, n), "int32"), C: T.Tensor((m, n), "int32")):
            with T.Kernel(1, threads=64):
                a, b = T.alloc_shared((m, 16), "int32"), T.alloc_shared((16, n), "int32")
                c = T.alloc_fragment((m, n), "int32")
                if layout is not None:
                    T.annotate_layout({c: layout})
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C)

        return main

    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, (m, 16), dtype=np.int32), rng.integers(-9, 9, (16, n), dtype=np.int32)
    found = np.zeros((2, m, n), np.int32)
    plan = run(program(None), a, b, found[0])
    (layout,) = (d for f, d in plan.placement.placement.fragments.items() if str(f.name) == "c")
    run(program(T.Fragment(shape, lambda i, j: layout(i, j))), a, b, found[1])
    np.testing.assert_array_equal(found, [a @ b] * 2)


def test_a_layout_of_warps_of_another_width() -> None:
    layout = T.Fragment((4, 16), "(4,16):(1@warp,1@lane)", width=16)
    a = np.arange(64, dtype=np.int32).reshape(4, 16)
    for width in (16, 32, 64):
        b, c = np.zeros((4, 16), np.int32), np.zeros(4, np.int32)
        run(odd((4, 16), layout, 64), a, b, c, width=width)
        np.testing.assert_array_equal(b, a * 2 + np.arange(16))


def test_two_conflicting_layouts_are_refused() -> None:
    """A loop over two fragments cannot run where both are: neither layout is dropped."""

    @T.prim_func
    def main(A: T.Tensor((16, 32), "int32")):
        with T.Kernel(1, threads=64):
            f, g = T.alloc_fragment((16, 32), "int32"), T.alloc_fragment((16, 32), "int32")
            T.annotate_layout({f: T.Fragment((16, 32), LAYOUTS["columns"])})
            T.annotate_layout({g: T.Fragment((16, 32), LAYOUTS["every other column"])})
            T.copy(A, f)
            for i, j in T.Parallel(16, 32):
                g[i, j] = f[i, j]
            T.copy(g, A)

    with pytest.raises(FragmentLayoutUnsupported):
        planned(main)


@pytest.mark.parametrize(
    ("forward", "threads", "reason"),
    [
        (lambda i, j: (i * 4 + j // 8, j % 8), 32, "the layout needs 64 threads; the block has 32"),
        (lambda i, j: (i * 4 + j // 8, (j % 8) * 2), 64, "gaps between its threads or registers"),
        (lambda i, j: (j, 3 * i + 1), 32, "its first element lies in register 1, not in 0"),
        (lambda i, j: ((i * 4 + j // 8) ^ (i // 2), j % 8), 64, "not a sum of terms of one index each"),
    ],
)
def test_what_threads_cannot_hold_is_refused(forward: Any, threads: int, reason: str) -> None:
    with pytest.raises(FragmentLayoutUnsupported, match=reason):
        planned(rows(T.Fragment((16, 32), forward), threads))


def test_what_an_op_does_not_take_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "int32"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=64):
            a, c = T.alloc_shared((16, 16), "int32"), T.alloc_fragment((16, 16), "int32")
            T.annotate_layout({c: T.Fragment((16, 16), lambda i, j: (j * 4 + i % 4, i // 4))})
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c)
            T.copy(c, C)

    with pytest.raises(FragmentLayoutUnsupported, match=r"the layout of c cannot be kept .* needs .*, but it is"):
        planned(main)


def staged(layout: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "int32"), B: T.Tensor((64, 32), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16, 32), "int32")
            T.annotate_layout({s: layout})
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 32):
                    B[k * 16 + i, j] = s[i, j] + 1

    return main


def test_slots_of_a_pipeline_have_the_layout() -> None:
    layout = make_swizzled_layout((16, 32), element_bits=32)
    plan = planned(staged(layout), last="layouts")
    layouts = plan.placement.placement.layouts
    (found,) = layouts.values()
    slots = found.shape[0]
    assert slots >= 2
    assert found == StackedLayout(layout, slots)


def test_stacked() -> None:
    inner = make_swizzled_layout((8, 32), element_bits=32)
    layout = StackedLayout(inner, 3)
    assert (layout.shape, layout.span) == ((3, 8, 32), 3 * inner.span)
    for at in ((0, 3, 5), (1, 7, 31), (2, 1, 9)):
        want = at[0] * inner.span + inner.apply(*at[1:])["memory"]
        flat = (at[0] * 8 + at[1]) * 32 + at[2]
        assert layout.apply(*at)["memory"] == layout.at(flat)["memory"] == layout.tables()["memory"][flat] == want
    assert layout == StackedLayout(inner, 3)
    assert layout != StackedLayout(inner, 2)
    assert hash(layout) == hash(StackedLayout(inner, 3))
    assert repr(layout).startswith("3 x ")


def test_a_target_without_threads_says_that_it_has_no_use_for_a_layout() -> None:
    program = rows(T.Fragment((16, 32), LAYOUTS["columns"]))
    assert explain_facts(program, "cpu").notes == ("the layout of f has no effect here",)
    assert "note: the layout of f has no effect here" in explain(program, "cpu")
