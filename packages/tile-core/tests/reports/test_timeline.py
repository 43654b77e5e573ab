"""The order of a schedule's steps, as the page of ``explain`` draws it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tile_core.errors import InternalError
from tile_core.reports.timeline import MORE, USE, timeline_of
from tile_core.simt.pipelining.programs import asynchronous, uniform
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Copy,
    CopyGroup,
    CountedGroups,
    Expect,
    Issue,
    PhaseBarrier,
    Ring,
    RoleProgram,
    Schedule,
    Transactions,
    Use,
    WaitPhase,
)
from tile_core.simt.role import Role

BLOCK, PRODUCER = Role("the block", 0, 128), Role("the producer", 128, 1)


def group(completion, issuer=BLOCK):
    return CopyGroup("copies", (Copy("A", "A_s", 64),), issuer, completion)


def counted(make, stages=3, trips=None):
    groups = (group(CountedGroups()),)
    return Schedule("k", stages, trips, (Ring("A_s", 64),), groups, (make(BLOCK, stages, groups),))


def with_producer(stages=2, releases=True):
    uses = [WaitPhase("full"), Use(), *([Arrive("free", "role")] if releases else [])]
    copies = [WaitPhase("free", lag=1), Expect("full", 64), Issue("copies")]
    programs = (RoleProgram(PRODUCER, (), tuple(copies)), RoleProgram(BLOCK, (), tuple(uses)))
    barriers = (PhaseBarrier("full", 1), PhaseBarrier("free", 1))
    groups = (group(Transactions("full"), PRODUCER),)
    return Schedule("k", stages, None, (Ring("A_s", 64),), groups, programs, barriers)


def kinds(bars):
    return [(b.kind, b.iteration) for b in bars]


def test_copies_are_issued_before_the_iterations_that_use_them():
    found = timeline_of(counted(uniform))
    (bars,) = found.roles
    assert found.iterations == 3 + MORE
    shown = [b for b in kinds(bars) if b[0] in ("copy", "use")]
    assert shown[:6] == [("copy", 0), ("copy", 1), ("copy", 2), ("use", 0), ("copy", 3), ("use", 1)]
    assert kinds(found.slots["copies", 0]) == [("copy", 0), ("use", 0), ("copy", 3), ("use", 3)]
    assert [b.end - b.start for b in bars if b.kind == "use"] == [USE] * found.iterations


def test_a_slot_is_filling_until_a_role_has_waited_for_it():
    found = timeline_of(counted(uniform))
    waits = [b for b in found.roles[0] if b.kind == "wait"]
    for slot in range(3):
        first = found.slots["copies", slot][0]
        assert first.kind == "copy"
        assert first.end == waits[slot].end


def test_asynchronous_uses_are_in_flight_across_iterations():
    found = timeline_of(counted(asynchronous))
    (bars,) = found.roles
    assert [b.iteration for b in bars if b.kind == "flight"] == list(range(6))
    issued = {b.iteration: b for b in bars if b.kind == "use"}
    read = {b.iteration: b for slot in found.slots.values() for b in slot if b.kind == "use"}
    assert all(issued[n + 1].start < read[n].end for n in range(5))


def test_few_iterations():
    found = timeline_of(counted(uniform, trips=2))
    assert found.iterations == 2
    assert kinds(found.slots["copies", 2]) == []


def test_a_producer_waits_until_its_slot_is_free():
    found = timeline_of(with_producer())
    producer, block = found.roles
    uses = {b.iteration: b for b in block if b.kind == "use"}
    copies = {b.iteration: b for b in producer if b.kind == "copy"}
    assert all(copies[n].end <= uses[n].start for n in uses)
    assert all(copies[n + 2].start >= uses[n].end for n in range(found.iterations - 2))
    assert [b.iteration for b in producer if b.kind == "wait"] == [2, 3, 4]


def test_a_slot_that_is_not_released_is_seen():
    early = timeline_of(with_producer(releases=False))
    bars = early.slots["copies", 0]
    assert any(a.end > b.start for a, b in pairwise(bars))


def test_roles_that_wait_forever_are_an_internal_error():
    schedule = with_producer()
    lost = replace(schedule.programs[0], iteration=(WaitPhase("full"), *schedule.programs[0].iteration))
    with pytest.raises(InternalError, match="loop k wait forever"):
        timeline_of(replace(schedule, programs=(lost, schedule.programs[1])))
