"""Execute a block's phase barriers in program order, with a vector clock for each thread.

Program order is one interleaving. What is checked here follows from the order of events alone (vector clocks; C.
Fidge, *Timestamps in message-passing systems that preserve the partial ordering*), so that it holds in all of them:

- an arrival, or an arrival with expected bytes, goes to the phase that is current in program order: for its thread the
  phase before has ended, and the phase cannot end without it;
- a wait passes, and for the phase that has ended last in program order: for its thread the phase before that has
  ended, and the phase after it cannot end before the wait has passed.

Threads that do everything together are one *team*; of more than one thread, the first is a team of its own, so that two
threads of a role are two teams. Writes of one become visible to another through an arrival and a wait.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field

from tile_core.records import dataclass

MOST_BYTES = 2**20 - 1
"""Bytes that a phase can count."""

OF_CLUSTER = "of the cluster"
"""The barrier of all threads of a cluster, as messages call it."""

Location = tuple[tuple[int, int] | None, ...]
"""A part of a buffer: first element and extent in each dimension; ``None`` for all of it."""


Part = tuple[str, Location]
"""The name of a buffer, and a part of it."""


class PhaseError(Exception):
    """A check failed: which barrier, and why."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason


@dataclass
class PhaseObject:
    """One object.

    Attributes
    ----------
    name
        For messages.
    arrivals
        Number that ends a phase, once all expected bytes have been delivered too.
    number
        Of its ends, among all that clocks count.
    phase, pending
        The current phase, and the arrivals that it lacks.
    announced, delivered
        Expected and delivered bytes in the current phase.
    clock, issued
        Merged clocks of the threads that have arrived in it, and of those that have issued copies.
    ended
        The merged clock of the previous phase, including its end.
    counted
        Whether that phase counted bytes, or products arrived in it: all arrivals then do not imply its end.
    has_products
        Whether products arrive in the current phase.
    waits, announcements
        Waits for the phase before, expected bytes in this one: each a team and its time.
    """

    name: str
    arrivals: int
    number: int
    clock: list[int]
    issued: list[int]
    ended: list[int]
    pending: int = 0
    phase: int = 0
    announced: int = 0
    delivered: int = 0
    counted: bool = False
    has_products: bool = False
    waits: list[tuple[int, int]] = field(default_factory=list)
    announcements: list[tuple[int, int]] = field(default_factory=list)

    def lacks(self) -> str:
        """Return the arrivals and bytes that the current phase lacks."""
        if self.pending:
            return f"phase {self.phase} gets {self.arrivals - self.pending} of {self.arrivals} arrivals"
        return f"phase {self.phase} expects {self.announced} bytes and gets {self.delivered}"


@dataclass
class Adding:
    """A product that arrives at an object in a phase when it is complete.

    Attributes
    ----------
    team
        Whose first thread has issued it.
    kind
        Properties that successive products into one accumulator must share to complete in order.
    behind
        Object and phase of the first of another kind that this thread has issued behind it, if there is one: it is not
        complete before this one.
    """

    barrier: PhaseObject
    phase: int
    team: int
    kind: Hashable
    behind: tuple[PhaseObject, int] | None = None

    def objects(self) -> list[tuple[PhaseObject, int]]:
        """Return its object and phase, and those of the product behind it."""
        return [(self.barrier, self.phase), *([] if self.behind is None else [self.behind])]


class Phases:
    """The state of a block's barriers and the vector clocks of its teams.

    Parameters
    ----------
    teams
        How many threads each has.
    barriers
        Name and arrivals of each object.
    blocks
        Number of blocks in the cluster; each has the same teams and objects.

    Attributes
    ----------
    clocks
        The vector clock of each team: events of each team, and ends of each object, that precede its next event.
    unordered
        Buffers with accesses that these barriers do not order.
    """

    def __init__(self, teams: Sequence[int], barriers: Sequence[tuple[str, int]], blocks: int = 1) -> None:
        self.teams = list(teams)
        self.of_block = len(teams) // blocks
        #: Where clocks count the times when a block has stored to other ones: at each barrier of the cluster after it.
        self.stored = len(teams) + len(barriers)
        self.stores = [0] * blocks
        #: Where clocks count, for each team, the groups of products that are complete.
        self.products = self.stored + blocks
        size = self.products + len(teams)
        self.clocks = [[0] * size for _ in teams]
        self.barriers = [
            PhaseObject(name, count, len(teams) + n, [0] * size, [0] * size, [0] * size, count)
            for n, (name, count) in enumerate(barriers)
        ]
        self.unordered: set[str] = set()
        #: By buffer, part, kind and team: the time of the latest such access.
        self.accesses: dict[str, dict[tuple[Location, bool, int], int]] = {}
        self.copies: list[tuple[PhaseObject, int]] = []
        #: By two parts of a buffer: whether they have common elements.
        self.meeting: dict[Location, dict[Location, bool]] = {}
        #: By team: the latest group of products, and an object at which it arrives when it is complete.
        self.completions: dict[int, tuple[PhaseObject, int]] = {}
        #: By accumulator: the latest product that arrives.
        self.accumulators: dict[str, Adding] = {}
        #: Buffers that copies between blocks read and write: no barrier of a block orders these.
        self.sent: set[str] = set()

    def arrive(self, teams: Iterable[int], barrier: PhaseObject, total: int | None = None) -> None:
        """Let all threads of some teams arrive, or a number of them."""
        teams = list(teams)
        total = sum(self.teams[t] for t in teams) if total is None else total
        if total > barrier.pending:
            got = barrier.arrivals - barrier.pending + total
            raise PhaseError(barrier.name, f"phase {barrier.phase} gets {got} arrivals of {barrier.arrivals}")
        for t in teams:
            self._certain(t, barrier, "an arrival")
            self.event(t)
            _join(barrier.clock, self.clocks[t])
        barrier.pending -= total
        self._end(barrier)

    def announce(self, team: int, barrier: PhaseObject, size: int) -> None:
        """Add expected transaction bytes to the current phase, by one thread of a team."""
        self._certain(team, barrier, "an arrival with expected bytes")
        barrier.announcements.append((team, self.event(team)))
        barrier.announced += size
        if barrier.announced > MOST_BYTES:
            reason = f"phase {barrier.phase} expects {barrier.announced} bytes; the maximum is {MOST_BYTES}"
            raise PhaseError(barrier.name, reason)
        self._end(barrier)

    def copy(self, team: int, barrier: PhaseObject, size: int, buffer: str, location: Location) -> bool:
        """Issue a copy by one thread that delivers bytes to the current phase.

        Returns
        -------
        bool
            Whether all accesses to the destination precede the copy.
        """
        self._certain(team, barrier, "a copy")
        self.event(team)
        barrier.delivered += size
        self.copies.append((barrier, barrier.phase))
        free = not self._conflicts(team, buffer, location, True)
        self.accesses.setdefault(buffer, {})[location, True, barrier.number] = barrier.phase + 1
        _join(barrier.issued, self.clocks[team])
        self._end(barrier)
        return free

    def complete(
        self, teams: Sequence[int], barrier: PhaseObject, read: Iterable[tuple[str, Location]],
        accumulators: Iterable[str], kind: Hashable,
    ) -> None:  # fmt: skip
        """Issue a product by the first of some synchronized teams; it arrives when it completes.

        Products of one kind that one thread issues one after another add to an accumulator in that order, whether they
        are waited for or not.
        """
        self.meet(teams)
        accumulators = list(accumulators)
        for name in accumulators:
            self._ordered(teams[0], name, kind)
        if not barrier.pending:
            raise PhaseError(barrier.name, f"phase {barrier.phase} gets more than {barrier.arrivals} arrivals")
        self._certain(teams[0], barrier, "the arrival of a product")
        self.event(teams[0])
        for buffer, location in read:
            self._conflicts(teams[0], buffer, location, False)
            self.accesses.setdefault(buffer, {})[location, False, barrier.number] = barrier.phase + 1
        for added in self.accumulators.values():
            if added.behind is None and added.team == teams[0] and added.kind != kind:
                added.behind = barrier, barrier.phase
        self.accumulators |= {name: Adding(barrier, barrier.phase, teams[0], kind) for name in accumulators}
        self.copies.append((barrier, barrier.phase))
        _join(barrier.clock, self.clocks[teams[0]])
        barrier.pending -= 1
        barrier.has_products = True
        self._end(barrier)

    def arrive_complete(
        self, team: int, barriers: Sequence[PhaseObject], number: int, read: Iterable[tuple[str, Location]]
    ) -> None:  # fmt: skip
        """Let a thread arrive when its products up to a group's are complete."""
        column = self.products + team
        for buffer, location in read:
            self.accesses.setdefault(buffer, {})[location, False, column] = number
        for barrier in barriers:
            if not barrier.pending:
                raise PhaseError(barrier.name, f"phase {barrier.phase} gets more than {barrier.arrivals} arrivals")
            self._certain(team, barrier, "the arrival of a product")
            self.event(team)
            if len(barriers) > 1:  # a block that waits for its own phase may end before the arrival of another one
                self.copies.append((barrier, barrier.phase))
            self.completions[team] = barriers[0], number
            _join(barrier.clock, self.clocks[team])
            barrier.clock[column] = max(barrier.clock[column], number)
            barrier.pending -= 1
            barrier.has_products = True
            self._end(barrier)

    def adding(self, teams: Iterable[int], buffer: str) -> PhaseObject | None:
        """Return the object of a product that may still be adding to some accumulators."""
        if buffer not in self.accumulators:
            return None
        barrier, phase = self.accumulators[buffer].barrier, self.accumulators[buffer].phase
        return barrier if any(self.clocks[t][barrier.number] <= phase for t in teams) else None

    def _ordered(self, team: int, buffer: str, kind: Hashable) -> None:
        """Require that a product adds to an accumulator after the product before it."""
        flying = self.adding([team], buffer)
        if flying is None:
            return
        before = self.accumulators[buffer]
        if before.behind is not None and self.clocks[team][before.behind[0].number] > before.behind[1]:
            return
        if before.kind == kind and before.team == team and before.behind is None:
            return
        of = "of another thread" if before.team != team else "of another kind or shape"
        of = "with one of another kind or shape between them" if before.kind == kind and before.team == team else of
        reason = f"a product {of} adds to {_plain(buffer)} while one that arrives there may still add to it"
        raise PhaseError(flying.name, f"{reason}; only products of one kind and shape follow each other in order")

    def send(self, team: int, barrier: PhaseObject, size: int, source: Part, to: Part) -> None:
        """Copy a part of a buffer to another block by one thread.

        The destination's barrier counts its bytes and one arrival.

        The source is read until the phase has ended.
        """
        self.sent |= {source[0], to[0]}
        self.announce(team, barrier, size)
        self.arrive([team], barrier)
        self._conflicts(team, *source, False)
        self.accesses.setdefault(source[0], {})[source[1], False, barrier.number] = barrier.phase + 1
        if not self.copy(team, barrier, size, *to):
            raise PhaseError(barrier.name, _in_use(to[0]))

    def store(self, teams: Iterable[int], rank: int, source: Part, to: Part) -> None:
        """Store a part of a buffer to another block; a cluster barrier makes it visible."""
        teams = list(teams)
        self.sent.add(to[0])
        self.access(teams, *source, False)
        self.stores[rank] += 1
        if any(self._conflicts(t, *to, True) for t in teams):
            raise PhaseError(OF_CLUSTER, _in_use(to[0]))
        self.accesses.setdefault(to[0], {})[to[1], True, self.stored + rank] = self.stores[rank]

    def wait(self, teams: Iterable[int], barrier: PhaseObject, parity: int) -> None:
        """Let all threads of some teams wait for the phase of a parity."""
        if parity not in (0, 1):
            raise PhaseError(barrier.name, f"a wait names the parity {parity}, and a parity is 0 or 1")
        last = barrier.phase - 1
        if last % 2 != parity:
            raise PhaseError(barrier.name, f"a wait for parity {parity} does not pass: {barrier.lacks()} before it")
        for t in teams:
            if last >= 1 and self.clocks[t][barrier.number] < last:
                raise PhaseError(barrier.name, f"a wait for phase {last} may begin before phase {last - 1} has ended")
            if last >= 0:
                _join(self.clocks[t], barrier.ended)
            barrier.waits.append((t, self.event(t)))

    def meet(self, teams: Iterable[int]) -> None:
        """Let some teams wait for each other at a barrier of threads."""
        teams = list(teams)
        for t in teams:
            self.event(t)
        known = [max(times) for times in zip(*(self.clocks[t] for t in teams), strict=True)]
        for t in teams:
            self.clocks[t] = list(known)

    def knowledge(self, team: int, rank: int = 0) -> list[int]:
        """Return a team's clock and pending accesses when it arrives at the cluster barrier."""
        self.event(team)
        clock = list(self.clocks[team])
        clock[self.stored + rank] = self.stores[rank]
        return clock

    def learn(self, team: int, known: Iterable[Sequence[int]]) -> None:
        """Merge other clocks into a team's."""
        for clock in known:
            _join(self.clocks[team], clock)
        self.event(team)

    def access(self, teams: Iterable[int], buffer: str, location: Location, write: bool) -> None:
        """Note an access by all threads of some teams, each to a disjoint part."""
        teams = list(teams)
        for t in teams:
            self._conflicts(t, buffer, location, write)
        for t in teams:
            self.accesses.setdefault(buffer, {})[location, write, t] = self.event(t)

    def finish(self) -> None:
        """Check what is left at the end."""
        for barrier in self.barriers:
            if barrier.pending < barrier.arrivals or barrier.announced or barrier.delivered:
                raise PhaseError(barrier.name, f"{barrier.lacks()}, and then the block ends")
        latest = [max(times) for times in zip(*self.clocks, strict=True)]
        for barrier, phase in self.copies:
            if latest[barrier.number] <= phase:
                raise PhaseError(barrier.name, f"nothing waits for the copies or products of phase {phase}")
        for team, (barrier, number) in self.completions.items():
            if all(clock[self.products + team] < number for clock in self.clocks):
                raise PhaseError(barrier.name, "nothing waits for the last products")

    def state(self) -> Hashable:
        """Return the state that determines the rest of an execution, as a key.

        Of an event it matters only which teams it precedes, not when it was.
        """
        clocks = [*self.clocks, *(clock for b in self.barriers for clock in (b.clock, b.issued, b.ended))]

        def known(event: tuple[int, int]) -> tuple[bool, ...]:
            return tuple(clock[event[0]] >= event[1] for clock in clocks)

        objects = tuple(
            (b.phase % 2, b.phase == 0, b.phase == 1, b.pending, b.announced, b.delivered, b.counted, b.has_products,
             known((b.number, b.phase)), known((b.number, b.phase - 1)),
             frozenset((t, known((t, n))) for t, n in b.waits),
             frozenset((t, known((t, n))) for t, n in b.announcements))
            for b in self.barriers
        )  # fmt: skip
        memory = frozenset(
            (buffer, key, known((key[2], time)))
            for buffer, found in self.accesses.items()
            for key, time in found.items()
        )
        flying = frozenset((b.number, phase - b.phase, known((b.number, phase + 1))) for b, phase in self._unknown())
        accumulators = frozenset(
            (name, a.team, a.kind, *((b.number, p - b.phase, known((b.number, p + 1))) for b, p in a.objects()))
            for name, a in self.accumulators.items()
        )
        return objects, memory, flying, accumulators, frozenset(self.unordered)

    def _unknown(self) -> list[tuple[PhaseObject, int]]:
        """Return the copies that complete for no team, which ``finish`` refuses, and forget earlier ones."""
        self.copies = [(b, p) for b, p in self.copies if all(clock[b.number] <= p for clock in self.clocks)]
        return self.copies

    def event(self, team: int) -> int:
        """Begin a new event of a team; return its time."""
        self.clocks[team][team] += 1
        return self.clocks[team][team]

    def conflicts(self, team: int, buffer: str, location: Location) -> bool:
        """Return whether a write is unordered with accesses of other threads."""
        return self._conflicts(team, buffer, location, True)

    def _certain(self, team: int, barrier: PhaseObject, what: str) -> None:
        """Require that the phase before the current one has ended for a team."""
        clock = self.clocks[team]
        if clock[barrier.number] >= barrier.phase:
            return
        # All arrivals of a phase without bytes imply that it has ended.
        if barrier.counted or any(clock[n] < t for n, t in enumerate(barrier.ended) if n != barrier.number):
            reason = f"{what} for phase {barrier.phase} may come before phase {barrier.phase - 1} has ended"
            raise PhaseError(barrier.name, reason)
        clock[barrier.number] = barrier.phase

    def _end(self, barrier: PhaseObject) -> None:
        """End a phase that is complete."""
        if barrier.pending or barrier.announced != barrier.delivered:
            return
        for team, time in barrier.announcements:
            if barrier.clock[team] < time:
                raise PhaseError(barrier.name, f"phase {barrier.phase} may end before its bytes are expected")
        known = list(barrier.clock)
        _join(known, barrier.issued)
        for team, time in barrier.waits:
            if known[team] < time:
                reason = f"phase {barrier.phase} may end while a thread still waits for phase {barrier.phase - 1}"
                raise PhaseError(barrier.name, reason)
        barrier.phase += 1
        known[barrier.number] = barrier.phase
        barrier.ended, barrier.counted, barrier.has_products = (
            known,
            bool(barrier.delivered) or barrier.has_products,
            False,
        )
        barrier.clock, barrier.issued = [0] * len(known), [0] * len(known)
        barrier.pending, barrier.announced, barrier.delivered = barrier.arrivals, 0, 0
        barrier.waits, barrier.announcements = [], []

    def _conflicts(self, team: int, buffer: str, location: Location, write: bool) -> bool:
        """Note, and return, whether an access is unordered with those of other threads."""
        clock, found = self.clocks[team], False
        meets = self.meeting.setdefault(location, {})
        for (other, wrote, who), time in self.accesses.get(buffer, {}).items():
            if not ((write or wrote) and who != team and clock[who] < time):
                continue
            if other not in meets:
                meets[other] = overlap(location, other)
            if meets[other]:
                self.unordered.add(buffer)
                found = True
                if buffer in self.sent and who >= len(self.teams):
                    done, of = ("written" if write else "read"), ("writes" if wrote else "reads")
                    number = who - len(self.teams)
                    name = self.barriers[number].name if number < len(self.barriers) else OF_CLUSTER
                    reason = f"{_plain(buffer)} may be {done} while a copy to another block still {of} it"
                    raise PhaseError(name, reason)
        return found


def _plain(buffer: str) -> str:
    """Return the name of a buffer without the rank of its block."""
    return buffer.partition("@")[0]


def _in_use(buffer: str) -> str:
    return f"a copy to another block may write {_plain(buffer)} while it is in use there"


def _join(clock: list[int], other: Sequence[int]) -> None:
    clock[:] = map(max, clock, other)


def overlap(a: Location, b: Location) -> bool:
    """Return whether two parts of a buffer may have common elements."""
    if len(a) != len(b):
        return True
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and (x[0] >= y[0] + y[1] or y[0] >= x[0] + x[1]):
            return False
    return True
