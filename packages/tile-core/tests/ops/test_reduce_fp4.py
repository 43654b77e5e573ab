"""Test maxima and minima of 4-bit floats: every value, odd lengths, both zeros."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

#: The numbers of the codes 0 to 15.
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize(("rows", "cols"), [(4, 1), (6, 7), (16, 33)])
def test_extremes(kind, rows, cols):
    reduce = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def main(A: T.Tensor((rows, cols), "float32"), B: T.Tensor((rows,), "float32"), C: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=32):
            tile_ = T.alloc_shared((rows, cols), "float4_e2m1fn")
            narrow = T.alloc_fragment((rows,), "float4_e2m1fn")
            wide = T.alloc_fragment((rows,), "float32")
            T.copy(A, tile_)
            reduce(tile_, narrow, dim=1)
            reduce(tile_, wide, dim=1)
            T.copy(narrow, B)
            T.copy(wide, C)

    a = VALUES[np.random.default_rng(rows * cols).integers(0, 16, (rows, cols))]
    found = [np.full(rows, np.nan, np.float32) for _ in "BC"]
    tile.compile(main, target="cpu")(a, *found)
    for array in found:
        np.testing.assert_array_equal(array, getattr(a, kind)(axis=1))
