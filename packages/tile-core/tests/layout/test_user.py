"""``Layout`` and ``Fragment``: functions and digits, checked when they are made."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from expected_errors import raises_error

from tile_core.errors.layout import (
    BadDigits,
    BadLayoutFunction,
    LayoutCollision,
    LayoutMismatch,
    LayoutOutOfRange,
    LayoutTooLarge,
    TableNotSymbolic,
)
from tile_core.layout import (
    CallableLayout,
    DigitLayout,
    Fragment,
    Layout,
    TableLayout,
    column_major,
    prove,
    row_major,
)

BIG = (64, 48)


@pytest.mark.parametrize("shape", [(6, 8), BIG, (5,), (1, 1), (2, 3, 4)])
def test_function_is_kept_and_becomes_digits(shape: tuple[int, ...]) -> None:
    expected = column_major(shape)
    layout = Layout(shape, lambda *c: expected(*c))
    assert layout == expected == Layout(shape, expected.digits)
    assert isinstance(layout.map, DigitLayout)
    assert prove(layout).bijective
    assert hash(layout) == hash(expected)


def test_function_of_several_indices_is_row_major() -> None:
    layout = Layout((16, 64), lambda i, j: [j // 8, i, j % 8])
    assert layout(3, 21) == 2 * 128 + 3 * 8 + 5
    assert isinstance(layout.map, DigitLayout)


def test_function_with_xor_becomes_a_swizzle() -> None:
    layout = Layout((8, 64), lambda i, j: [i, (j // 8 ^ i % 8) * 8 + j % 8])
    assert isinstance(layout.map, DigitLayout)
    assert len(layout.map.swizzles) == 1
    assert all(layout(i, j) == i * 64 + (j // 8 ^ i) * 8 + j % 8 for i, j in layout.coordinates())


@pytest.mark.parametrize("shape", [(12, 20), BIG])
def test_function_that_has_no_digits_is_applied_as_it_is(shape: tuple[int, int]) -> None:
    rows, columns = shape
    layout = Layout(shape, lambda i, j: i * columns + (j + i) % columns)
    assert isinstance(layout.map, CallableLayout)
    assert layout(3, columns - 1) == 3 * columns + 2
    assert sorted(layout(i, j) for i, j in itertools.product(range(rows), range(columns))) == list(
        range(rows * columns)
    )


def test_function_that_asks_its_indices() -> None:
    layout = Layout(BIG, lambda i, j: i * 48 + (j + 1 if j < 47 else 0))
    assert layout(0, 5) == 6
    swapped = Layout(BIG, lambda i, j: (i + 1 if i % 2 == 0 else i - 1) * 48 + j)
    assert isinstance(swapped.map, DigitLayout)
    table = Layout((4, 4), lambda i, j: [3, 1, 0, 2][i] * 4 + j)
    assert table(0, 1) == 13

    class Index:
        def __lt__(self, other: int) -> Any:
            raise TypeError("unknown")

    with pytest.raises(TableNotSymbolic, match=r"K313.*decides by an index"):
        layout.apply(0, Index())


@pytest.mark.parametrize("shape", [(8, 8), BIG])
def test_many_to_one_names_both_coordinates(shape: tuple[int, int]) -> None:
    """A shared layout with two elements at one position (peer report 2632)."""
    rows, columns = shape
    with pytest.raises(LayoutCollision) as caught:
        Layout(shape, lambda i, j: i * (columns // 2) + j)
    text = str(caught.value)
    assert (
        f"[K303] the layout of shape {shape} is many-to-one: (0, {columns // 2}) and (1, 0) both map to memory" in text
    )
    with pytest.raises(LayoutCollision):
        Layout(shape, f"({rows},{columns}):(1,1)")
    with pytest.raises(LayoutCollision):
        Layout(shape, lambda i, j: 0)


def test_interleaved_metadata_with_a_ragged_group() -> None:
    """Rows interleaved in groups of 32 are a bijection for 64 rows only.

    For 48 they are not (peer report 2606).
    """

    def helper(rows: int) -> Any:
        def position(i: Any, j: Any) -> Any:
            r = i // 32 * 32 + i % 8 * 4 + i % 32 // 8
            odd_r, odd_j = r % 2, j % 2
            r, c = r + odd_j - odd_r, j + odd_r - odd_j
            return c // 2 * (2 * rows) + 2 * r + c % 2

        return position

    for columns in (2, 4, 6):
        assert prove(Layout((64, columns), helper(64))).bijective
    with pytest.raises((LayoutCollision, LayoutOutOfRange), match=r"K30[34]"):
        Layout((48, 2), helper(48))
    with pytest.raises((LayoutCollision, LayoutOutOfRange), match=r"K30[34]"):
        Layout((32, 1), helper(32))


def test_out_of_range_and_padding() -> None:
    with raises_error(LayoutOutOfRange, coordinate=(6, 4), image=64, axis="memory", size=64) as caught:
        Layout((8, 8), lambda i, j: i * 10 + j)
    assert "span=n" in caught.value.help
    padded = Layout((8, 8), lambda i, j: i * 10 + j, span=80)
    assert padded.span == 80
    assert not prove(padded).bijective
    with pytest.raises(LayoutOutOfRange):
        Layout((8, 8), "(8,8):(10,1)", span=77)
    assert Layout((8, 8), "(8,8):(10,1)", span=78).span == 78


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda i, j: i / 8 + j, "it returned 0.0, expected integers"),
        (lambda i, j: i - j, "it returned -7, expected an index of at least 0"),
        (lambda i: i, "it raised TypeError"),
        (lambda i, j: (i, j) if i else i, "it returned 2 indices, expected 1"),
        (lambda i, j: (), r"it returned \(\), expected integers"),
        (lambda i, j: i > j, "it returned False, expected integers"),
    ],
)
def test_bad_functions(function: Any, reason: str) -> None:
    with pytest.raises(BadLayoutFunction, match=rf"K305.*{reason}"):
        Layout((8, 8), function)


def test_arrays_are_no_shortcut_past_the_function() -> None:
    """A function that means something else on arrays is evaluated on integers."""

    def odd(i: Any, j: Any) -> Any:
        return i * 48 + j if isinstance(i, int) else i * 0

    assert Layout(BIG, odd) == row_major(BIG)


def test_too_large() -> None:
    with pytest.raises(LayoutTooLarge):
        Layout((2048, 2048), lambda i, j: i * 2048 + (j ^ i % 8))
    with pytest.raises(LayoutTooLarge, match=r"K306[\s\S]*divide the extents evenly"):
        Layout((2047, 2048), lambda i, j: (i // 8, j, i % 8))
    assert Layout((2048, 2048), row_major((2048, 2048))).span == 1 << 22


def test_wrong_axes() -> None:
    with pytest.raises(BadDigits, match=r"K302.*'lane' is not allowed"):
        Layout((8,), "(8):(1@lane)")
    with pytest.raises(LayoutMismatch):
        Layout((8,), row_major((4, 2)))
    with pytest.raises(BadDigits, match="'memory' is not allowed"):
        Fragment((8,), "(8):(1)")


def test_fragment_of_functions() -> None:
    fragment = Fragment((8, 12), forward_thread_fn=lambda i, j: i * 4 + j % 4, forward_index_fn=lambda i, j: j // 4)
    assert isinstance(fragment.map, DigitLayout)
    assert (fragment.threads, fragment.registers) == (32, 3)
    assert (fragment.thread(3, 7), fragment.register(3, 7)) == (15, 1)
    assert fragment(3, 7) == (15, 1)
    assert fragment == Fragment((8, 12), lambda i, j: (i * 4 + j % 4, j // 4))
    # Without a function for registers, the elements of a thread are numbered.
    assert fragment == Fragment((8, 12), forward_thread_fn=lambda i, j: i * 4 + j % 4)


def test_fragment_with_copies() -> None:
    fragment = Fragment((8,), forward_thread_fn=lambda i, copy: i * 4 + copy, replicate=4)
    assert fragment.replicas == 4
    assert [fragment.thread(2, replica=r) for r in range(4)] == [8, 9, 10, 11]
    assert fragment.registers == 1
    both = Fragment((8,), forward_thread_fn=lambda i, c: c * 8 + i, forward_index_fn=lambda i: 0, replicate=4)
    assert both.thread(2, replica=3) == 26
    assert both == Fragment((8,), lambda i, c: (c * 8 + i, 0), replicate=4)


def test_fragment_refusals() -> None:
    with pytest.raises(LayoutCollision, match=r"\(0, 0\) and \(0, 1\) both map to thread 0 register 0"):
        Fragment((8, 2), lambda i, j: (i, 0))
    with pytest.raises(LayoutCollision, match=r"\(0,\) copy 0 and \(0,\) copy 1"):
        Fragment((8,), lambda i, c: (i, 0), replicate=2)
    with raises_error(LayoutOutOfRange, coordinate=(3, 0), image=96, axis="thread", size=96):
        Fragment((4, 32), lambda i, j: (i * 32 + j, 0), threads=96)
    with raises_error(LayoutOutOfRange, axis="lane", size=32):
        Fragment((64,), "(64):(1@lane)")
    assert Fragment((64,), "(64):(1@lane)", width=64).threads == 64
    with pytest.raises(LayoutMismatch, match="either forward_fn or forward_thread_fn"):
        Fragment((8,))
    with pytest.raises(BadLayoutFunction, match="it returned -1"):
        Fragment((8,), forward_thread_fn=lambda i: i - 1)


@pytest.mark.parametrize("round", range(3))
def test_random_tables(round: int) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed, "round", round)
    generator = random.Random(seed)
    table = list(range(60))
    generator.shuffle(table)
    layout = Layout((5, 12), TableLayout((5, 12), {"memory": table}))
    assert [layout(*c) for c in layout.coordinates()] == table
    table[generator.randrange(30)] = table[30]
    with pytest.raises(LayoutCollision):
        Layout((5, 12), TableLayout((5, 12), {"memory": table}))
    with pytest.raises(TableNotSymbolic, match="the index is an expression"):
        layout.map.at("i")
