"""T.cumsum beyond testing/tables/reductions.py: slices in place and elsewhere in a buffer."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from . import kit

pytestmark = pytest.mark.sweep(5)


def test_slices_start_where_they_say():
    """#2536: rows 64..127 of a tile, a vector's part, and a destination elsewhere in the same buffer."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 8), "float32"), B: T.Tensor((128, 8), "float32"), C: T.Tensor((20,), "int32"), z: T.int32
    ):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared((128, 8), "float32")
            v = T.alloc_shared((20,), "int32")
            T.copy(A, s)
            T.cumsum(s[64:128, :], dim=0)
            T.cumsum(s[z, 0:8], dim=0)
            T.copy(s, B)
            T.fill(v, 1)
            T.cumsum(v[2:12], v[5:15])
            T.copy(v, C)

    a = kit.numbers(np.random.default_rng(1), (128, 8), "float32")
    kernel = tile.compile(main, target="cpu")
    b, c = kit.guarded((128, 8), "float32"), kit.guarded((20,), "int32")
    kernel(a, b, c, 7)
    expected = a.copy()
    expected[64:] = np.cumsum(a[64:], 0)
    expected[7] = np.cumsum(a[7])
    kit.same(b, expected)
    ones = np.ones(20, np.int32)
    ones[5:15] = np.arange(1, 11)
    kit.same(c, ones)
