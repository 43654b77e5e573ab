"""Layouts of fragments: places and their inverse agree, projections replicate, padding is outside."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.errors import InternalError
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout, spread

pytestmark = pytest.mark.sweep(2)

SHAPES = [(64, 48), (229,), (128, 128), (7,), (5, 3, 17), (16,), (1,), (1, 64), (64, 1), (3, 229), (127, 31)]
THREADS = [1, 7, 31, 32, 48, 96, 128, 256]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("vector", [1, 2, 8])
def test_every_element_is_where_its_inverse_says(shape: tuple[int, ...], threads: int, vector: int) -> None:
    made = spread(shape, threads, vector)
    assert made.size("thread") <= threads
    indices = np.indices(shape).reshape(len(shape), -1)
    for copy in range(made.replicas):
        found = made.element(made.thread_table[:, copy], made.register_table)
        for got, want in zip(found, indices, strict=True):
            assert np.array_equal(np.zeros_like(want) + got, want)
    positions = made.thread_table * made.registers + made.register_table[:, None]
    assert len(np.unique(positions)) == positions.size  # no two elements share a register


def test_a_projection_keeps_the_threads_of_what_it_drops_as_copies() -> None:
    whole = spread((64, 48), 128, 4)
    rows = whole.project(1)
    by_row = whole.thread_table.reshape(64, -1)
    for i in range(64):
        assert set(by_row[i]) <= set(rows.thread_table[i])
    assert rows.registers == whole.registers // 4


def test_a_projection_closes_gaps_between_registers() -> None:
    whole = FragmentLayout(
        (8, 16),
        ((Digit(2, 4, "register"), Digit(4, 1, "thread")), (Digit(4, 4, "thread"), Digit(4, 1, "register"))),
        16,
    )
    assert whole.project(1).registers == 2
    assert whole.project(1).register_table.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert whole.project(0).registers == 4


def test_same_positions_with_other_digits() -> None:
    one = FragmentLayout((16,), ((Digit(4, 4, "thread"), Digit(4, 1, "thread")),), 16)
    assert one.same_as(FragmentLayout((16,), ((Digit(16, 1, "thread"),),), 16))
    assert not one.same_as(FragmentLayout((16,), ((Digit(4, 1, "thread"), Digit(4, 4, "thread")),), 16))


def test_gaps_between_threads_are_refused() -> None:
    with pytest.raises(InternalError, match="do not fit"):
        FragmentLayout((4,), ((Digit(4, 2, "thread"),),), 16)
