"""The ledger: balanced schedules pass, and each way to unbalance one is refused for its reason."""

from dataclasses import replace

import pytest

from tile_core.errors import Where
from tile_core.errors.ops import UnbalancedSchedule
from tile_core.simt.pipelining.ledger import imbalance_of, require_balanced
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    Expect,
    Issue,
    PhaseBarrier,
    RoleProgram,
    Sync,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.role import Role

from .schedules import (
    BLOCK,
    BYTES,
    async_transacted,
    asynchronous,
    counted,
    edited,
    mixed,
    placed,
    specialised,
    swapped,
    transacted,
    without,
)

KINDS = (counted, placed, transacted, specialised, mixed, asynchronous, async_transacted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", [2, 3, 4, 6])
def test_these_balance(kind, stages):
    assert imbalance_of(kind(stages)) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_a_constant_trip_count(kind, trips):
    assert imbalance_of(kind(3, trips)) is None


def test_one_slot_needs_no_more():
    one = specialised(1)
    assert imbalance_of(one) is None


def iteration(made, number=0):
    return made.programs[number].iteration


def before(made):
    return made.programs[0].before


def wrong_arrivals(n):
    made = transacted()
    return replace(made, barriers=(PhaseBarrier("full", n),))


def empty_arrivals(n):
    made = specialised()
    return replace(made, barriers=(made.barriers[0], PhaseBarrier("empty", n)))


def wrong_bytes(n):
    made = transacted()

    def change(step):
        return replace(step, bytes=n)

    return edited(
        made, before=swapped(before(made), Expect, change), iteration=swapped(iteration(made), Expect, change)
    )


def missing(kind, made, number=0, nth=0):
    return edited(made, number, iteration=without(iteration(made, number), kind, nth))


def waits(made, number=0, **changes):
    return edited(made, number, iteration=swapped(iteration(made, number), WaitPhase, lambda s: replace(s, **changes)))


def pending(n):
    made = counted()
    return edited(made, iteration=swapped(iteration(made), WaitGroups, lambda s: WaitGroups(n)))


def early(made, **changes):
    return edited(made, iteration=swapped(iteration(made), Issue, lambda s: replace(s, **changes)))


def issued_twice():
    made = transacted()
    return edited(made, iteration=(*iteration(made), Issue("copies", 2)))


def released_before_use():
    made = specialised()
    wait, use, arrive = iteration(made, 1)
    return edited(made, 1, iteration=(wait, arrive, use))


def too_many_before():
    made = transacted()
    return edited(made, before=(*before(made), Expect("full", BYTES, 2), Issue("copies", 2)))


def too_few_before():
    made = transacted()
    return edited(made, before=before(made)[:2])


def all_threads_produce():
    """Threads that only wait may be a whole round behind the one that copies."""
    made = specialised()
    many = Role("the producers", 128, 128)
    return replace(made, programs=(replace(made.programs[0], role=many), made.programs[1]))


def left_early():
    """The consumers leave the loop one trip before the producer."""
    made = specialised()
    uses = RoleProgram(BLOCK, (), (WaitPhase("full", -1), Use(-1), Arrive("empty", "warp", -1)))
    return replace(made, programs=(made.programs[0], uses))


def a_part_syncs():
    made = specialised()
    return edited(made, 0, iteration=(WaitPhase("empty"), *iteration(made, 0)[1:]))


def announced_after_arrival():
    """Bytes that are announced for the trip after."""
    made = specialised()
    return edited(made, 0, iteration=swapped(iteration(made, 0), Expect, lambda s: replace(s, offset=1)))


def arrived_one_iteration_early():
    made = specialised()
    return edited(made, 1, iteration=swapped(iteration(made, 1), Arrive, lambda s: replace(s, offset=1)))


def in_flight(n, made=None):
    """Uses that a trip leaves in flight."""
    made = asynchronous() if made is None else made
    return edited(made, iteration=swapped(iteration(made), WaitUses, lambda s: WaitUses(n)))


def filled_before_the_wait(made):
    """The slot is filled before the use of the trip before is waited for, behind a barrier of the block."""
    steps = iteration(made)
    at = next(i for i, s in enumerate(steps) if isinstance(s, WaitUses))
    return edited(made, iteration=(*steps[:at], *steps[at + 1 :], steps[at]))


UNBALANCED = {
    # arrivals
    "more arrivals than come": (wrong_arrivals(2), "full", 1, "it gets 1 of 2 arrivals"),
    "fewer arrivals than come": (empty_arrivals(3), "empty", 1, "gets 4 arrivals of 3"),
    "an arrival of each thread where one of each warp is meant": (
        edited(specialised(), 1, iteration=(WaitPhase("full"), Use(), Arrive("empty", "thread"))), "empty", 1,
        "arrivals of 4",
    ),
    "an arrival twice": (
        edited(specialised(), 1, iteration=(*iteration(specialised(), 1), Arrive("empty", "warp"))), "empty", 1,
        "arrivals of 4",
    ),
    "an arrival that is missing": (missing(Arrive, specialised(), 1), "empty", 4, "never passes: it gets 0 of 4"),
    "an arrival for another trip": (arrived_one_iteration_early(), "empty", 2, "may end while a thread waits for"),
    # bytes
    "fewer bytes than come": (wrong_bytes(BYTES - 32), "full", 1, "64 bytes are announced and 96 delivered"),
    "more bytes than come": (wrong_bytes(BYTES + 32), "full", 1, "128 bytes are announced and 96 delivered"),
    "bytes without an expect": (missing(Expect, specialised()), "full", 1, "it gets 0 of 1 arrivals"),
    "bytes announced for another trip": (announced_after_arrival(), "full", 1, "slot 0 never passes"),
    "bytes of one copy twice": (issued_twice(), "A_s", 3, "is filled twice for iteration 2"),
    # waits
    "no wait for the copies": (missing(WaitPhase, transacted()), "A_s", 1, "before its copy is complete"),
    "no wait for the slot": (missing(WaitPhase, specialised()), "full", 4, "may come before phase 0 has ended"),
    "a wait for the wrong phase of the slot": (waits(specialised(), lag=2), "empty", 1, "names phase -2"),
    "a wait for a phase that never comes": (waits(specialised(), lag=0), "empty", 1, "never passes"),
    "a wait for the copies of the trip before": (waits(transacted(), lag=1), "A_s", 1, "before its copy is complete"),
    "a wait a trip too early": (waits(transacted(), offset=1), "A_s", 1, "before its copy is complete"),
    "one group too few is waited for": (pending(2), "A_s", 1, "before its copy is complete"),
    "a wait for no group": (missing(WaitGroups, counted()), "A_s", 1, "before its copy is complete"),
    "a group that is not ended": (missing(Commit, counted()), "A_s", 2, "before its copy is complete"),
    "copies that are never waited for": (
        edited(pending(2), iteration=without(iteration(pending(2)), Use), after=(Sync(),)), "copies", 1,
        "never waited for",
    ),
    # slots
    "no barrier of the block": (missing(Sync, counted()), "A_s", 1, "before its copy is issued"),
    "no barrier before the slot is filled again": (missing(Sync, transacted()), "A_s", 4, "while it may still be read"),
    "the slot of the trip itself is filled": (early(counted(), offset=3), "A_s", 3, "before its copy is issued"),
    "a slot too many is filled before the loop": (too_many_before(), "full", 3, "gets 2 arrivals of 1"),
    "a slot too few is filled before the loop": (too_few_before(), "full", 2, "never passes"),
    "a slot is given back before it is read": (released_before_use(), "A_s", 4, "while it may still be read"),
    # uses that last
    "two uses in flight": (in_flight(2), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be read"),
    "two uses in flight, copies of boxes": (
        in_flight(2, async_transacted()), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be read",
    ),
    "no wait for uses": (missing(WaitUses, asynchronous()), "A_s", 4, "slot 0 is filled for iteration 3 while it may"),
    "a slot is filled before the wait": (
        filled_before_the_wait(asynchronous()), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be read",
    ),
    "a slot is filled before the wait, copies of boxes": (
        filled_before_the_wait(async_transacted()), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be",
    ),
    "no barrier behind the wait for uses": (
        missing(Sync, asynchronous(), nth=1), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be read",
    ),
    "no barrier behind the wait for uses, copies of boxes": (
        missing(Sync, async_transacted()), "A_s", 4, "slot 0 is filled for iteration 3 while it may still be read",
    ),
    "no barrier before a use": (missing(Sync, asynchronous()), "A_s", 1, "before its copy is"),
    "no wait for uses behind the loop": (
        edited(asynchronous(), after=(WaitGroups(0), Sync())), "k", 1,
        "the use of iteration 0 is never waited for",
    ),
    "a wait behind the loop that leaves one": (
        edited(asynchronous(), after=(WaitUses(1), WaitGroups(0), Sync())), "k", 1,
        "the use of iteration 0 is never waited for",
    ),
    # the end
    "the last trip's slot is never waited for": (left_early(), "copies", 1, "never waited for"),
    "threads that wait and do not copy": (all_threads_produce(), "empty", 1, "may end while a thread waits"),
    "the slot of the next trip is read": (
        edited(transacted(), iteration=(*iteration(transacted())[:-1], Use(1))), "A_s", 2,
        "before its copy is complete",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNBALANCED)
def test_these_are_refused(name):
    made, what, trips, reason = UNBALANCED[name]
    found = imbalance_of(made)
    assert found is not None
    assert (found.what, found.trips) == (what, trips), found
    assert reason in found.reason


def test_the_refusal_names_barrier_and_trip_count():
    with pytest.raises(UnbalancedSchedule) as caught:
        require_balanced(wrong_bytes(64), Where("kernel.py", 12))
    text = str(caught.value)
    assert "[K228]" in text
    assert "the loop k does not balance for a trip count of 1: full" in text
    assert "64 bytes are announced and 96 delivered" in text
    assert "kernel.py:12" in text
    require_balanced(transacted())


def test_a_schedule_says_what_happens_when():
    assert transacted().lines() == [
        "copies: A_s, B_s, 96 bytes an iteration by first of the block (thread 0): bytes counted by full",
        "full: 3 barriers of 1 arrival",
        "the block, before: expect 96 bytes at full; issue copies; expect 96 bytes at full of iteration +1; "
        "issue copies of iteration +1",
        "the block, each iteration: wait for full; sync; "
        "expect 96 bytes at full of iteration +2; issue copies of iteration +2; "
        "use the slots",
        "the block, after: sync",
    ]
    assert counted().lines()[-2:] == [
        "the block, each iteration: wait for all but 1 group; sync; "
        "issue copies of iteration +2; commit; use the slots",
        "the block, after: wait for all groups; sync",
    ]
    assert asynchronous().lines()[-2:] == [
        "the block, each iteration: wait for all but 1 group; sync; use the slots, asynchronous until waited for; "
        "wait for all but 1 use; sync; issue copies of iteration +2; commit",
        "the block, after: wait for all uses; wait for all groups; sync",
    ]
    assert specialised().lines()[-2:] == [
        "the producer, each iteration: wait for empty, 1 phase earlier; expect 96 bytes at full; issue copies",
        "the block, each iteration: wait for full; use the slots; arrive at empty, one a warp",
    ]
