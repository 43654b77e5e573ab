"""Schedules by hand."""

from __future__ import annotations

from dataclasses import replace

from tile_core.simt.pipelining.programs import in_cluster
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    Copy,
    CopyGroup,
    CountedGroups,
    Expect,
    Issue,
    PhaseBarrier,
    Ring,
    RoleProgram,
    Schedule,
    Sync,
    Transactions,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.role import Role

BLOCK = Role("the block", 0, 128)
PRODUCER = Role("the producer", 128, 1)
RINGS = (Ring("A_s", 64), Ring("B_s", 32))
COPIES = (Copy("A", "A_s", 64), Copy("B", "B_s", 32))
BYTES = 96


def schedule(stages, trips, groups, programs, barriers=()):
    return Schedule("k", stages, trips, RINGS, groups, programs, barriers)


def counted(stages=3, trips=None):
    """Groups that each thread counts."""
    before = tuple(s for t in range(stages - 1) for s in (Issue("copies", t), Commit()))
    iteration = (WaitGroups(stages - 2), Sync(), Issue("copies", stages - 1), Commit(), Use())
    group = CopyGroup("copies", COPIES, BLOCK, CountedGroups())
    return schedule(stages, trips, (group,), (RoleProgram(BLOCK, before, iteration, (WaitGroups(0), Sync())),))


def transacted(stages=3, trips=None):
    """Bytes that a barrier counts, issued by the first thread of the block."""
    before = tuple(s for t in range(stages - 1) for s in (Expect("full", BYTES, t), Issue("copies", t)))
    last = stages - 1
    iteration = (WaitPhase("full"), Sync(), Expect("full", BYTES, last), Issue("copies", last), Use())
    group = CopyGroup("copies", COPIES, BLOCK.leader, Transactions("full"))
    return schedule(
        stages, trips, (group,), (RoleProgram(BLOCK, before, iteration, (Sync(),)),), (PhaseBarrier("full", 1),)
    )


def specialised(stages=3, trips=None):
    """A thread that copies, and threads that use what it has copied."""
    group = CopyGroup("copies", COPIES, PRODUCER, Transactions("full"))
    copies = RoleProgram(PRODUCER, (), (WaitPhase("empty", lag=1), Expect("full", BYTES), Issue("copies")))
    uses = RoleProgram(BLOCK, (), (WaitPhase("full"), Use(), Arrive("empty", "warp")))
    barriers = (PhaseBarrier("full", 1), PhaseBarrier("empty", 4))
    return schedule(stages, trips, (group,), (copies, uses), barriers)


def asynchronous(stages=3, trips=None):
    """Groups that each thread counts, and uses that last until those of the next trip have begun."""
    made = counted(stages, trips)
    (program,) = made.programs
    waits, sync, issue, commit, _ = program.iteration
    iteration = (waits, sync, Use(in_flight=True), WaitUses(1), Sync(), issue, commit)
    return edited(made, before=(*program.before, WaitUses(0)), iteration=iteration, after=(WaitUses(0), *program.after))


def clustered(stages=3, trips=None, sets=((0, 1),), each="warp", blocks=2):
    """The blocks of a cluster bring one of two tiles together."""
    rows = ((0, 1), (2, 3)) if blocks == 4 else ()
    copies = (replace(COPIES[0], multicast=rows), replace(COPIES[1], multicast=sets))
    group = CopyGroup("copies", copies, BLOCK.leader, Transactions("full"))
    program = in_cluster(BLOCK, stages, (group,), "free", each)
    arrivals = (2 if blocks == 2 else 3) * {"thread": BLOCK.count, "warp": BLOCK.count // 32}[each]
    barriers = (PhaseBarrier("full", 1), PhaseBarrier("free", arrivals))
    return replace(schedule(stages, trips, (group,), (program,), barriers), blocks=blocks)


def edited(made, number=0, **parts):
    """Return a schedule with parts of one of its programs changed."""
    programs = list(made.programs)
    programs[number] = replace(programs[number], **parts)
    return replace(made, programs=tuple(programs))
