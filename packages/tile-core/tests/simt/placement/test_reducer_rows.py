"""Reducers with rows per group of threads: the condition, correct results, and no barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import ir
from tile_core.ir import nodes
from tile_core.ir.visit import collect

from ..whole import planned, run


def product(rows: int, columns: int, trips: int, threads: int, start: float = 0.0, op: str = "sum") -> Any:
    """Return a matrix times a vector; each block takes all rows, ``turns`` times ``columns`` columns."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, columns * trips), "float32"),
        X: T.Tensor((columns * trips,), "float32"),
        B: T.Tensor((rows,), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            x = T.alloc_fragment((columns,), "float32")
            total = T.alloc_reducer((rows,), "float32", op)
            if start != 0.0:
                T.fill(total, start)
            for k in T.serial(trips):
                T.copy(X[k * columns], x)
                for i, j in T.Parallel(rows, columns):
                    if op == "sum":
                        total[i] += x[j] * A[i, k * columns + j]
                    else:
                        total[i] = T.max(total[i], x[j] * A[i, k * columns + j])
            T.finalize_reducer(total)
            T.copy(total, B)

    return kernel


EVEN = [(8, 128, 2, 64), (4, 64, 1, 32), (4, 32, 3, 128), (16, 256, 1, 256), (2, 512, 2, 64)]
ODD = [(6, 128, 1, 128), (3, 64, 2, 64), (8, 100, 2, 64), (8, 128, 1, 48), (1, 256, 1, 64), (4, 16, 1, 64)]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("op", "start"), [("sum", 0.0), ("sum", 3.0), ("max", 5.0)])
@pytest.mark.parametrize("shape", [*EVEN, *ODD])
def test_results(shape: tuple[int, int, int, int], op: str, start: float) -> None:
    rows, columns, trips, _ = shape
    rng = np.random.default_rng(sum(shape))
    a = rng.integers(-3, 4, (rows, columns * trips)).astype(np.float32)
    x = rng.integers(-3, 4, columns * trips).astype(np.float32)
    b = np.full(rows, np.nan, np.float32)
    run(product(*shape, start, op), a, x, b)
    want = a @ x + start if op == "sum" else np.maximum((a * x).max(1), start)
    np.testing.assert_array_equal(b, want)


@pytest.mark.parametrize("shape", EVEN)
def test_even_rows_belong_to_groups_and_nobody_waits(shape: tuple[int, int, int, int]) -> None:
    rows, _, _, threads = shape
    plan = planned(product(*shape), last="barriers")
    (layout,) = (f for b, f in plan.placement.placement.fragments.items() if str(b.name) == "total")
    assert (layout.registers, layout.replicas) == (rows * 32 // threads, 32)
    assert not plan.barriers
    assert not [c for c in collect(plan.body, ir.Call) if nodes.is_tile_call(c, "sync_threads")]


@pytest.mark.parametrize("shape", ODD)
def test_others_have_copies_in_every_thread(shape: tuple[int, int, int, int]) -> None:
    plan = planned(product(*shape))
    (layout,) = (f for b, f in plan.placement.placement.fragments.items() if str(b.name) == "total")
    assert (layout.registers, layout.replicas) == (shape[0], shape[3])


def test_a_loop_that_needs_other_rows_has_copies_everywhere() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 64), "float32"), B: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64) as _:
            b = T.alloc_fragment((64, 8), "float32")
            total = T.alloc_reducer((8,), "float32", "sum")
            for i, j in T.Parallel(8, 64):
                total[i] += A[i, j]
            T.finalize_reducer(total)
            for j, i in T.Parallel(64, 8):
                b[j, i] = total[7 - i] + total[i]
            T.copy(b, B)

    a = np.random.default_rng(0).integers(-9, 9, (8, 64)).astype(np.float32)
    b = np.full((64, 8), np.nan, np.float32)
    run(kernel, a, b)
    total = a.sum(1)
    np.testing.assert_array_equal(b, np.broadcast_to(total[::-1] + total, (64, 8)))


def test_a_reducer_in_shared_memory_is_updated_by_one_thread_beside_one_by_rows() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 96), "float32"), B: T.Tensor((4,), "float32"), C: T.Tensor((96,), "float32")):
        with T.Kernel(1, threads=128) as _:
            total = T.alloc_reducer((4,), "float32", "sum")
            low = T.alloc_reducer((96,), "float32", "min")
            for i, j in T.Parallel(4, 96):
                total[i] += A[i, j]
                low[j] = T.min(low[j], A[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(low)
            T.copy(total, B)
            T.copy(low, C)

    a = np.random.default_rng(1).integers(-9, 9, (4, 96)).astype(np.float32)
    b, c = np.full(4, np.nan, np.float32), np.full(96, np.nan, np.float32)
    run(kernel, a, b, c)
    np.testing.assert_array_equal(b, a.sum(1))
    np.testing.assert_array_equal(c, a.min(0))
