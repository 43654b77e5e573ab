"""Layouts that descriptors of warpgroup products describe."""

from __future__ import annotations

import itertools

import pytest

from tile_core.layout import LayoutMap, make_swizzled_layout, row_major
from tile_core.layout.stacked import StackedLayout
from tile_core.layout.user import Layout
from tile_cuda.ops.shared_matrix import _has_rows, _same

SHAPES = [(8, 64), (64, 32), (16, 128), (7, 64), (12, 64), (24, 48), (8, 24)]


def layouts(shape: tuple[int, int], bits: int, slots: int) -> list[LayoutMap]:
    """Return layouts of slots: swizzled, stacked, padded between tiles, and the same as tables."""
    found: list[LayoutMap] = [row_major((slots, *shape))]
    for swizzle in (128, 64, 32):
        tile = make_swizzled_layout(shape, bits, swizzle)
        whole = make_swizzled_layout((slots, *shape), bits, swizzle)
        padded = Layout(shape, tile.map, span=tile.span + 64)
        stacked = StackedLayout(tile, slots)
        table = Layout((slots, *shape), lambda s, r, c, of=stacked: of(s, r, c))
        found += [whole, stacked, StackedLayout(padded, slots), StackedLayout(StackedLayout(tile, 1), slots), table]
    return found


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_layout_matches_where_each_element_has_its_position(shape: tuple[int, int], bits: int) -> None:
    for slots, swizzle in itertools.product((1, 3), (128, 64, 32)):
        wanted = make_swizzled_layout((slots, *shape), bits, swizzle).tables()["memory"]
        for layout in layouts(shape, bits, slots):
            equal = _has_rows((slots, *shape), bits, swizzle) and layout.tables()["memory"] == wanted
            assert _same.__wrapped__(layout, (slots, *shape), bits, swizzle) == equal, (layout, swizzle)
