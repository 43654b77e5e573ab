"""Programs of roles: the copies, waits and uses of each iteration, by kind of overlap."""

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
    """Copies of a loop whose iterations overlap.

    Attributes
    ----------
    group
        The copies.
    late, soon
        Whether the tail of their iteration reads them (it runs in the next one); whether the rest of it does.
    """

    group: CopyGroup
    late: bool
    soon: bool

    @property
    def rings(self) -> tuple[str, ...]:
        """The rings that they fill."""
        return tuple(dict.fromkeys(c.ring for c in self.group.copies))


def uniform(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of a block in which all threads copy and compute.

    The copies for ``stages - 1`` iterations later go to the slot of the preceding iteration: the block barrier after
    the waits makes all threads' copies visible and ensures that all reads of that slot are complete.
    """
    before = tuple(step for iteration in range(stages - 1) for step in _issue(groups, iteration))
    after: tuple[Step, ...] = (WaitGroups(0), Sync()) if _counted(groups) else (Sync(),)
    return RoleProgram(block, before, (*_waits(groups, stages), Sync(), *_issue(groups, stages - 1), Use()), after)


def asynchronous(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of a block with a product in flight across iterations.

    An iteration begins its use before it waits for the use of the iteration before, so matrix units stay busy. The
    block barrier after that wait releases the slot of the iteration before.
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
    """Return the steps of a block whose slots are filled by multicast.

    Several blocks fill a slot, so it is free when its uses have ended in all of them: each block arrives in all others,
    and only the threads that issue copies wait for these arrivals. This needs no block barrier.

    Parameters
    ----------
    free
        The barrier of free slots.
    each
        Who arrives there.
    """
    counted = _counted(groups)
    before = tuple(step for iteration in range(stages - 1) for step in _issue(groups, iteration))
    parted = (Sync(),) if counted else ()
    is_free = WaitPhase(free, offset=stages - 1, lag=1, alone=True)
    iteration = (
        *_waits(groups, stages), *parted, Use(in_flight=True), WaitUses(1), Arrive(free, each, -1, everywhere=True),
        *parted, is_free, *_issue(groups, stages - 1),
    )  # fmt: skip
    rest: tuple[Step, ...] = (WaitGroups(0),) if counted else ()
    # The last iteration's slot is not reused; exit once no peer can multicast to it.
    return RoleProgram(block, (Meet(), *before, WaitUses(0)), iteration, (WaitUses(0), *rest, Meet()))


@dataclass(frozen=True)
class PingPongGroup:
    """Threads of a block that issue their products of an iteration after the preceding group.

    Attributes
    ----------
    role
        The threads.
    barrier
        At which the preceding group arrives: for the first group, the last group in the iteration before.
    arrivals
        Arrivals of a phase.
    """

    role: Role
    barrier: str
    arrivals: int


def ping_pong(consumers: Sequence[PingPongGroup], stages: int, groups: Sequence[TimedGroup]) -> tuple[RoleProgram, ...]:
    """Return the steps of ping-pong groups; the last one issues all transactions.

    While one group works on its accumulator, the products of another one run. No block barrier orders the groups. When
    the last group is signaled in an iteration, all groups have waited for their products of the iteration before, the
    last one because it arrives at its own barrier, too.
    """
    whole = overlapping(consumers[0].role, stages, groups)
    found = []
    for at, consumer in enumerate(consumers):
        last = at + 1 == len(consumers)
        issues = [s for s in whole.iteration if last and isinstance(s, (Expect, Issue))]
        phases = [s for s in whole.iteration if isinstance(s, WaitPhase)]
        uses = [s for s in whole.iteration if isinstance(s, Use) and s.in_flight]
        begun = Arrive(consumers[0 if last else at + 1].barrier, offset=int(last))
        ended = (Arrive(consumer.barrier, offset=1),) if last else ()
        iteration = (*phases, WaitPhase(consumer.barrier), *issues, *uses, begun, WaitUses(1), WaitUses(0), *ended)
        before = (*whole.before, Arrive(consumers[0].barrier), Arrive(consumer.barrier)) if last else ()
        found.append(RoleProgram(consumer.role, before, iteration, whole.after))
    return tuple(found)


def overlapping(block: Role, stages: int, groups: Sequence[TimedGroup]) -> RoleProgram:
    """Return the steps of a block that delays each iteration's tail to the next.

    The last tail follows the loop.

    In an iteration, the slots read in the iteration before are free, and those of the tail one iteration later. So
    copies for tails are issued one iteration later, and need a third slot only if the rest of their iteration reads
    them too.
    """
    counted = _counted(tuple(g.group for g in groups))

    def issue(offset: int) -> tuple[Step, ...]:
        found: list[Step] = []
        for g in groups:
            found += _issue_one(g.group, offset - g.late) if offset >= g.late else ()
        return (*found, Commit()) if counted else tuple(found)

    def phases(of: Sequence[TimedGroup], offset: int) -> list[Step]:
        return [
            WaitPhase(g.group.completion.barrier, offset) for g in of if isinstance(g.group.completion, Transactions)
        ]

    def use(rings: Sequence[str], offset: int, in_flight: bool) -> tuple[Step, ...]:
        return (Use(offset, tuple(rings), in_flight),) if rings else ()

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


def _issue(groups: tuple[CopyGroup, ...], offset: int) -> tuple[Step, ...]:
    """Return the steps that begin the copies of an iteration."""
    steps: list[Step] = []
    for group in groups:
        steps += _issue_one(group, offset)
    return (*steps, Commit()) if _counted(groups) else tuple(steps)


def _issue_one(group: CopyGroup, offset: int) -> tuple[Step, ...]:
    issued = Issue(group.name, offset)
    if not isinstance(group.completion, Transactions):
        return (issued,)
    return Expect(group.completion.barrier, group.bytes, offset), issued


def _waits(groups: tuple[CopyGroup, ...], stages: int) -> tuple[Step, ...]:
    """Return the steps that wait for the copies of the current iteration."""
    counted = (WaitGroups(stages - 2),) if _counted(groups) else ()
    return (*counted, *(WaitPhase(g.completion.barrier) for g in groups if isinstance(g.completion, Transactions)))


def _counted(groups: tuple[CopyGroup, ...]) -> bool:
    return any(isinstance(g.completion, CountedGroups) for g in groups)
