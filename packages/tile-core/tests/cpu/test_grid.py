"""The grid of a launch: every block runs once, in parallel where that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

pytestmark = pytest.mark.sweep(2)


def _coordinates(x: int, y: int, z: int) -> Any:
    @T.prim_func
    def main(Out: T.Tensor((z, y, x), "int32")):
        with T.Kernel(x, y, z, threads=32) as (bx, by, bz):
            Out[bz, by, bx] = bx + 100 * by + 10000 * bz

    return main


def _fill(blocks: int, width: int, atomic: bool = False) -> Any:
    @T.prim_func
    def main(Out: T.Tensor((blocks, width), "int32"), Count: T.Tensor((1,), "int32")):
        with T.Kernel(blocks, threads=32) as bx:
            for i in T.Parallel(width):
                Out[bx, i] = bx
            if atomic:
                T.atomic_add(Count[0], 1)

    return main


def _dynamic(block: int) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def main(Out: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                Out[bx * block + i] = bx * block + i

    return main


def _parallel(program: Any, **options: Any) -> bool:
    return "T.parallel(" in tile.compile(program, target="cpu", options=options or None).source


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 4, 1), (5, 3, 2), (40, 30, 20)])
def test_every_block_runs_with_its_coordinates(shape: tuple[int, int, int]) -> None:
    x, y, z = shape
    out = np.full((z, y, x), -1, "int32")
    tile.compile(_coordinates(*shape), target="cpu")(out)
    bz, by, bx = np.indices((z, y, x))
    np.testing.assert_array_equal(out, bx + 100 * by + 10000 * bz)


def test_little_work_stays_in_the_calling_thread() -> None:
    assert not _parallel(_fill(1, 2**20))
    assert not _parallel(_fill(4, 256))
    assert _parallel(_fill(4, 4096))
    assert not _parallel(_fill(4, 4096), parallel=False)


def test_work_of_unknown_size_is_shared() -> None:
    assert _parallel(_dynamic(64))


def test_atomic_updates_run_in_order() -> None:
    assert not _parallel(_fill(64, 4096, atomic=True))
    out, count = np.full((64, 4096), -1, "int32"), np.zeros(1, "int32")
    tile.compile(_fill(64, 4096, atomic=True), target="cpu")(out, count)
    assert count[0] == 64
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(64)[:, None], out.shape))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 5000])
def test_a_grid_of_runtime_size(n: int) -> None:
    out = np.full(n, -1, "int32")
    tile.compile(_dynamic(64), target="cpu")(out)
    np.testing.assert_array_equal(out, np.arange(n))


def _by_scalars(dtype: str) -> Any:
    @T.prim_func
    def main(Out: T.Tensor((4, 3, 5), "int32"), x: getattr(T, dtype), z: getattr(T, dtype)):
        with T.Kernel(x, 3, z, threads=32) as (bx, by, bz):
            Out[bz, by, bx] = Out[bz, by, bx] + 1

    return main


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_grids_of_run_time_and_constant_extents(dtype: str) -> None:
    kernel = tile.compile(_by_scalars(dtype), target="cpu")
    least = int(np.iinfo(dtype).min)
    for x, z in ((5, 4), (2, 3), (0, 4), (5, 0), (-1, 2), (-3, -2), (least, 1), (9, 9)):
        out, expected = np.zeros((4, 3, 5), "int32"), np.zeros((4, 3, 5), "int32")
        kernel(out, x, z)
        expected[: max(z, 0), :, : max(x, 0)] = 1
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("m", [0, 1, 16, 37])
def test_product_with_a_symbolic_number_of_rows(m: int) -> None:
    rows, block = T.dynamic("m"), 16

    @T.prim_func
    def main(A: T.Tensor((rows, 48), "float32"), B: T.Tensor((48, 40), "float32"), C: T.Tensor((rows, 40), "float32")):
        with T.Kernel(T.ceildiv(40, 8), T.ceildiv(rows, block), threads=32) as (bx, by):
            a, b = T.alloc_shared((block, 16), "float32"), T.alloc_shared((16, 8), "float32")
            c = T.alloc_fragment((block, 8), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * block, k * 16], a)
                T.copy(B[k * 16, bx * 8], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * 8])

    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, 48), "float32"), rng.standard_normal((48, 40), "float32")
    out = np.full((m, 40), np.nan, "float32")
    tile.compile(main, target="cpu")(a, b, out)
    np.testing.assert_allclose(out, a.astype("float64") @ b, rtol=1e-4, atol=1e-4)


def test_grid_of_nothing_whose_blocks_compute_with_their_numbers() -> None:
    @T.prim_func
    def main(Out: T.Tensor((8,), "int32")):
        with T.Kernel(0, 3, threads=32) as (bx, by):
            Out[bx % 8] = by // 2

    out = np.full(8, 7, "int32")
    tile.compile(main, target="cpu")(out)
    assert (out == 7).all()


def test_atomic_updates_of_a_tensor_of_rank_zero() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), Sum: T.Tensor((), "float32"), Last: T.Tensor((), "float32")):
        with T.Kernel(4, threads=32) as bx:
            for i in T.Parallel(16):
                T.atomic_add(Sum[()], A[bx * 16 + i])
            for _ in T.serial(2):
                Last[()] = A[63]

    total, last = np.zeros((), "float32"), np.zeros((), "float32")
    tile.compile(main, target="cpu")(np.arange(64, dtype="float32"), total, last)
    assert (total, last) == (2016, 63)


def test_kernels_without_tensors_run() -> None:
    @T.prim_func
    def of_a_scalar(n: T.int32):
        with T.Kernel(n, threads=32) as bx:
            seen = T.alloc_var("int32")
            seen = bx  # noqa: F841

    @T.prim_func
    def of_nothing():
        with T.Kernel(4, threads=32) as bx:
            seen = T.alloc_var("int32")
            seen = bx  # noqa: F841

    tile.compile(of_a_scalar, target="cpu")(5)
    tile.compile(of_nothing, target="cpu")()


@pytest.mark.parametrize("width", [1, 63, 64, 65, 127, 128, 200, 257])
def test_rows_of_every_width_are_copied_whole(width: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((9, width), "float32"), B: T.Tensor((9, width + 2), "float32")):
        with T.Kernel(3, threads=32) as bx:
            rows = T.alloc_shared((4, width), "float32")
            T.copy(A[bx * 4, 0], rows)
            for i, j in T.Parallel(4, width):
                rows[i, j] = rows[i, j] + 1
            T.copy(rows, B[bx * 4, 1])

    kernel = tile.compile(main, target="cpu")
    a = np.random.default_rng(width).standard_normal((9, width)).astype("float32")
    b = np.full((9, width + 2), 7, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b[:, 1:-1], a + 1)
    assert (b[:, [0, -1]] == 7).all()
