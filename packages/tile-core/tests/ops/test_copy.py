"""T.copy beyond testing/tables/copies.py: a padded pitch, hints, and names of variants."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from . import kit

pytestmark = pytest.mark.sweep(5)


def test_padded_pitch_and_part_of_a_tile():
    """#2581: a shared tile that is wider than the copy."""

    @T.prim_func
    def main(A: T.Tensor((17, 33), "float32"), B: T.Tensor((17, 33), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((17, 40), "float32")
            T.fill(s, -1.0)
            T.copy(A, s[:, 0:33])
            T.copy(s[:, 1:33], B[:, 0:32])
            T.copy(s[0:17, 39], B[:, 32])

    a = kit.anything(np.random.default_rng(9), (17, 33), "float32")
    b = kit.launch(main, [a], [kit.guarded((17, 33), "float32")])
    kit.same(b, np.concatenate([a[:, 1:], np.full((17, 1), -1, np.float32)], 1))


@pytest.mark.parametrize("width", [1, 2, 3, 64])
def test_coalesced_width_is_a_hint(width):
    """#3007: never an error."""

    @T.prim_func
    def main(A: T.Tensor((17,), "float64"), B: T.Tensor((17,), "float64")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((17,), "float64")
            T.copy(A, s, coalesced_width=width)
            T.copy(s, B, coalesced_width=width, disable_tma=True, eviction_policy="evict_first")

    a = kit.anything(np.random.default_rng(1), (17,), "float64")
    kit.same(kit.launch(main, [a], [kit.guarded((17,), "float64")]), a)


@pytest.mark.parametrize(("variant", "code"), [(3, "K212"), ("nowhere.copy.fast", "U")])
def test_a_variant_is_a_name_that_the_target_has(variant, code):
    def compiled():
        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(A, B, variant=variant)

        return tile.compile(main, "cpu")

    with pytest.raises(TileError) as caught:
        compiled()
    assert caught.value.code.startswith(code)
    assert "T.copy(A, B, variant=variant)" in str(caught.value)
