"""Schedules that balance, by hand: what tests change to see it refused."""

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
    Immediate,
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


def placed(stages=3, trips=None):
    """Copies that are complete when they have been executed."""
    before = tuple(Issue("copies", t) for t in range(stages - 1))
    group = CopyGroup("copies", COPIES, BLOCK, Immediate())
    return schedule(
        stages, trips, (group,), (RoleProgram(BLOCK, before, (Sync(), Issue("copies", stages - 1), Use()), (Sync(),)),)
    )


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


def mixed(stages=3, trips=None):
    """One operand by groups that threads count, one by transactions."""
    a = CopyGroup("a", COPIES[:1], BLOCK, CountedGroups())
    b = CopyGroup("b", COPIES[1:], BLOCK.leader, Transactions("full"))

    def issue(t):
        return (Issue("a", t), Expect("full", 32, t), Issue("b", t), Commit())

    before = tuple(s for t in range(stages - 1) for s in issue(t))
    iteration = (WaitGroups(stages - 2), WaitPhase("full"), Sync(), *issue(stages - 1), Use())
    return schedule(
        stages,
        trips,
        (a, b),
        (RoleProgram(BLOCK, before, iteration, (WaitGroups(0), Sync())),),
        (PhaseBarrier("full", 1),),
    )


def asynchronous(stages=3, trips=None):
    """Groups that each thread counts, and uses that last until those of the next trip have begun."""
    made = counted(stages, trips)
    (program,) = made.programs
    waits, sync, issue, commit, _ = program.iteration
    iteration = (waits, sync, Use(in_flight=True), WaitUses(1), Sync(), issue, commit)
    return edited(made, before=(*program.before, WaitUses(0)), iteration=iteration, after=(WaitUses(0), *program.after))


def async_transacted(stages=3, trips=None):
    """The same of bytes that a barrier counts: the wait for the phase needs no barrier of the block behind it."""
    made = transacted(stages, trips)
    waits, _, expect, issue, _ = made.programs[0].iteration
    iteration = (waits, Use(in_flight=True), WaitUses(1), Sync(), expect, issue)
    return edited(made, iteration=iteration, after=(WaitUses(0), Sync()))


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


def without(steps, kind, nth=0):
    """Return steps without the nth of a kind."""
    positions = [i for i, s in enumerate(steps) if isinstance(s, kind)]
    return (*steps[: positions[nth]], *steps[positions[nth] + 1 :])


def swapped(steps, kind, new):
    """Return steps with those of a kind replaced."""
    return tuple(new(s) if isinstance(s, kind) else s for s in steps)
