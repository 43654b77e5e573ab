"""Swizzled shared tiles and bank conflicts."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.errors.layout import LayoutMismatch
from tile_core.layout import (
    Layout,
    bank_conflicts,
    make_swizzled_layout,
    prove,
    row_major,
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
    st.sampled_from([1, 3, 8, 16, 24, 32, 40, 64, 96, 128, 192]),
    st.sampled_from([4, 8, 16, 32, 64, 128, 256]),
)
def test_swizzled_layouts_are_bijections(leading: list[int], columns: int, bits: int) -> None:
    layout = make_swizzled_layout((*leading, columns), element_bits=bits)
    assert prove(layout).bijective
    assert layout.span == layout.numel
    assert layout.note
    if layout.numel <= 4096:
        assert sorted(layout.tables()["memory"]) == list(range(layout.numel))


@pytest.mark.parametrize(("columns", "width"), [(64, 128), (192, 128), (32, 64), (96, 64), (16, 32), (48, 32)])
def test_pattern_is_the_hardware_one(columns: int, width: int) -> None:
    """Rows of one panel follow each other, XORed as by a tiled bulk copy."""
    layout = make_swizzled_layout(SimpleNamespace(shape=(24, columns), dtype="float16"))
    assert layout.note.startswith(f"{width}-byte")
    panel = width // 2
    for i, j in layout.coordinates():
        byte = (j // panel * 24 * panel + i * panel + j % panel) * 2
        assert layout(i, j) * 2 == byte ^ (((byte >> 7) & (width // 16 - 1)) << 4)


def test_why() -> None:
    assert make_swizzled_layout((8, 40), 16).note == "row-major: a row has 80 bytes, no multiple of 32"
    assert make_swizzled_layout((8, 3), 4).note == "row-major: a row has 12 bits, no multiple of 32"
    assert make_swizzled_layout((64,), 16).note == "row-major: there is one row only"
    assert make_swizzled_layout((8, 96), 16).note == "64-byte swizzle: a row has 192 bytes, no multiple of 128"
    assert make_swizzled_layout((8, 64), 16, bank_bytes=64).note == "64-byte swizzle: at most 64 requested"
    assert make_swizzled_layout((8, 64), 256).note == "row-major: elements of 256 bits do not divide 16 bytes"
    assert make_swizzled_layout((8, 64), 16, bank_bytes=16).note == "row-major: no pattern of at most 16 bytes"
    with pytest.raises(LayoutMismatch, match=r"K311.*a shape alone"):
        make_swizzled_layout((8, 64))


@pytest.mark.parametrize(("columns", "conflicts"), [(64, 7), (32, 3), (16, 1)])
def test_swizzle_removes_conflicts(columns: int, conflicts: int) -> None:
    """Eight rows of 16 bytes, as a matrix load reads them."""
    rows = [(i, 8) for i in range(8)]
    assert bank_conflicts(row_major((64, columns)), rows, 16, vector=8) == conflicts
    assert bank_conflicts(make_swizzled_layout((64, columns), 16), rows, 16, vector=8) == 0


def test_bank_conflicts() -> None:
    words = row_major((64, 32))
    assert bank_conflicts(words, range(32)) == 0
    assert bank_conflicts(words, [(i, 0) for i in range(32)]) == 31
    assert bank_conflicts(words, [(0, 5)] * 32) == 0
    assert bank_conflicts(words, [(i, 0) for i in range(32)], element_bits=8) == 7
    assert bank_conflicts(Layout((64, 32), "(64,32):(33,1)", span=64 * 33), [(i, 0) for i in range(32)]) == 0
    # 16 bytes per thread: four groups of eight threads, each without a conflict.
    assert bank_conflicts(words, [4 * t for t in range(32)], vector=4) == 0
    assert bank_conflicts(words, []) == 0


def test_pitch_of_rows_of_one_copy() -> None:
    """Consecutive columns inside 16 bytes stay together, so wide accesses stay wide."""
    for bits, columns in itertools.product((8, 16, 32), (128, 160, 96)):
        layout = make_swizzled_layout((16, columns), bits)
        step = 128 // bits
        for i, j in itertools.product(range(16), range(0, columns, step)):
            start = layout(i, j)
            assert start % step == 0
            assert [layout(i, j + k) for k in range(step)] == list(range(start, start + step))
