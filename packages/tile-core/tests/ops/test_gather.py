"""``T.gather`` and ``T.scatter``: constant and runtime rows, rows that do not exist, duplicates, any width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import DuplicateRows, RowsOperand, RuntimeExtent, ShapesDiffer

pytestmark = pytest.mark.sweep(5)


def rows_with_outsiders(seed: int, count: int, height: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, height, count)
    outside = [height, height + 5] if dtype.startswith("u") else [-1, height, -height, 2**30]
    rows[rng.random(count) < 0.3] = rng.choice(outside)
    return rows.astype(dtype)


def taken(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    inside = (rows >= 0) & (rows < len(table))
    out = table[np.where(inside, rows, 0).astype(int)]
    out[~inside] = 0
    return out


def test_gather_of_columns_by_tiles_with_rows_in_shared_memory() -> None:
    height, width, count, bc = 50, 70, 24, 32

    @T.prim_func
    def gather(
        A: T.Tensor((height, width), "float16"), R: T.Tensor((count,), "int32"), B: T.Tensor((count, width), "float16")
    ):
        with T.Kernel(T.ceildiv(width, bc), T.ceildiv(count, 8), threads=64) as (bx, by):
            rows = T.alloc_shared((8,), "int32")
            s = T.alloc_shared((8, bc), "float16")
            T.copy(R[by * 8], rows)
            T.gather(A[0, bx * bc], rows, s)
            T.copy(s, B[by * 8, bx * bc])

    a = np.random.default_rng(2).random((height, width)).astype(np.float16)
    rows = rows_with_outsiders(3, count, height, "int32")
    b = np.full((count, width), np.nan, np.float16)
    tile.compile(gather, target="cpu")(a, rows, b)
    assert np.array_equal(b, taken(a, rows))


def test_constant_rows() -> None:
    """Peer bug #2601: a constant row index."""

    @T.prim_func
    def gather(A: T.Tensor((10, 6), "float32"), B: T.Tensor((4, 6), "float32")):
        with T.Kernel(1, threads=32):
            T.gather(A, [3, 0, -1, 9], B)

    a = np.random.default_rng(4).random((10, 6), dtype=np.float32)
    b = np.full((4, 6), np.nan, np.float32)
    tile.compile(gather, target="cpu")(a, b)
    assert np.array_equal(b, taken(a, np.array([3, 0, -1, 9])))


def test_scatter_drops_rows_that_do_not_exist_and_lets_the_last_one_win() -> None:
    @T.prim_func
    def scatter(A: T.Tensor((6, 5), "float32"), R: T.Tensor((6,), "int32"), B: T.Tensor((8, 5), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((6, 5), "float32")
            T.copy(A, s)
            T.scatter(s, B, R)

    a = np.random.default_rng(5).random((6, 5), dtype=np.float32)
    rows = np.array([7, 2, -3, 2, 8, 0], np.int32)
    b = np.full((8, 5), -1, np.float32)
    tile.compile(scatter, target="cpu")(a, rows, b)
    want = np.full((8, 5), -1, np.float32)
    for i, r in enumerate(rows):
        if 0 <= r < 8:
            want[r] = a[i]
    assert np.array_equal(b, want)


def test_rows_of_higher_rank() -> None:
    @T.prim_func
    def gather(A: T.Tensor((9, 3, 4), "float32"), R: T.Tensor((5,), "int32"), B: T.Tensor((5, 3, 4), "float32")):
        with T.Kernel(1, threads=32):
            T.gather(A, R, B)

    a = np.random.default_rng(6).random((9, 3, 4), dtype=np.float32)
    rows = np.array([8, 0, 3, 3, 12], np.int32)
    b = np.full((5, 3, 4), np.nan, np.float32)
    tile.compile(gather, target="cpu")(a, rows, b)
    assert np.array_equal(b, taken(a, rows))


def test_equal_constant_rows_of_a_scatter_are_refused() -> None:
    with pytest.raises(DuplicateRows) as refused:

        @T.prim_func
        def wrong(A: T.Tensor((3, 4), "float32"), B: T.Tensor((8, 4), "float32")):
            with T.Kernel(1, threads=32):
                T.scatter(A, B, [1, 5, 1])  # here

    assert refused.value.code == "K220"
    assert "row 1 occurs twice" in str(refused.value)
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")


@pytest.mark.parametrize("rows", ["float", "matrix", "scalar", "bools", "empty"])
def test_rows_that_are_no_vector_of_integers_are_refused(rows: str) -> None:
    with pytest.raises(RowsOperand) as refused:

        @T.prim_func
        def wrong(A: T.Tensor((8, 4), "float32"), R: T.Tensor((3,), "float32"), M: T.Tensor((3, 2), "int32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((3, 4), "float32")
                chosen: Any = {"float": R, "matrix": M, "scalar": M[0, 0], "bools": [True, False, True], "empty": []}[
                    rows
                ]
                T.gather(A, chosen, s)

    assert refused.value.code == "K221"


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapesDiffer):

        @T.prim_func
        def wrong(A: T.Tensor((8, 4), "float32"), R: T.Tensor((3,), "int32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((4, 4), "float32")
                T.gather(A, R, s)


@pytest.mark.parametrize("op", ["gather", "scatter"])
def test_tables_may_have_symbolic_rows_but_not_columns(op: str) -> None:
    n = T.dynamic("n", "int64")

    def traced(columns: Any, part: slice) -> None:
        m = T.dynamic("m")

        @T.prim_func
        def main(A: T.Tensor((m, columns), "float32"), R: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((4, 24), "float32")
                if op == "gather":
                    T.gather(A[:, part], R, s)
                else:
                    T.scatter(s, A[:, part], R)

    traced(24, slice(None))
    traced(n, slice(0, 24))
    with pytest.raises(RuntimeExtent, match=r"\[K202\].* dimension 1 of .* has the runtime extent n"):
        traced(n, slice(None))
