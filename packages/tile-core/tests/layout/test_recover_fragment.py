"""Users' fragment layouts as digits per dimension: exact, with short rows padded."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.layout import Digit, Fragment, FragmentLayout, TableLayout, fragment_of

FAST = settings(max_examples=150, deadline=None)


@st.composite
def layouts(draw: Any) -> FragmentLayout:
    """Digits on threads and registers in any order, with copies and early ends."""
    digits, reach = [], {"thread": 1, "register": 1}
    for _ in range(draw(st.integers(0, 6))):
        axis = draw(st.sampled_from(("thread", "register")))
        extent = draw(st.sampled_from((2, 3, 4, 5, 8)))
        if reach[axis] * extent <= 128:
            digits.append(Digit(extent, reach[axis], axis))
            reach[axis] *= extent
    replica = []
    if digits and digits[-1].axis == "thread" and draw(st.booleans()):
        replica.append(digits.pop())
    rank = draw(st.integers(1, 3))
    dims: list[list[Digit]] = [[] for _ in range(rank)]
    for digit in draw(st.permutations(digits)):
        dims[draw(st.integers(0, rank - 1))].append(digit)
    padded = [prod(d.extent for d in group) for group in dims]
    shape = [draw(st.integers(max(1, n - 3), n)) for n in padded]
    threads = reach["thread"] + draw(st.integers(0, 5))
    return FragmentLayout(tuple(shape), tuple(map(tuple, dims)), threads, tuple(replica))


@FAST
@given(layouts())
def test_tables_become_the_digits_that_made_them(made: FragmentLayout) -> None:
    registers = np.repeat(made.register_table[:, None], made.replicas, axis=1)
    tables = {"thread": made.thread_table.reshape(-1).tolist(), "register": registers.reshape(-1).tolist()}
    found = fragment_of(TableLayout(made.shape, tables, made.replicas), made.threads)
    if isinstance(found, str):
        # A digit with only its first value left cannot be seen, and may leave a gap.
        assert made.padded != made.shape
        assert found == "gaps between its threads or registers"
    else:
        assert found.same_as(made)


@pytest.mark.sweep(1)
@FAST
@given(layouts())
def test_positions_and_elements_are_inverse(made: FragmentLayout) -> None:
    for flat, coordinate in enumerate(made.coordinates()):
        register = made.register(coordinate)
        assert register == made.register_table[flat] == made.apply(*coordinate)["register"]
        for copy in range(made.replicas):
            position = made.apply(*coordinate, replica=copy)
            assert position == made.at(flat, copy) == {"thread": made.thread_table[flat, copy], "register": register}
            assert tuple(made.element(position["thread"], register)) == coordinate


@pytest.mark.parametrize(
    ("shape", "forward", "registers"),
    [
        ((33,), lambda j: (j % 32, j // 32), 2),
        ((16, 33), lambda i, j: (i % 2 * 32 + j % 32, i // 2 * 2 + j // 32), 16),
        ((7, 5), lambda i, j: (i * 8 + j, 0 * i), 1),
        ((7, 5), lambda i, j: (j, i), 7),
        ((1, 1), lambda i, j: (0, 0), 1),
        ((3, 17), lambda i, j: (j, i * 1), 3),
        ((5, 3, 2), lambda i, j, k: (i * 8 + j * 2 + k, 0 * i), 1),
    ],
)
def test_rows_that_end_early_are_padded(shape: tuple[int, ...], forward: Any, registers: int) -> None:
    layout = Fragment(shape, forward)
    found = fragment_of(layout, 64)
    assert isinstance(found, FragmentLayout)
    assert found.registers == registers
    for coordinate in found.coordinates():
        assert found(*coordinate) == forward(*coordinate)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_a_warp_is_as_wide_as_the_layout_says(width: int) -> None:
    layout = Fragment((4, width), f"(4,{width}):(1@warp,1@lane)", width=width)
    found = fragment_of(layout, 4 * width)
    assert isinstance(found, FragmentLayout)
    assert found.thread_table[:, 0].tolist() == list(range(4 * width))


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Fragment((64, 2), lambda i, j: (i, j)), "the layout needs 64 threads; the block has 32"),
        (Fragment((16,), lambda i: (i + 8, 0)), "its first element lies in thread 8, not in 0"),
        (Fragment((16,), lambda i: (i, 3)), "its first element lies in register 3, not"),
        (Fragment((16,), lambda i: (2 * i, 0)), "gaps between its threads or registers"),
        (Fragment((16,), lambda i: (i, i)), "thread or register is not a sum of terms"),
        (Fragment((4, 4), lambda i, j: (i * 4 + (i ^ j), 0)), "thread or register is not a sum of terms"),
        (Fragment((8,), lambda i, c: (i, c), replicate=2), "copies of an element lie in different registers"),
    ],
)
def test_what_no_digits_describe_has_a_reason(layout: Fragment, reason: str) -> None:
    found = fragment_of(layout, 32)
    assert isinstance(found, str)
    assert found.startswith(reason)
