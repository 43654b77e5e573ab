"""The schedule of a pipelined loop: copies, barriers, and the steps of each role.

``plan.py`` makes schedules, ``writers.py`` writes them as statements, ``barrier_proof`` checks these. Iteration
``t`` of a loop uses slot ``t % stages`` of each ring, and phase ``t // stages`` of the slot's barriers.
"""

from __future__ import annotations

from typing import Literal

from tile_core.records import dataclass
from tile_core.simt.role import Role


@dataclass(frozen=True)
class Ring:
    """A shared buffer with one slot per stage.

    Attributes
    ----------
    name
        Of the buffer.
    bytes
        Of one slot.
    """

    name: str
    bytes: int


@dataclass(frozen=True)
class Copy:
    """A copy of a tile to a slot of a ring.

    Attributes
    ----------
    source, ring
        Names of the tensor and the ring.
    bytes
        That it writes, parts outside of the source included.
    multicast
        Sets of blocks of the cluster: the blocks of a set multicast equal shares of the same tile to each other. Empty
        if each block loads its own tile.
    """

    source: str
    ring: str
    bytes: int
    multicast: tuple[tuple[int, ...], ...] = ()

    def partners(self, block: int) -> tuple[int, ...]:
        """Return the blocks that receive a block's share of the copy, itself included."""
        return next((of for of in self.multicast if block in of), (block,))


@dataclass(frozen=True)
class Immediate:
    """Copies are complete for the thread that executes them when they have been executed."""

    def __str__(self) -> str:
        return "in place"


@dataclass(frozen=True)
class CountedGroups:
    """Commit copies as groups per thread, and wait until at most n are pending."""

    def __str__(self) -> str:
        return "groups of each thread"


@dataclass(frozen=True)
class Transactions:
    """Copies deliver their bytes to the current phase of a barrier.

    Attributes
    ----------
    barrier
        Its name.
    """

    barrier: str

    def __str__(self) -> str:
        return f"bytes counted by {self.barrier}"


@dataclass(frozen=True)
class Arrival:
    """One arrival at the current phase of a barrier signals the completion of a group.

    Attributes
    ----------
    barrier
        Its name.
    """

    barrier: str

    def __str__(self) -> str:
        return f"an arrival at {self.barrier}"


Completion = Immediate | CountedGroups | Transactions | Arrival


@dataclass(frozen=True)
class CopyGroup:
    """Copies of one iteration that complete at once.

    Attributes
    ----------
    name
        For messages.
    copies
        The copies.
    issuer
        The threads that issue them: each its part, or for transactions one of them all.
    completion
        How others learn that they are complete.
    """

    name: str
    copies: tuple[Copy, ...]
    issuer: Role
    completion: Completion

    @property
    def bytes(self) -> int:
        """Bytes of one iteration."""
        return sum(c.bytes for c in self.copies)


@dataclass(frozen=True)
class PhaseBarrier:
    """A barrier with phases, one object per slot.

    Attributes
    ----------
    name
        Of the buffer of its objects.
    arrivals
        That end a phase, when all announced bytes have been delivered too.
    """

    name: str
    arrivals: int


Each = Literal["thread", "warp", "role"]


@dataclass(frozen=True)
class Issue:
    """Issue a group's copies for the iteration at an offset (positive: later), if any."""

    group: str
    offset: int = 0


@dataclass(frozen=True)
class Commit:
    """End a group of each thread; it may be empty."""


@dataclass(frozen=True)
class WaitGroups:
    """Each thread waits until at most ``pending`` of its groups are in flight."""

    pending: int


@dataclass(frozen=True)
class Expect:
    """Arrive once with the expected transaction bytes of an iteration's phase, if any.

    The role's first thread arrives.
    """

    barrier: str
    bytes: int
    offset: int = 0


@dataclass(frozen=True)
class Arrive:
    """Arrive for an iteration, if it exists, by threads, warps, or the role.

    One thread of each warp or of the role may arrive for the others.

    Attributes
    ----------
    everywhere
        Whether in all blocks that fill its slots (``Schedule.partners``), or in its own only.
    """

    barrier: str
    each: Each = "thread"
    offset: int = 0
    everywhere: bool = False


@dataclass(frozen=True)
class WaitPhase:
    """Wait for an iteration's phase, if any, or one ``lag`` phases earlier.

    A phase before the first one passes.

    Attributes
    ----------
    alone
        Whether only the role's first thread waits, which then issues the copies of that iteration.
    """

    barrier: str
    offset: int = 0
    lag: int = 0
    alone: bool = False


@dataclass(frozen=True)
class Sync:
    """All threads of the role wait for each other."""


@dataclass(frozen=True)
class Meet:
    """All threads of all blocks of the cluster wait for each other."""


@dataclass(frozen=True)
class Use:
    """Read the slots of an iteration, if it exists, in some or all rings.

    The step may only start the reads.

    Attributes
    ----------
    in_flight
        Whether its reads are asynchronous, until a wait (``WaitUses``).
    """

    offset: int = 0
    rings: tuple[str, ...] = ()
    in_flight: bool = False


@dataclass(frozen=True)
class Complete:
    """The first thread's asynchronous uses arrive for an iteration, if it exists, on completion.

    Attributes
    ----------
    everywhere
        See `Arrive`.
    """

    barrier: str
    offset: int = 0
    everywhere: bool = False


@dataclass(frozen=True)
class WaitUses:
    """Wait in each thread until at most ``pending`` of its asynchronous uses are in flight."""

    pending: int


Step = Issue | Commit | WaitGroups | Expect | Arrive | WaitPhase | Sync | Meet | Use | Complete | WaitUses


@dataclass(frozen=True)
class RoleProgram:
    """The steps of a role.

    Attributes
    ----------
    role
        Its threads.
    before
        Steps before the loop; their iterations count from 0.
    iteration
        Steps of each iteration, relative to it.
    after
        Steps after the loop, relative to the trip count: the last iteration is -1.
    """

    role: Role
    before: tuple[Step, ...]
    iteration: tuple[Step, ...]
    after: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """The schedule of a loop.

    Attributes
    ----------
    loop
        Its variable, for messages.
    stages
        Slots of each ring, and objects of each barrier.
    trips
        Its trip count, if that is a constant.
    rings, groups, barriers
        What its steps name.
    programs
        The roles and their steps; no thread has two roles.
    blocks
        Of the cluster, which have the same programs, and rings and barriers of their own.
    """

    loop: str
    stages: int
    trips: int | None
    rings: tuple[Ring, ...]
    groups: tuple[CopyGroup, ...]
    programs: tuple[RoleProgram, ...]
    barriers: tuple[PhaseBarrier, ...] = ()
    blocks: int = 1

    def group(self, name: str) -> CopyGroup:
        """Return the group of a name."""
        return next(g for g in self.groups if g.name == name)

    def partners(self, block: int) -> tuple[int, ...]:
        """Return the blocks that multicast to a block, itself included; the relation is symmetric."""
        copies = [c for g in self.groups for c in g.copies]
        return tuple(sorted({block, *(other for c in copies for other in c.partners(block))}))

    def lines(self) -> list[str]:
        """Return a description, one line for each group, barrier and role."""
        found = [
            f"{g.name}: {', '.join(c.ring for c in g.copies)}, {g.bytes} bytes an iteration "
            f"by {g.issuer}: {g.completion}"
            for g in self.groups
        ]
        found += [
            f"{c.ring}: {_named(c.multicast)} of a cluster multicast it"
            for c in (c for g in self.groups for c in g.copies)
            if c.multicast
        ]
        found += [f"{b.name}: {self.stages} barriers of {_count(b.arrivals, 'arrival')}" for b in self.barriers]
        for p in self.programs:
            for when, steps in (("before", p.before), ("each iteration", p.iteration), ("after", p.after)):
                if steps:
                    found.append(f"{p.role.name}, {when}: {'; '.join(map(step_text, steps))}")
        return found


def order_barriers_of(schedule: Schedule) -> set[str]:
    """Return the ping-pong barriers: barriers that neither count copies nor free slots."""
    counting = {g.completion.barrier for g in schedule.groups if isinstance(g.completion, (Transactions, Arrival))}
    freeing = {s.barrier for p in schedule.programs for s in p.iteration if isinstance(s, WaitPhase) and s.lag}
    return {b.name for b in schedule.barriers} - counting - freeing


def ping_pong_programs(schedule: Schedule) -> list[RoleProgram]:
    """Return the programs of the ping-pong groups."""
    order_barriers = order_barriers_of(schedule)
    return [
        p
        for p in schedule.programs
        if any(isinstance(s, WaitPhase) and s.barrier in order_barriers for s in p.iteration)
    ]


def step_text(step: Step) -> str:
    """Return a step in words."""
    if isinstance(step, Commit):
        return "commit"
    if isinstance(step, WaitGroups):
        return f"wait for all but {_count(step.pending, 'group')}" if step.pending else "wait for all groups"
    if isinstance(step, WaitUses):
        return f"wait for all but {_count(step.pending, 'use')}" if step.pending else "wait for all uses"
    if isinstance(step, Sync):
        return "sync"
    if isinstance(step, Meet):
        return "meet the other blocks"
    at = f" of iteration {step.offset:+}" if step.offset else ""
    if isinstance(step, Issue):
        return f"issue {step.group}{at}"
    if isinstance(step, Complete):
        return f"arrive at {step.barrier}{_where(step)}{at} when these uses are complete"
    if isinstance(step, Expect):
        return f"expect {step.bytes} bytes at {step.barrier}{at}"
    if isinstance(step, Arrive):
        return f"arrive at {step.barrier}{_where(step)}{at}, one a {step.each}"
    if isinstance(step, WaitPhase):
        earlier = f", {_count(step.lag, 'phase')} earlier" if step.lag else ""
        return f"wait for {step.barrier}{at}{earlier}" + (", the first thread" if step.alone else "")
    in_flight = ", asynchronous until waited for" if step.in_flight else ""
    return f"use {', '.join(step.rings) or 'the slots'}{at}{in_flight}"


def _where(step: Arrive | Complete) -> str:
    return " in all blocks that fill slots here" if step.everywhere else ""


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _named(sets: tuple[tuple[int, ...], ...]) -> str:
    return "; ".join(f"blocks {', '.join(map(str, of))}" for of in sets)
