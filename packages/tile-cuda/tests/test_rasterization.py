"""Rasterization: profitable swizzles, their choice, and coverage of all blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reports import report_json

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
