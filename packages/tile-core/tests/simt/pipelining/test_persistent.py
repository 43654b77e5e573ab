"""Schedules of persistent kernels: they balance for every trip count, and changes of them do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.simt.pipelining.ledger import imbalance_of
from tile_core.simt.pipelining.persistent import PersistentGrid, at_tile_ends, with_producer_role
from tile_core.simt.pipelining.schedule import Arrive, Expect, Use, WaitPhase, WaitUses

from .schedules import async_transacted, edited, without

PERSISTENT = PersistentGrid(132, 32, "warp", 32)


def shared(stages=3, arrivals="warp"):
    return with_producer_role(async_transacted(stages), 128, replace(PERSISTENT, arrivals=arrivals), "free")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("arrivals", ["warp", "thread"])
@pytest.mark.parametrize("stages", [2, 3, 4, 5, 8])
def test_both_balance_for_every_trip_count(stages, arrivals):
    made = shared(stages, arrivals)
    assert made.trips is None
    assert imbalance_of(made) is None
    assert imbalance_of(at_tile_ends(made)) is None


def _trip(made, number):
    return made.programs[number].iteration


def _without(made, number, kind):
    return edited(made, number, iteration=without(_trip(made, number), kind))


def _arrive(made, **parts):
    *steps, arrive = _trip(made, 1)
    assert isinstance(arrive, Arrive)
    return edited(made, 1, iteration=(*steps, replace(arrive, **parts)))


UNBALANCED = {
    "no wait for a free slot": lambda m: _without(m, 0, WaitPhase),
    "a wait for the phase of the trip itself": lambda m: edited(m, 0, iteration=(WaitPhase("free"), *_trip(m, 0)[1:])),
    "no bytes announced": lambda m: _without(m, 0, Expect),
    "no wait for a full slot": lambda m: _without(m, 1, WaitPhase),
    "slots are never free": lambda m: _without(m, 1, Arrive),
    "no wait for uses": lambda m: _without(m, 1, WaitUses),
    "a slot is free before its use has ended": lambda m: _arrive(m, offset=0),
    "each thread says so where warps are counted": lambda m: _arrive(m, each="thread"),
    "the role says so once": lambda m: _arrive(m, each="role"),
    "fewer arrivals": lambda m: replace(m, barriers=(m.barriers[0], replace(m.barriers[1], arrivals=3))),
    "uses are never waited for": lambda m: edited(m, 1, after=()),
}


@pytest.mark.parametrize("name", UNBALANCED)
def test_changes_are_refused(name):
    assert imbalance_of(UNBALANCED[name](shared())) is not None


def test_the_last_slot_of_a_tile_is_free_only_behind_its_use():
    made = at_tile_ends(shared())
    full, use, waits, arrive = _trip(made, 1)
    assert isinstance(use, Use)
    assert imbalance_of(edited(made, 1, iteration=(full, use, arrive, waits))) is not None
