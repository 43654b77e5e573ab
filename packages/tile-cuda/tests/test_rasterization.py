"""Rasterization: profitable swizzles, their choice, and coverage of all blocks."""

from __future__ import annotations

import contextlib

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES

TARGET = "cuda:sm_90a"


def product(size, block=(128, 256, 64), *, turned=False, asked=0, dynamic=False, threads=256):
    bm, bn, bk = block
    rows, columns = size
    if dynamic:
        rows, columns = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def main(
        A: T.Tensor((rows, 64), "float16"), B: T.Tensor((64, columns), "float16"),
        C: T.Tensor((rows, columns), "float16"),
    ):  # fmt: skip
        grid = (T.ceildiv(rows, bm), T.ceildiv(columns, bn))
        with T.Kernel(*(grid if turned else grid[::-1]), threads=threads) as (x, y):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bk, bn), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            if asked:
                T.use_swizzle(asked)
            row = (x if turned else y) * bm
            column = (y if turned else x) * bn
            T.clear(C_l)
            T.copy(A[row, 0], A_s)
            T.copy(B[0, column], B_s)
            T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[row, column])

    return main


def order(program, **options):
    return report_json(program, TARGET, options={"wgmma": "always", **options})["rasterization"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"size": (8192, 8192)}, "along panels of 16 rows of the grid"),
        ({"size": (8192, 8192), "turned": True}, "along panels of 16 columns of the grid"),
        ({"size": (8192, 8192), "block": (128, 128, 64)}, "along panels of 8 rows of the grid"),
        ({"size": (8192, 8192), "block": (256, 64, 64)}, "along panels of 4 rows of the grid"),
        ({"size": (8192, 8192), "asked": 5}, "along panels of 5 rows of the grid"),
        ({"size": (0, 0), "dynamic": True}, "along panels of 16 rows of the grid"),
        ({"size": (1024, 2048)}, "along panels of 4 rows of the grid"),  # all blocks run at a time
        ({"size": (256, 4096), "block": (64, 128, 64), "threads": 128}, "along panels of 4 rows of the grid"),
        ({"size": (4096, 256), "block": (128, 64, 64), "threads": 128}, ""),  # neighbours share both operands
        ({"size": (2048, 8192)}, "along panels of 16 rows of the grid"),  # a panel is all of it
        ({"size": (256, 28672)}, "along panels of 2 rows of the grid"),
        ({"size": (2048, 8192), "turned": True}, ""),  # the order of the grid is that of a panel
    ],
)
def test_swizzled_rasterization(how, expected):
    assert order(product(**how)) == expected


def test_results_that_are_computed_from_accumulators():
    """The order of 8-bit floats with block scales: it stores a total of scaled products."""

    @T.prim_func
    def main(
        A: T.Tensor((8192, 256), "float8_e4m3fn"), B: T.Tensor((8192, 256), "float8_e4m3fn"),
        S: T.Tensor((8192, 2), "float32"), C: T.Tensor((8192, 8192), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(64, 64, threads=256) as (bx, by):
            a, b = T.alloc_shared((128, 128), "float8_e4m3fn"), T.alloc_shared((128, 128), "float8_e4m3fn")
            part, total = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((128, 128), "float32")
            T.clear(total)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 128, k * 128], a)
                T.copy(B[bx * 128, k * 128], b)
                T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(128, 128):
                    total[i, j] += part[i, j] * S[by * 128 + i, k]
            T.copy(total, C[by * 128, bx * 128])

    assert order(main, persistent="never") == "along panels of 8 rows of the grid"


@pytest.mark.sweep(0.25)
def test_the_option():
    wide = product((8192, 8192))
    assert order(wide, rasterization="never") == ""
    assert order(product((1024, 2048)), rasterization="always") == "along panels of 16 rows of the grid"
    assert order(product((8192, 8192), asked=5), rasterization="never") == "along panels of 5 rows of the grid"
    assert order(wide, wgmma="never") == "along panels of 16 rows of the grid"


@pytest.mark.sweep(1)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [(300, 200), (65, 8), (1, 130)])
def test_every_block_runs_once(size, dynamic, turned):
    program = product(size, (64, 16, 64), turned=turned, dynamic=dynamic, threads=128)
    options = {"wgmma": "always", "rasterization": "always"}
    kernel = tile.compile(program, TARGET, runtime="emulator", options=options)
    assert "panel" in kernel.source
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((size[0], 64), (64, size[1])))
    c = np.full(size, 85, "float16")
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), a.astype("float64") @ b.astype("float64"))


def triangle(grid, trips, dynamic=False):
    """Return a program that adds as many tiles of 32 elements as ``trips`` of its block."""
    extents = tuple(T.dynamic(name) for name in "xyz"[: len(grid)]) if dynamic else grid

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((*extents, 32), "float32")):
        with T.Kernel(*extents, threads=32) as at:
            at = at if isinstance(at, tuple) else (at,)
            tile_s, total = T.alloc_shared((32,), "float32"), T.alloc_fragment((32,), "float32")
            T.clear(total)
            for k in T.Pipelined(trips(*at), num_stages=2):
                T.copy(A[k, :], tile_s)
                for i in T.Parallel(32):
                    total[i] += tile_s[i]
            T.copy(total, C[(*at, slice(None))])

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("trips", "expected"),
    [
        (lambda x, y: x + 1, "from the last along x, which has most iterations"),
        (lambda x, y: 20 - x, "from the first along x, which has most iterations"),
        (lambda x, y: (y * 64 + 65) // 32, "from the last along y, which has most iterations"),
        (lambda x, y: T.min(x, 3) + 1, ""),  # most have three
        (lambda x, y: (x * 7) % 5 + 1, ""),
        (lambda x, y: x + y, "from the last along x, which has most iterations"),
        (lambda x, y: 4, ""),
    ],
)
def test_blocks_with_most_iterations_begin_first(trips, expected):
    assert report_json(triangle((20, 12), trips), "cuda:sm_80")["rasterization"] == expected
    assert (
        report_json(triangle((20, 12), trips), "cuda:sm_80", options={"rasterization": "never"})["rasterization"] == ""
    )
    assert report_json(triangle((20, 5), trips), "cuda:sm_80")["rasterization"] == ""  # all run at a time


def test_blocks_that_wait_for_others_keep_their_order():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), flag: T.Tensor((1,), "int32"), C: T.Tensor((300, 32), "float32")):
        with T.Kernel(300, threads=32) as x:
            while T.atomic_load(flag[0]) < x:
                pass
            tile_s = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(x % 300 + 1, num_stages=2):
                T.copy(A[k, :], tile_s)
                T.copy(tile_s, C[x, :])

    assert report_json(main, "cuda:sm_80")["rasterization"] == ""


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("grid", "trips"),
    [
        ((7,), lambda x: x),  # a block without iterations
        ((5, 29), lambda x, y: x + 1),
        ((29, 5), lambda x, y: 5 - y),
        ((3, 5, 11), lambda x, y, z: y + 1),
        ((2, 3, 31), lambda x, y, z: z + 1),
        ((1, 3, 1), lambda x, y, z: y),
    ],
)
def test_every_block_of_unequal_ones_runs_once(grid, trips, dynamic):
    options = {"rasterization": "always"}
    program = triangle(grid, trips, dynamic)
    assert "iterations" in report_json(program, "cuda:sm_80", options=options)["rasterization"]
    kernel = tile.compile(program, "cuda:sm_80", runtime="emulator", options=options)
    a = np.random.default_rng().integers(-3, 4, (64, 32)).astype("float32")
    c = np.full((*grid, 32), 85, "float32")
    kernel(a, c)
    for at in np.ndindex(*grid):
        np.testing.assert_array_equal(c[at], a[: trips(*at)].sum(0))


@pytest.mark.sweep(2)
def test_the_fuzzer_draws_unequal_blocks() -> None:
    found, options = list[str](), {"rasterization": "always"}

    @hypothesis.seed(1)
    @settings(
        max_examples=200, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["nested-loops"][0])
    def draw(unit) -> None:
        if len(found) < 12 and "by * 2" in unit.text():
            with contextlib.suppress(TileError):
                found.append(report_json(load(unit.text()), "cuda:sm_80", options=options)["rasterization"])

    draw()
    assert any("iterations" in text for text in found)
