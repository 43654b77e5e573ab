"""Explicit barriers: results, barriers saved, and supported targets."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .programs import TARGET, Shape, at, operands, product


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"wgmma": "always"}, {"tma": "always", "wgmma": "always"}])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.sweep(6)
def test_the_product_is_right(stages, trips, options, dynamic):
    shape = Shape(stages, trips, dynamic)
    a, b, c, want = operands(shape, stages)
    tile.compile(product(shape), TARGET, runtime="emulator", options=options)(a, b, c, trips)
    np.testing.assert_array_equal(c, want)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_meaning_is_that_of_the_statements(dynamic):
    shape = Shape(2, 5, dynamic)
    a, b, c, want = operands(shape, 7)
    tile.compile(product(shape), "cpu")(a, b, c, 5)
    np.testing.assert_array_equal(c, want)
    kernel = tile.compile(product(shape), TARGET, runtime="emulator")
    kernel.verify(a, b, np.zeros_like(c), 5)


@pytest.mark.parametrize("stages", [1, 3])
def test_the_loop_has_no_barrier_of_the_block(stages):
    text = at(tile.compile(product(Shape(stages, 5, True)), TARGET, runtime="emulator").source)
    loop = text[text.index("for (int k") : text.rindex("mbarrier_arrive")]
    assert loop.count("mbarrier_wait_parity(") == 2
    assert "__syncthreads" not in loop
    assert "bar_sync" not in loop


def test_the_report_lists_the_order_of_barriers():
    kernel = tile.compile(product(Shape(2, 5)), TARGET, runtime="emulator")
    text = str(kernel.explain())
    assert "shared memory without inserted barriers" in text
    rows = text[text.index("shared memory without inserted barriers") :].splitlines()[:6]
    assert any("As" in row and "explicit barriers of the program" in row for row in rows)
    assert any("Bs" in row for row in rows)


def test_writes_are_fenced_before_products_that_read_by_themselves():
    shape = Shape(2, 5)
    plain = at(tile.compile(product(shape), TARGET, runtime="emulator").source)
    alone = at(tile.compile(product(shape), TARGET, runtime="emulator", options={"wgmma": "always"}).source)
    loop = alone[alone.index("for (int k") :]
    assert "fence_proxy_async" not in plain
    assert loop.index("fence_proxy_async") < loop.index("mbarrier_arrive")
    assert loop.count("fence_proxy_async_shared_cta();\n      mbarrier_arrive") == 1, "the role that reads needs none"


def one_phase(arrives=True):
    """Threads that name themselves exchange rows through shared memory."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            full = T.alloc_barrier(64)
            s[t] = A[t]
            if arrives:
                T.mbarrier_arrive(full)
                T.mbarrier_wait_parity(full, 0)
            B[t] = s[63 - t]

    return main


@pytest.mark.parametrize("target", [TARGET, "cpu"])
def test_threads_that_name_themselves(target):
    a = np.arange(64, dtype="float32")
    b = np.full_like(a, np.nan)
    kernel = tile.compile(one_phase(), target, **({"runtime": "emulator"} if target != "cpu" else {}))
    kernel(a, b)
    np.testing.assert_array_equal(b, a[::-1])


def test_a_barrier_of_the_block_is_left_out_where_the_program_has_its_own():
    with_own = at(tile.compile(one_phase(), TARGET, runtime="emulator").source)
    assert with_own[with_own.index("mbarrier_arrive") : with_own.index("B[")].count("__syncthreads") == 0
    without = at(tile.compile(one_phase(False), TARGET, runtime="emulator").source)
    assert "__syncthreads" in without


def unordered():
    """Rewrite a tile in a role without waiting for its readers: block barriers order it."""

    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            full = T.alloc_barrier(32)
            for k in range(4):
                with T.ws(0, size=32):
                    T.copy(A[k, 0:64], s)
                    T.barrier_arrive(full)
                with T.ws(1, size=32):
                    T.barrier_wait(full, k % 2)
                    for i in T.Parallel(64):
                        B[k, i] = s[63 - i]

    return main


def test_phases_that_may_be_overtaken_are_refused():
    with pytest.raises(TileError) as caught:
        tile.compile(unordered(), TARGET, runtime="emulator")
    assert caught.value.code == "K233"
    assert "the barrier full" in str(caught.value)


def test_unordered_accesses_get_block_barriers():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            r = T.alloc_shared((64,), "float32")
            full, empty = T.alloc_barrier(32), T.alloc_barrier(32)
            for k in range(4):
                with T.ws(0, size=32):
                    T.barrier_wait(empty, (k + 1) % 2)
                    T.copy(A[k, 0:64], s)
                    T.barrier_arrive(full)
                    T.copy(A[k, 0:64], r)
                with T.ws(1, size=32):
                    T.barrier_wait(full, k % 2)
                    for i in T.Parallel(64):
                        B[k, i] = s[63 - i] + r[i]
                    T.barrier_arrive(empty)

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert "__syncthreads" in at(kernel.source)
    a = np.random.default_rng(2).integers(-9, 10, (4, 64)).astype("float32")
    b = np.full_like(a, np.nan)
    kernel(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1] + a)


def test_roles_that_allocate_run_side_by_side():
    """A tile allocated between two roles shares no bytes with those of the other role."""

    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            with T.ws(0, size=32):
                T.copy(A[0, 0:64], s)
                for i in T.Parallel(64):
                    B[0, i] = s[63 - i]
            r = T.alloc_shared((64,), "float32")
            with T.ws(1, size=32):
                T.copy(A[1, 0:64], r)
                for i in T.Parallel(64):
                    B[1, i] = r[63 - i]

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert "__syncthreads" not in at(kernel.source)
    a = np.random.default_rng(3).integers(-9, 10, (2, 64)).astype("float32")
    b = np.full_like(a, np.nan)
    kernel(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_89"])
def test_targets_without_phases_refuse_them(target):
    with pytest.raises(TileError) as caught:
        tile.compile(one_phase(), target, runtime="emulator")
    assert caught.value.code == "U118"
    assert "T.alloc_barrier(64)" in str(caught.value)


def test_fences_may_be_written_too():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            T.fence_barrier_init()
            T.fence_proxy_async()
            T.copy(s, B)

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert "fence_proxy_async();" in at(kernel.source)
    assert "fence_mbarrier_init_release_cluster();" in at(kernel.source)
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(a, b)
    tile.compile(main, "cpu")(a, np.zeros(64, "float32"))


def test_a_role_with_async_products_has_a_fence_after_block_writes():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64, 32), "float16")
            r = T.alloc_shared((32, 64), "float16")
            f = T.alloc_fragment((64, 64), "float32")
            T.copy(A, s)
            T.copy(B, r)
            with T.ws(1):
                T.clear(f)
                T.wgmma_gemm(s, r, f)
                T.copy(f, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options={"tma": "never"})
    assert "fence_proxy_async_shared_cta();\n  __syncthreads();" in at(kernel.source)
    rng = np.random.default_rng(8)
    a, b = rng.integers(-3, 4, (64, 32)).astype("float16"), rng.integers(-3, 4, (32, 64)).astype("float16")
    c = np.full((64, 64), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
