"""Blocks with roles that bring tiles together: their schedules balance for every trip count, and changes do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.simt.pipelining.ledger import imbalance_of
from tile_core.simt.pipelining.mma_warp import with_mma_warp
from tile_core.simt.pipelining.persistent import PersistentGrid, at_tile_ends, with_producer_role
from tile_core.simt.pipelining.schedule import Arrive, Complete, Expect, Issue, Meet, WaitPhase, WaitUses

from .schedules import BYTES, clustered, edited, swapped, without

FOUR = {"sets": ((0, 2), (1, 3)), "blocks": 4}
PERSISTENT = PersistentGrid(132, 32, "warp", 32)


def shared(stages=3, arrivals="warp", **how):
    return with_producer_role(clustered(stages, **how), 128, replace(PERSISTENT, arrivals=arrivals), "free")


def issued(stages=3, **how):
    return with_mma_warp(clustered(stages, **how), 128, replace(PERSISTENT, mma_threads=32), "free")


@pytest.mark.parametrize("how", [{}, {"arrivals": "thread"}, FOUR], ids=["warps", "threads", "four"])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.sweep(2)
def test_blocks_that_compute_balance(stages, how):
    made = shared(stages, **how)
    assert made.trips is None
    assert imbalance_of(made) is None
    assert imbalance_of(at_tile_ends(made)) is None


@pytest.mark.parametrize("how", [{}, FOUR], ids=["two", "four"])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.sweep(2)
def test_blocks_with_an_issuer_balance(stages, how):
    assert imbalance_of(issued(stages, **how)) is None


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_all_blocks_make_the_same_trips_whatever_their_number(trips):
    for made in (shared(), at_tile_ends(shared()), issued(), issued(**FOUR)):
        assert imbalance_of(replace(made, trips=trips)) is None


def of_trip(made, number, kind, nth=0):
    return edited(made, number, iteration=without(made.programs[number].iteration, kind, nth))


def changed(made, number, kind, **parts):
    return edited(made, number, iteration=swapped(made.programs[number].iteration, kind, lambda s: replace(s, **parts)))


def arrivals(made, count):
    return replace(made, barriers=(made.barriers[0], replace(made.barriers[1], arrivals=count)))


def unmet(made, where):
    for number, program in enumerate(made.programs):
        made = edited(made, number, **{where: without(getattr(program, where), Meet)})
    return made


def exchanged(made, number, at):
    steps = list(made.programs[number].iteration)
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    return edited(made, number, iteration=tuple(steps))


UNBALANCED = {
    "no wait for a free slot": (of_trip(shared(), 0, WaitPhase), "may come before phase 0 has ended"),
    "a wait for the phase of the trip itself": (changed(shared(), 0, WaitPhase, lag=0), "never passes"),
    "the bytes of its own share": (changed(shared(), 0, Expect, bytes=BYTES - 16), "before its copy is complete"),
    "nothing is copied": (of_trip(shared(), 0, Issue), "before its copy is issued|bytes are announced and 0 delivered"),
    "no wait for a full slot": (of_trip(shared(), 1, WaitPhase), "before its copy"),
    "slots are free in their own block only": (changed(shared(), 1, Arrive, everywhere=False), "4 of 8 arrivals"),
    "and as many arrivals are expected": (
        arrivals(changed(shared(), 1, Arrive, everywhere=False), 4), "while it may still be read",
    ),
    "fewer arrivals are expected": (arrivals(shared(), 4), "has begun|arrivals of 4"),
    "a slot is free before its use has ended": (exchanged(at_tile_ends(shared()), 1, 2), "may still be read"),
    "uses are not waited for": (of_trip(at_tile_ends(shared()), 1, WaitUses), "may still be read"),
    "objects that may not exist yet": (unmet(shared(), "before"), "before the blocks meet"),
    "objects that may be gone": (unmet(shared(), "after"), "before another one has used its objects"),
    "one role does not meet the others": (edited(shared(), 0, before=()), "barrier that others never reach"),
    "products free slots of their own block only": (changed(issued(), 1, Complete, everywhere=False), "1 of 2"),
    "and one arrival is expected": (
        arrivals(changed(issued(), 1, Complete, everywhere=False), 1), "a copy to it is in flight",
    ),
    "one arrival is expected": (arrivals(issued(), 1), "more than 1 arrivals|has begun|may come before"),
    "a slot is free before its product": (exchanged(issued(), 1, 1), "is never waited for"),
    "a product does not wait": (of_trip(issued(), 1, WaitPhase), "before its copy"),
    "no wait for free slots": (of_trip(issued(), 0, WaitPhase), "may come before phase 0 has ended"),
    "objects of products may not exist yet": (unmet(issued(), "before"), "before the blocks meet"),
    "three arrivals of four blocks": (arrivals(issued(**FOUR), 4), "3 of 4 arrivals"),
    "the last products are not waited for": (edited(issued(), 0, after=(Meet(),)), "are never waited for"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNBALANCED)
def test_changes_are_refused(name):
    made, reason = UNBALANCED[name]
    found = imbalance_of(made)
    assert found is not None
    assert any(part in found.reason for part in reason.split("|")), found


def test_a_schedule_says_that_products_arrive_elsewhere():
    lines = "\n".join(issued().lines())
    assert "arrive at free in all blocks that fill slots here when these uses are complete" in lines
    assert lines.count("meet the other blocks") == 4
