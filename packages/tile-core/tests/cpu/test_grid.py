"""The grid of a launch: every block runs once, in parallel where that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


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
