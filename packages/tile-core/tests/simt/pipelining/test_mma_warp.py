"""Schedules of blocks whose products one thread issues: they balance for every trip count, and changes do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.ir import nodes
from tile_core.ops.base import View
from tile_core.simt.pipelining.ledger import imbalance_of
from tile_core.simt.pipelining.mma_warp import accumulator_schedule, with_mma_warp
from tile_core.simt.pipelining.persistent import PersistentGrid
from tile_core.simt.pipelining.schedule import Arrive, Complete, Expect, Issue, Use, WaitPhase

from .schedules import async_transacted, edited, swapped, without

PERSISTENT = PersistentGrid(148, 32, "thread", 32, mma_threads=32, buffers=2)


def slots(stages=3):
    return with_mma_warp(async_transacted(stages), 128, PERSISTENT, "free")


def tiles(buffers=2):
    accumulator, _ = nodes.alloc([128, 64], "float32", "accumulator", "matrix")
    return accumulator_schedule(
        View(accumulator, (0, 0), (128, 64)), 128, replace(PERSISTENT, buffers=buffers), "ready", "unused"
    )


@pytest.mark.parametrize("stages", [2, 3, 4, 5, 8])
def test_slots_balance(stages):
    made = slots(stages)
    assert made.trips is None
    assert imbalance_of(made) is None
    roles = [p.role for p in made.programs]
    assert [(r.name, r.first, r.count) for r in roles] == [("the producer", 128, 1), ("the MMA warp", 160, 1)]
    assert "arrive at free when these uses are complete" in "\n".join(made.lines())


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_accumulator_schedules_balance(buffers):
    made = tiles(buffers)
    assert imbalance_of(made) is None
    assert "an arrival at ready" in "\n".join(made.lines())


def of_trip(make, number, kind):
    made = make()
    return edited(made, number, iteration=without(made.programs[number].iteration, kind))


def changed(make, number, kind, **parts):
    made = make()
    return edited(made, number, iteration=swapped(made.programs[number].iteration, kind, lambda s: replace(s, **parts)))


def arrivals(make, number, count):
    made = make()
    barriers = list(made.barriers)
    barriers[number] = replace(barriers[number], arrivals=count)
    return replace(made, barriers=tuple(barriers))


def exchanged():
    """A slot is free before its use has begun."""
    made = slots()
    full, use, complete = made.programs[1].iteration
    return edited(made, 1, iteration=(full, complete, use))


UNBALANCED = {
    "no wait for a free slot": lambda: of_trip(slots, 0, WaitPhase),
    "a wait for the phase of the trip itself": lambda: changed(slots, 0, WaitPhase, lag=0),
    "no bytes announced": lambda: of_trip(slots, 0, Expect),
    "nothing is copied": lambda: of_trip(slots, 0, Issue),
    "no wait for a full slot": lambda: of_trip(slots, 1, WaitPhase),
    "slots are never free": lambda: of_trip(slots, 1, Complete),
    "a slot is free before its product": exchanged,
    "another slot is free": lambda: changed(slots, 1, Complete, offset=1),
    "a slot takes two arrivals": lambda: arrivals(slots, 1, 2),
    "the last products are not waited for": lambda: edited(slots(), 0, after=()),
    "all but the last product are waited for": lambda: edited(slots(), 0, after=slots().programs[0].after[:-1]),
    "the accumulator is overwritten early": lambda: of_trip(tiles, 0, WaitPhase),
    "the wait for the accumulator is for the tile itself": lambda: changed(tiles, 0, WaitPhase, lag=0),
    "the accumulator is never ready": lambda: of_trip(tiles, 0, Issue),
    "the accumulator is used before it is ready": lambda: of_trip(tiles, 1, WaitPhase),
    "the accumulator is never free": lambda: of_trip(tiles, 1, Arrive),
    "one thread frees the accumulator": lambda: changed(tiles, 1, Arrive, each="role"),
    "the accumulator of another tile is free": lambda: changed(tiles, 1, Arrive, offset=1),
    "two arrivals make the accumulator ready": lambda: arrivals(tiles, 0, 2),
}


@pytest.mark.parametrize("name", UNBALANCED)
def test_changes_are_refused(name):
    assert imbalance_of(UNBALANCED[name]()) is not None


def test_accumulators_are_released_after_their_last_use():
    made = tiles()
    ready, use, free = made.programs[1].iteration
    assert isinstance(use, Use)
    assert imbalance_of(edited(made, 1, iteration=(ready, free, use))) is not None
