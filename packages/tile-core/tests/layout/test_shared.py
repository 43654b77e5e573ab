"""Swizzled shared tiles, bank conflicts and views."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.errors.layout import LayoutMismatch, ViewRefused
from tile_core.layout import (
    DigitLayout,
    Layout,
    LayoutMap,
    Swizzle,
    TableLayout,
    bank_conflicts,
    column_major,
    from_digits,
    make_swizzled_layout,
    prove,
    row_major,
    view_layout,
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
    """Rows of one panel follow each other; the byte address is XORed as a tiled bulk copy into shared memory does."""
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
    assert make_swizzled_layout((8, 64), 16, bank_bytes=64).note == "64-byte swizzle: at most 64 asked for"
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


def bits_of(layout: LayoutMap, bits: int) -> list[tuple[int, ...]]:
    """For each bit of the elements in row-major order, where it lies."""
    tables = layout.tables()
    axis = "memory" if "memory" in tables else "register"
    others = [tables[a] for a in layout.axes if a != axis]
    return [
        (v * bits + b, *(t[i] for t in others)) for i, v in enumerate(tables[axis]) for b in range(bits)
    ]  # fmt: skip


@pytest.mark.parametrize("old", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("new", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("digits", [True, False])
def test_view_of_a_swizzled_buffer_keeps_every_bit(old: int, new: int, digits: bool) -> None:
    """A swizzled 16-bit buffer viewed as 32-bit elements (peer reports 2609 and 2714)."""
    layout: LayoutMap = make_swizzled_layout((12, 1024 // old), element_bits=old)
    if not digits:
        table = [v ^ (64 // old * 16 if v * old < 8192 else 0) for v in layout.tables()["memory"]]
        layout = TableLayout(layout.shape, {"memory": table})
    view = view_layout(layout, (6, 2, 1024 // new), old, new)
    assert view.shape == (6, 2, 1024 // new)
    assert bits_of(view, new) == bits_of(layout, old)
    assert prove(view).bijective
    if digits:
        assert isinstance(view, DigitLayout)
        assert view_layout(view, layout.shape, new, old) == layout


def test_view_of_a_fragment() -> None:
    pairs = DigitLayout((16, 8), "(2,8,4,2):(2@register,4@lane,1@lane,1@register)")
    view = view_layout(pairs, (16, 4), 16, 32)
    assert view == DigitLayout((16, 4), "(2,8,4):(1@register,4@lane,1@lane)")
    assert bits_of(view, 32) == bits_of(pairs, 16)
    with pytest.raises(ViewRefused, match=r"K307.*keeps 2 together"):
        view_layout(pairs, (16, 2), 16, 64)


@pytest.mark.parametrize(
    ("layout", "shape", "old", "new", "reason"),
    [
        (row_major((4, 6)), (4, 3), 16, 16, "they have 192 bits, the buffer has 384"),
        (column_major((4, 6)), (4, 3), 16, 32, "keeps 1 together"),
        (row_major((4, 6)), (2, 3), 16, 64, "they do not|keeps 24 together|no|multiples"),
        (from_digits("(4,6):(7,1)"), (4, 3), 16, 32, "do not start at multiples of 2"),
        (DigitLayout((4, 8), "(32):(1)", swizzles=[Swizzle(2, 0, 3)]), (4, 4), 16, 32, "tears the 2 neighbours apart"),
        (row_major((4, 6)), (4, 4), 16, 24, "not a power of two apart"),
        (TableLayout((4,), {"memory": [1, 0, 3, 2]}), (2,), 8, 16, "not together|tears|keeps 1"),
        (TableLayout((6,), {"memory": [0, 1, 5, 4, 3, 2]}), (3,), 8, 16, "elements 2 … 3 lie at .5, 4. of memory"),
    ],
)
def test_view_refusals(layout: LayoutMap, shape: tuple[int, ...], old: int, new: int, reason: str) -> None:
    if shape == (2, 3):
        assert bits_of(view_layout(layout, shape, old, new), new) == bits_of(layout, old)
        return
    with pytest.raises(ViewRefused, match=rf"K307.*({reason})"):
        view_layout(layout, shape, old, new)


def test_pitch_of_rows_that_are_copied_together() -> None:
    """Consecutive columns inside 16 bytes stay together, so wide accesses stay wide."""
    for bits, columns in itertools.product((8, 16, 32), (128, 160, 96)):
        layout = make_swizzled_layout((16, columns), bits)
        step = 128 // bits
        for i, j in itertools.product(range(16), range(0, columns, step)):
            start = layout(i, j)
            assert start % step == 0
            assert [layout(i, j + k) for k in range(step)] == list(range(start, start + step))
