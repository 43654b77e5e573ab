"""``T.wait_wgmma``: products in flight until an explicit wait, and illegal accesses before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import OutsideKernel
from tile_core.errors.lowering import NoVariant, VariantMissing
from tile_core.errors.ops import BadAttribute, NotWaitedFor, ScopeNotAllowed

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_90a"


def two_products(between="", first=1, last=0, same=False, trips=3):
    """Two products in a loop; ``between`` holds statements before the waits."""

    @T.prim_func
    def main(A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32"),
             D: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l, D_l = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.fill(C_l, 1)
            T.clear(D_l)
            for t in T.serial(trips):
                T.copy(A[0, t * 32], A_s)
                T.copy(B[t * 32, 0], B_s)
                T.wgmma_gemm(A_s, B_s, C_l)
                if between == "read":
                    D_l[0, 0] = C_l[0, 0]
                T.wgmma_gemm(A_s, B_s, C_l if same else D_l)
                if between == "accumulator":
                    for i, j in T.Parallel(64, 64):
                        C_l[i, j] = C_l[i, j] + 1
                if between == "operand":
                    T.fill(A_s, 0)
                if first is not None:
                    T.wait_wgmma(first)
                if between == "after":
                    for i, j in T.Parallel(64, 64):
                        C_l[i, j] = C_l[i, j] + 1
                if last is not None:
                    T.wait_wgmma(last)
            T.copy(C_l, C)
            T.copy(D_l, D)

    return main


def run(program, c_of, d_of, **how):
    kernel = tile.compile(program, TARGET, runtime="emulator", **how)
    rng = np.random.default_rng()
    a, b = rng.integers(-3, 4, (64, 96)).astype("float16"), rng.integers(-3, 4, (96, 64)).astype("float16")
    c, d = np.full((64, 64), 7, "float32"), np.full((64, 64), 7, "float32")
    kernel(a, b, c, d)
    product = a.astype(float) @ b.astype(float)
    assert np.array_equal(c, c_of(product))
    assert np.array_equal(d, d_of(product))
    assert "(C7" not in assemble(kernel.source, "sm_90a")
    inside = kernel.source[kernel.source.index("for (int t") :]
    names = ("wgmma_m64", "wgmma_commit", "wgmma_wait", "C_l[r")
    lines = [next((n for n in names if n in line), "") for line in inside.splitlines()]
    waits = [line.strip()[-4:-3] for line in inside.splitlines() if "wgmma_wait" in line]
    order = [x for x in lines if x]
    return [x for i, x in enumerate(order) if i == 0 or x != order[i - 1]], waits


BOTH = ["wgmma_m64", "wgmma_commit", "wgmma_m64", "wgmma_commit"]


def test_two_products_in_flight_at_once():
    order, waits = run(two_products(first=None), lambda p: p + 1, lambda p: p)
    assert order[:5] == [*BOTH, "wgmma_wait"]
    assert waits == ["0", "0"]  # one for each accumulator


def test_a_wait_for_all_but_one_ends_the_earlier_product():
    order, waits = run(two_products("after"), lambda p: p + 4, lambda p: p)
    assert order[:7] == [*BOTH, "wgmma_wait", "C_l[r", "wgmma_wait"]
    assert waits == ["1", "0"]


def test_products_in_flight_may_share_an_accumulator():
    order, waits = run(two_products(same=True, first=None), lambda p: 2 * p + 1, lambda p: 0 * p)
    assert order[:5] == [*BOTH, "wgmma_wait"]
    assert waits == ["0"]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("first", "last"), [(None, None), (2, 2), (None, 3)])
def test_without_a_wait_that_ends_it_a_product_is_waited_for_where_it_stands(first, last):
    order, waits = run(two_products(first=first, last=last), lambda p: p + 1, lambda p: p)
    assert order[:3] == ["wgmma_m64", "wgmma_commit", "wgmma_wait"]
    assert waits == ["0", "0"]


@pytest.mark.parametrize(("between", "buffer"), [("read", "C_l"), ("accumulator", "C_l"), ("operand", "A_s")])
def test_operands_in_flight_may_not_be_touched_before_the_wait(between, buffer):
    program = two_products(between, first=0, last=None)
    with pytest.raises(NotWaitedFor) as caught:
        tile.compile(program, TARGET, runtime="emulator")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    product = lines.index("                T.wgmma_gemm(A_s, B_s, C_l)") + 1
    said = str(caught.value)
    assert "[K229]" in said
    assert f"{buffer} is" in said
    assert any(f"of line {product + n} " in said for n in (0, 3))


def test_in_a_pipelined_loop():
    @T.prim_func
    def main(A: T.Tensor((64, 160), "float16"), B: T.Tensor((160, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for t in T.Pipelined(5, num_stages=3):
                T.copy(A[0, t * 32], A_s)
                T.copy(B[t * 32, 0], B_s)
                T.wgmma_gemm(A_s, B_s, C_l)
                T.wait_wgmma(0)
            T.copy(C_l, C)

    kernel = tile.compile(main, TARGET, runtime="emulator")
    rng, out = np.random.default_rng(), np.full((64, 64), 7, "float32")
    a, b = rng.integers(-3, 4, (64, 160)).astype("float16"), rng.integers(-3, 4, (160, 64)).astype("float16")
    kernel(a, b, out)
    assert np.array_equal(out, a.astype(float) @ b.astype(float))
    assert "wgmma_wait_group_sync_aligned_1();" in kernel.source  # the schedule of the loop waits


@pytest.mark.parametrize("target", ["cuda:sm_80", "cpu"])
def test_other_targets_wait_for_nothing(target):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            T.wait_wgmma()
            T.copy(S, B)

    kernel = tile.compile(main, target, runtime="emulator" if target != "cpu" else None)
    a, b = np.arange(64, dtype="float32"), np.full(64, -1, "float32")
    kernel(a, b)
    assert np.array_equal(a, b)
    with pytest.raises((VariantMissing, NoVariant)):
        tile.compile(two_products(), target, runtime="emulator" if target != "cpu" else None)


@pytest.mark.parametrize("num", [-1, 8, "0", 1.5])
def test_numbers_that_are_none(num):
    with pytest.raises(BadAttribute) as caught:

        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.wait_wgmma(num)

    assert "num" in str(caught.value)


def by_steps(wait, touched=False):
    """A product whose steps the program spells out."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.warpgroup_fence_operand(A_s if touched else C_l)
            T.warpgroup_arrive()
            T.wgmma_gemm(A_s, B_s, C_l)
            T.warpgroup_commit_batch()
            wait(0)
            T.warpgroup_fence_operand(C_l)
            T.copy(C_l, C)

    return main


def test_steps_of_products_have_names():
    texts = [tile.compile(by_steps(wait), TARGET).source for wait in (T.wait_wgmma, T.warpgroup_wait)]
    assert texts[0] == texts[1]
    assert texts[0].count("wgmma_commit_group_sync_aligned();") == 1
    with pytest.raises(ScopeNotAllowed, match="warpgroup_fence_operand"):
        by_steps(T.wait_wgmma, touched=True)


@pytest.mark.parametrize("name", ["warpgroup_arrive", "warpgroup_commit_batch", "warpgroup_wait"])
def test_steps_stand_in_kernels(name):
    with pytest.raises(OutsideKernel):
        getattr(T, name)()
