"""Blocks of a cluster that bring tiles together: schedules that balance, and the ways in which others do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.simt.pipelining.ledger import imbalance_of
from tile_core.simt.pipelining.schedule import Arrive, Expect, Meet, PhaseBarrier, WaitPhase, WaitUses

from .schedules import BYTES, clustered, edited, swapped, without

FOUR = {"sets": ((0, 2), (1, 3)), "blocks": 4}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("how", [{}, {"each": "thread"}, FOUR], ids=["warps", "threads", "four"])
@pytest.mark.parametrize("stages", [2, 3, 4, 6])
def test_these_balance(stages, how):
    assert imbalance_of(clustered(stages, **how)) is None


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_a_constant_trip_count(trips):
    assert imbalance_of(clustered(3, trips)) is None
    assert imbalance_of(clustered(3, trips, **FOUR)) is None


def waits(**changes):
    """Change the wait for a free slot."""
    steps = clustered().programs[0].iteration
    made = swapped(steps, WaitPhase, lambda s: replace(s, **changes) if s.barrier == "free" else s)
    return edited(clustered(), iteration=made)


def of_trip(kind, nth=0):
    return edited(clustered(), iteration=without(clustered().programs[0].iteration, kind, nth))


def arrivals(number):
    made = clustered()
    return replace(made, barriers=(made.barriers[0], PhaseBarrier("free", number)))


def without_meeting(where):
    program = clustered().programs[0]
    return edited(clustered(), **{where: without(getattr(program, where), Meet)})


def own_arrivals_only():
    steps = swapped(clustered().programs[0].iteration, Arrive, lambda s: replace(s, everywhere=False))
    return edited(clustered(), iteration=steps)


def bytes_of_its_own_share():
    program = clustered().programs[0]
    parts = {
        n: swapped(getattr(program, n), Expect, lambda s: replace(s, bytes=BYTES - 16)) for n in ("before", "iteration")
    }
    return edited(clustered(), **parts)


def free_before_its_use_has_ended():
    steps = list(clustered().programs[0].iteration)
    at = next(i for i, s in enumerate(steps) if isinstance(s, WaitUses))
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    return edited(clustered(), iteration=tuple(steps))


def of_sets(*sets, blocks=2):
    made = clustered()
    copies = tuple(replace(c, multicast=sets) if c.multicast else c for c in made.groups[0].copies)
    return replace(made, groups=(replace(made.groups[0], copies=copies),), blocks=blocks)


UNBALANCED = {
    "no wait for a free slot": (of_trip(WaitPhase, 1), "A_s", 4, "is filled for iteration 3 while it may still be"),
    "a wait for the phase of the slot's own trip": (waits(lag=0), "free", 3, "never passes"),
    "all threads wait for a free slot": (waits(alone=False), None, None, None),
    "arrivals of its own block only": (own_arrivals_only(), "free", 2, "it gets 4 of 8 arrivals"),
    "arrivals of its own block only, and as many expected": (
        replace(own_arrivals_only(), barriers=arrivals(4).barriers), "B_s", 4, "while it may still be read",
    ),
    "fewer arrivals expected than come": (arrivals(4), "free", 2, "comes when phase 1 of slot 0 has begun"),
    "more arrivals expected than come": (arrivals(9), "free", 2, "it gets 8 of 9 arrivals"),
    "no arrival in a trip": (of_trip(Arrive), "free", 4, "never passes: it gets 0 of 8 arrivals"),
    "a slot is free before its use has ended": (free_before_its_use_has_ended(), "A_s", 4, "it may still be read"),
    "the bytes of its own share": (bytes_of_its_own_share(), "B_s", 1, "before its copy is complete"),
    "objects that may not exist yet": (without_meeting("before"), "full", 1, "before the blocks meet"),
    "objects that may be gone": (without_meeting("after"), "free", 2, "before another one has used its objects"),
    "a set without a block": (of_sets((0,), blocks=2), "B_s", 0, "do not partition the cluster"),
    "a block in two sets": (of_sets((0, 1), (1,)), "B_s", 0, "do not partition the cluster"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNBALANCED)
def test_these_are_refused(name):
    made, what, trips, reason = UNBALANCED[name]
    found = imbalance_of(made)
    if reason is None:  # slower, but right
        assert found is None
        return
    assert found is not None
    assert (found.what, found.trips) == (what, trips), found
    assert reason in found.reason


def test_a_schedule_says_what_happens_when():
    lines = clustered().lines()
    assert "B_s: blocks 0, 1 of a cluster multicast it" in lines
    assert lines[-3] == (
        "the block, before: meet the other blocks; expect 96 bytes at full; issue copies; "
        "expect 96 bytes at full of iteration +1; issue copies of iteration +1; wait for all uses"
    )
    assert "arrive at free in all blocks that fill slots here of iteration -1, one a warp" in lines[-2]
    assert "wait for free of iteration +2, 1 phase earlier, the first thread" in lines[-2]
    assert lines[-1] == "the block, after: wait for all uses; meet the other blocks"
