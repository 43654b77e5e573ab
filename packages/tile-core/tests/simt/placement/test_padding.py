"""Iterations that a nest has only because its extents do not come out even must write nothing that is not padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T

from ..whole import run

SHAPES = [(4, 96, 128), (5, 130, 64), (1, 7, 32), (3, 5, 128), (7, 33, 31), (2, 129, 96), (17, 20, 1)]


def reducers(rows: int, columns: int, threads: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((3, rows), "int32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((rows, columns), "int32")
            total = T.alloc_reducer((rows,), "int32", op="sum")
            top = T.alloc_reducer((rows,), "int32", op="max")
            low = T.alloc_reducer((rows,), "int32", op="min")
            T.copy(A, a)
            for i, j in T.Parallel(rows, columns):
                total[i] += a[i, j]
                top[i] = T.max(top[i], a[i, j])
                low[i] = T.min(low[i], a[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(top)
            T.finalize_reducer(low)
            T.copy(total, B[0, :])
            T.copy(top, B[1, :])
            T.copy(low, B[2, :])

    return main


@pytest.mark.parametrize(("rows", "columns", "threads"), SHAPES)
def test_reducers_over_fragments(rows: int, columns: int, threads: int) -> None:
    rng = np.random.default_rng(columns)
    a, b = rng.integers(-99, 99, (rows, columns), dtype=np.int32), np.full((3, rows), 77, np.int32)
    run(reducers(rows, columns, threads), a, b)
    np.testing.assert_array_equal(b, [a.sum(1), a.max(1), a.min(1)])


def columns_first(rows: int, columns: int, threads: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((columns,), "int32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((rows, columns), "int32")
            total = T.alloc_reducer((columns,), "int32", op="sum")
            T.copy(A, a)
            for i, j in T.Parallel(rows, columns):
                total[j] += a[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    return main


@pytest.mark.parametrize(("rows", "columns", "threads"), [(96, 4, 128), (33, 7, 31), (129, 2, 96), (5, 3, 128)])
def test_reducers_that_leave_out_the_outer_variable(rows: int, columns: int, threads: int) -> None:
    a, b = np.random.default_rng(1).integers(-99, 99, (rows, columns), dtype=np.int32), np.zeros(columns, np.int32)
    run(columns_first(rows, columns, threads), a, b)
    np.testing.assert_array_equal(b, a.sum(0))


@pytest.mark.parametrize("threads", [32, 96, 128])
def test_reducers_over_products(threads: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((9, 5), "int32"), B: T.Tensor((5, 21), "int32"), C: T.Tensor((2, 9), "int32")):
        with T.Kernel(1, threads=threads):
            a, b = T.alloc_shared((9, 5), "int32"), T.alloc_shared((5, 21), "int32")
            c = T.alloc_fragment((9, 21), "int32")
            total = T.alloc_reducer((9,), "int32", op="sum")
            low = T.alloc_reducer((9,), "int32", op="min")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            for i, j in T.Parallel(9, 21):
                c[i, j] = c[i, j] + 1
                total[i] += c[i, j]
                low[i] = T.min(low[i], c[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(low)
            T.copy(total, C[0, :])
            T.copy(low, C[1, :])

    rng = np.random.default_rng(threads)
    a, b = rng.integers(1, 9, (9, 5), dtype=np.int32), rng.integers(1, 9, (5, 21), dtype=np.int32)
    c = np.zeros((2, 9), np.int32)
    run(main, a, b, c)
    np.testing.assert_array_equal(c, [(a @ b + 1).sum(1), (a @ b + 1).min(1)])
