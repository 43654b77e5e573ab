"""Programs of roles: the steps of a block whose threads do all things together."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.records import dataclass
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    CopyGroup,
    CountedGroups,
    Each,
    Expect,
    Issue,
    Meet,
    RoleProgram,
    Step,
    Sync,
    Transactions,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.role import Role


@dataclass(frozen=True)
class TimedGroup:
    """Copies of a loop whose trips overlap.

    Attributes
    ----------
    group
        The copies.
    late, soon
        Whether the tail of their trip reads them, which runs in the next one; whether the rest of their trip does.
    """

    group: CopyGroup
    late: bool
    soon: bool

    @property
    def rings(self) -> tuple[str, ...]:
        """What they fill."""
        return tuple(dict.fromkeys(c.ring for c in self.group.copies))


def uniform(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of a block whose threads do all things together.

    The copies of trip ``stages - 1`` ahead go to the slot of the trip before: the barrier of the block after the waits
    says both that all threads' copies are there and that nobody reads that slot any more.
    """
    before = tuple(step for iteration in range(stages - 1) for step in _issue(groups, iteration))
    after: tuple[Step, ...] = (WaitGroups(0), Sync()) if _counted(groups) else (Sync(),)
    return RoleProgram(block, before, (*_waits(groups, stages), Sync(), *_issue(groups, stages - 1), Use()), after)


def asynchronous(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of such a block if the use of a trip lasts until that of the next trip has begun.

    A trip begins its use before it waits for the one before: the units that compute always have work. Only then is the
    slot of the trip before free, and the barrier of the block behind that wait says so to all threads.
    """
    before = tuple(step for iteration in range(stages - 1) for step in _issue(groups, iteration))
    arrived = () if all(isinstance(g.completion, Transactions) for g in groups) else (Sync(),)
    iteration = (
        *_waits(groups, stages),
        *arrived,
        Use(in_flight=True),
        WaitUses(1),
        Sync(),
        *_issue(groups, stages - 1),
    )
    rest: tuple[Step, ...] = (WaitGroups(0), Sync()) if _counted(groups) else (Sync(),)
    return RoleProgram(block, (*before, WaitUses(0)), iteration, (WaitUses(0), *rest))


def in_cluster(
    block: Role, stages: int, groups: tuple[CopyGroup, ...], free: str, each: Each = "thread"
) -> RoleProgram:
    """Return the steps of such a block if other blocks of its cluster bring tiles to its slots, and it to theirs.

    A slot is filled by several blocks, so it is free when its uses have ended in all of them: each says so to all, and
    whoever issues copies waits for that. Nobody else does, and no barrier of the block is needed for that.

    Parameters
    ----------
    free
        The barrier that says so.
    each
        Who arrives there.
    """
    counted = _counted(groups)
    before = tuple(step for iteration in range(stages - 1) for step in _issue(groups, iteration))
    parted = (Sync(),) if counted else ()
    is_free = WaitPhase(free, ahead=stages - 1, lag=1, alone=True)
    iteration = (
        *_waits(groups, stages), *parted, Use(in_flight=True), WaitUses(1), Arrive(free, each, -1, everywhere=True),
        *parted, is_free, *_issue(groups, stages - 1),
    )  # fmt: skip
    rest: tuple[Step, ...] = (WaitGroups(0),) if counted else ()
    # Nobody waits for the slot of the last trip. A block ends when nobody brings anything to it any more.
    return RoleProgram(block, (Meet(), *before, WaitUses(0)), iteration, (WaitUses(0), *rest, Meet()))


@dataclass(frozen=True)
class PingPongGroup:
    """Threads of a block that begin the products of a trip after those of the turn before them.

    Attributes
    ----------
    role
        The threads.
    barrier
        At which the turn before arrives: the last one of the trip before for the first one.
    arrivals
        That give the turn.
    """

    role: Role
    barrier: str
    arrivals: int


def ping_pong(consumers: Sequence[PingPongGroup], stages: int, groups: Sequence[TimedGroup]) -> tuple[RoleProgram, ...]:
    """Return the steps of such groups of threads, whose copies are transactions that the last of them issues.

    While one group works on sums, the products of another one run. No barrier of the block orders them: when it is the
    last one's turn in a trip, all groups have waited for their products of the trip before, the last one because it
    arrives at its own barrier, too.
    """
    whole = overlapping(consumers[0].role, stages, groups)
    found = []
    for at, consumer in enumerate(consumers):
        last = at + 1 == len(consumers)
        issues = [s for s in whole.iteration if last and isinstance(s, (Expect, Issue))]
        phases = [s for s in whole.iteration if isinstance(s, WaitPhase)]
        uses = [s for s in whole.iteration if isinstance(s, Use) and s.in_flight]
        begun = Arrive(consumers[0 if last else at + 1].barrier, ahead=int(last))
        ended = (Arrive(consumer.barrier, ahead=1),) if last else ()
        iteration = (*phases, WaitPhase(consumer.barrier), *issues, *uses, begun, WaitUses(1), WaitUses(0), *ended)
        before = (*whole.before, Arrive(consumers[0].barrier), Arrive(consumer.barrier)) if last else ()
        found.append(RoleProgram(consumer.role, before, iteration, whole.after))
    return tuple(found)


def overlapping(block: Role, stages: int, groups: Sequence[TimedGroup]) -> RoleProgram:
    """Return the steps of such a block if the tail of each trip runs in the next one, or behind the loop.

    In a trip the slots are free that the trip before has read, and its tail that of the trip before that: so what tails
    read is copied one trip later than the rest, and needs a third slot only if the rest of its trip reads it too.
    """
    counted = _counted(tuple(g.group for g in groups))

    def issue(ahead: int) -> tuple[Step, ...]:
        found: list[Step] = []
        for g in groups:
            found += _issue_one(g.group, ahead - g.late) if ahead >= g.late else ()
        return (*found, Commit()) if counted else tuple(found)

    def phases(of: Sequence[TimedGroup], ahead: int) -> list[Step]:
        return [
            WaitPhase(g.group.completion.barrier, ahead) for g in of if isinstance(g.group.completion, Transactions)
        ]

    def use(rings: Sequence[str], ahead: int, in_flight: bool) -> tuple[Step, ...]:
        return (Use(ahead, tuple(rings), in_flight),) if rings else ()

    soon, only_late = [g for g in groups if g.soon], [g for g in groups if not g.soon]
    now = [r for g in soon for r in g.rings]
    before_it = [r for g in groups if g.late for r in g.rings]
    both = any(g.late and g.soon and isinstance(g.group.completion, CountedGroups) for g in groups)
    here: tuple[Step, ...] = (WaitGroups(stages - 2 - both),) if counted else ()
    iteration = (
        *here, *phases(soon, 0), *phases(only_late, -1), Sync(), *issue(stages - 1),
        *use(now, 0, True), *use(before_it, -1, True), WaitUses(1), WaitUses(0), *use(now, 0, False),
    )  # fmt: skip
    arrived = () if all(isinstance(g.group.completion, Transactions) for g in groups) else (Sync(),)
    rest = (*((WaitGroups(0),) if counted else ()), *phases(only_late, -1), *arrived)
    before = tuple(step for iteration in range(stages - 1) for step in issue(iteration))
    return RoleProgram(block, before, iteration, (*rest, *use(before_it, -1, True), WaitUses(0), Sync()))


def _issue(groups: tuple[CopyGroup, ...], ahead: int) -> tuple[Step, ...]:
    """Return the steps that begin the copies of a trip."""
    steps: list[Step] = []
    for group in groups:
        steps += _issue_one(group, ahead)
    return (*steps, Commit()) if _counted(groups) else tuple(steps)


def _issue_one(group: CopyGroup, ahead: int) -> tuple[Step, ...]:
    issued = Issue(group.name, ahead)
    if not isinstance(group.completion, Transactions):
        return (issued,)
    return Expect(group.completion.barrier, group.bytes, ahead), issued


def _waits(groups: tuple[CopyGroup, ...], stages: int) -> tuple[Step, ...]:
    """Return the steps that wait for the copies of the current trip."""
    counted = (WaitGroups(stages - 2),) if _counted(groups) else ()
    return (*counted, *(WaitPhase(g.completion.barrier) for g in groups if isinstance(g.completion, Transactions)))


def _counted(groups: tuple[CopyGroup, ...]) -> bool:
    return any(isinstance(g.completion, CountedGroups) for g in groups)
