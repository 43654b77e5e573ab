"""T.transpose beyond testing/tables/fills.py: in place, parts, and shapes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import ShapesDiffer
from tile_core.testing import oracles

from . import kit


def test_into_the_source_and_parts():
    @T.prim_func
    def main(A: T.Tensor((20, 20), "float32"), B: T.Tensor((20, 20), "float32"), z: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((20, 20), "float32")
            T.copy(A, s)
            T.transpose(s, s)
            T.transpose(s[z : z + 5, 2:10], s[3:11, z + 4 : z + 9])
            T.copy(s, B)

    a = kit.anything(np.random.default_rng(2), (20, 20), "float32")
    for z in (0, 3, 13, -2):
        out = kit.guarded((20, 20), "float32")
        tile.compile(main, target="cpu")(a, out, z)
        t = a.T.copy()
        turned, low = oracles.copy_region(t, (z, 2), (5, 8)).T, max(z + 4, 0)
        t[3:11, low : z + 9] = turned[:, low - z - 4 : 20 - z - 4]
        kit.same(out, t)


@pytest.mark.parametrize("shapes", [((4, 8), (4, 8)), ((2, 4, 8), (8, 4, 2)), ((8,), (8,)), ((2, 4, 8), (3, 8, 4))])
def test_shapes_that_do_not_fit(shapes):
    with pytest.raises(ShapesDiffer) as caught:

        @T.prim_func
        def main():
            with T.Kernel(1):
                T.transpose(T.alloc_shared(shapes[0], "float32"), T.alloc_shared(shapes[1], "float32"))

    assert caught.value.code == "K203"
    assert "transposed" in str(caught.value)
