"""One execution of a schedule for the ledger, with the order of its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    CopyGroup,
    CountedGroups,
    Expect,
    InPlace,
    Issue,
    RoleProgram,
    Schedule,
    Step,
    Sync,
    Transactions,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
)

#: Threads that execute together, where a schedule counts one arrival for each such group.
_WARP = 32


class Unbalanced(Exception):
    """A check failed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason


@dataclass
class _Thread:
    """A thread that stands for several of a role.

    Attributes
    ----------
    weight
        How many it stands for.
    clock
        The events before its next one, as a set of bits.
    open, groups
        Copies that are in no group yet, and groups of copies in flight, oldest first.
    uses
        Uses that last: the event and the trip of each, oldest first.
    """

    number: int
    program: RoleProgram
    leads: bool
    weight: int
    clock: int = 0
    trip: int = -1
    at: int = -1
    open: list[_Flight] = field(default_factory=list)
    groups: list[list[_Flight]] = field(default_factory=list)
    uses: list[tuple[int, int]] = field(default_factory=list)
    waits: str = ""
    done: bool = False


@dataclass
class _Flight:
    """Copies that were issued together, for one slot."""

    event: int
    trip: int
    group: CopyGroup
    before: int


@dataclass
class _Object:
    """One object of a barrier: the current phase, what it still needs, and the order of what it has got."""

    phase: int = 0
    arrivals: int = 0
    bytes: int = 0
    announced: int = 0
    delivered: int = 0
    clock: int = 0
    ends: list[tuple[int, int]] = field(default_factory=list)


class Run:
    """An execution for one trip count.

    Parameters
    ----------
    late
        Whether copies of transactions complete only when no thread can go on, or at once.
    keep
        Whether to keep the states.

    Attributes
    ----------
    states
        The state when the last thread begins a trip, renumbered so that equal ones behave equally.
    """

    def __init__(self, schedule: Schedule, trips: int, late: bool, keep: bool = False) -> None:
        self.schedule, self.trips, self.late, self.keep = schedule, trips, late, keep
        self.events = 0
        self.threads: list[_Thread] = []
        for program in schedule.programs:
            count = program.role.count
            self.threads.append(_Thread(len(self.threads), program, True, 1))
            if count > 1:
                self.threads.append(_Thread(len(self.threads), program, False, count - 1))
        self.counts = {b.name: b.arrivals for b in schedule.barriers}
        self.objects = {
            (b.name, slot): _Object(arrivals=b.arrivals) for b in schedule.barriers for slot in range(schedule.stages)
        }
        #: By ring and slot: the copies that fill it by the thread that issued them, and the reads since then.
        self.filled: dict[tuple[str, int], dict[int, _Flight]] = {}
        self.reads: dict[tuple[str, int], list[int]] = {}
        self.flying: list[_Flight] = []
        self.transacted: list[_Flight] = []
        self.waits: list[tuple[str, int, int, int]] = []
        self.states: dict[int, Any] = {}

    def go(self) -> None:
        """Execute everything.

        Raises
        ------
        Unbalanced
            If a check fails.
        """
        steps = {t.number: self.steps(t) for t in self.threads}
        waiting: dict[int, Step] = {}
        while not all(t.done for t in self.threads):
            moved = False
            for thread in self.threads:
                while not thread.done:
                    step = waiting.pop(thread.number, None) or next(steps[thread.number], None)
                    if step is None:
                        thread.done = moved = True
                        break
                    if not self.execute(thread, step):
                        waiting[thread.number] = step
                        break
                    moved = True
            moved = self.meet(waiting) or moved
            if not moved and not self.deliver_one():
                self.stuck(waiting)
        while self.deliver_one():
            pass
        self.finish()

    def steps(self, thread: _Thread) -> Iterator[Step]:
        """Yield the steps of a thread; a trip's steps name its trip by ``thread.trip``."""
        thread.trip = 0
        yield from thread.program.before
        for trip in range(self.trips):
            thread.trip, thread.at = trip, trip
            if self.keep and all(t.at >= trip for t in self.threads):
                self.states[trip] = self.state(trip)
            yield from thread.program.trip
        thread.trip = self.trips
        yield from thread.program.after

    def execute(self, thread: _Thread, step: Step) -> bool:
        """Execute a step; return false if the thread has to wait."""
        if isinstance(step, Sync):
            thread.waits = "sync"
            return False
        trip = thread.trip + getattr(step, "ahead", 0)
        if isinstance(step, Commit):
            thread.groups.append(thread.open)
            thread.open = []
        elif isinstance(step, WaitGroups):
            done = max(0, len(thread.groups) - step.pending)
            for flight in (f for group in thread.groups[:done] for f in group):
                thread.clock |= 1 << flight.event
            thread.groups = thread.groups[done:]
        elif isinstance(step, WaitUses):
            done = max(0, len(thread.uses) - step.pending)
            for event, _ in thread.uses[:done]:
                thread.clock |= 1 << event
            thread.uses = thread.uses[done:]
        elif not 0 <= trip < self.trips:
            return True
        elif isinstance(step, Issue):
            self.issue(thread, self.schedule.group(step.group), trip)
        elif isinstance(step, Expect):
            if thread.leads:
                self.arrive(thread, step.barrier, trip, 1, step.bytes)
        elif isinstance(step, Arrive):
            self.arrive(thread, step.barrier, trip, _arrivals(thread, step))
        elif isinstance(step, WaitPhase):
            return self.wait(thread, step.barrier, trip, step.lag)
        else:
            self.use(thread, step, trip)
        return True

    # Copies and slots

    def issue(self, thread: _Thread, group: CopyGroup, trip: int) -> None:
        """Issue a group's copies; for transactions, the first thread issues all."""
        alone = isinstance(group.completion, Transactions) or group.issuer.count == 1
        if alone and not thread.leads:
            return
        slot = trip % self.schedule.stages
        flight = _Flight(self.event(), trip, group, thread.clock)
        for ring in dict.fromkeys(c.ring for c in group.copies):
            for read in self.reads.get((ring, slot), ()):
                if not thread.clock >> read & 1:
                    raise Unbalanced(ring, f"slot {slot} is filled for trip {trip} while it may still be read")
            parts = self.filled.setdefault((ring, slot), {})
            for old in parts.values():
                if old.trip != trip and not thread.clock >> old.event & 1:
                    raise Unbalanced(ring, f"slot {slot} is filled for trip {trip} while a copy to it is in flight")
                if old.trip == trip and parts.get(thread.number) is old:
                    raise Unbalanced(ring, f"slot {slot} is filled twice for trip {trip}")
            self.filled[ring, slot] = {n: f for n, f in parts.items() if f.trip == trip} | {thread.number: flight}
            self.reads[ring, slot] = []
        if isinstance(group.completion, InPlace):
            thread.clock |= 1 << flight.event
        elif isinstance(group.completion, CountedGroups):
            thread.open.append(flight)
        elif self.late:
            self.transacted.append(flight)
            self.flying.append(flight)
        else:
            self.deliver(flight)

    def use(self, thread: _Thread, step: Use, trip: int) -> None:
        """Check that slots hold what the thread reads."""
        slot, event = trip % self.schedule.stages, self.event(None if step.lasts else thread)
        if step.lasts:
            thread.uses.append((event, trip))
        for ring in step.rings or [r.name for r in self.schedule.rings]:
            parts = self.filled.get((ring, slot), {})
            wanted = self.parts(ring)
            if any(f.trip != trip for f in parts.values()):
                other = next(f.trip for f in parts.values() if f.trip != trip)
                raise Unbalanced(ring, f"slot {slot} holds trip {other} when trip {trip} is read")
            if len(parts) < wanted:
                raise Unbalanced(ring, f"slot {slot} is read for trip {trip} before its copy is issued")
            for flight in parts.values():
                if not thread.clock >> flight.event & 1:
                    raise Unbalanced(ring, f"slot {slot} is read for trip {trip} before its copy is complete")
            self.reads.setdefault((ring, slot), []).append(event)

    def parts(self, ring: str) -> int:
        """Return how many of the threads issue a part of a ring's copies."""
        for group in self.schedule.groups:
            if any(c.ring == ring for c in group.copies):
                return 1 if isinstance(group.completion, Transactions) else min(2, group.issuer.count)
        raise Unbalanced(ring, "nothing is copied to it")

    # Barriers

    def arrive(self, thread: _Thread, name: str, trip: int, arrivals: int, announced: int = 0) -> None:
        """Arrive for a trip."""
        if not arrivals:
            return
        thread.clock |= 1 << self.event()
        slot, phase = trip % self.schedule.stages, trip // self.schedule.stages
        found = self.objects[name, slot]
        self.certain(thread, name, slot, phase, f"an arrival for trip {trip}")
        if arrivals > found.arrivals:
            total = self.counts[name] - found.arrivals + arrivals
            raise Unbalanced(name, f"phase {phase} of slot {slot} gets {total} arrivals of {self.counts[name]}")
        found.arrivals -= arrivals
        found.bytes += announced
        found.announced += announced
        found.clock |= thread.clock
        self.end(name, slot)

    def wait(self, thread: _Thread, name: str, trip: int, lag: int) -> bool:
        """Pass if the phase has ended."""
        slot, phase = trip % self.schedule.stages, trip // self.schedule.stages - lag
        if phase < 0:
            if lag == 0 or phase < -1:
                raise Unbalanced(name, f"a wait names phase {phase} of slot {slot}")
            self.waits.append((name, slot, phase, self.event(thread)))
            return True
        found = self.objects[name, slot]
        self.certain(thread, name, slot, phase, f"a wait for phase {phase}")
        if found.phase <= phase:
            thread.waits = name
            return False
        thread.clock |= found.ends[phase][1] | 1 << found.ends[phase][0]
        self.waits.append((name, slot, phase, self.event(thread)))
        return True

    def certain(self, thread: _Thread, name: str, slot: int, phase: int, what: str) -> None:
        """Require that the phase before a phase has ended before an event, in every interleaving."""
        found = self.objects[name, slot]
        if found.phase > phase and "arrival" in what:
            raise Unbalanced(name, f"{what} comes when phase {found.phase} of slot {slot} has begun")
        if phase == 0:
            return
        if found.phase < phase or not thread.clock >> found.ends[phase - 1][0] & 1:
            raise Unbalanced(name, f"{what} of slot {slot} may come before phase {phase - 1} has ended")

    def deliver(self, flight: _Flight) -> None:
        """Complete copies of transactions."""
        completion = flight.group.completion
        assert isinstance(completion, Transactions)
        slot, phase = flight.trip % self.schedule.stages, flight.trip // self.schedule.stages
        found = self.objects[completion.barrier, slot]
        if found.phase != phase:
            what = f"the bytes of trip {flight.trip} come in phase {found.phase} of slot {slot}"
            raise Unbalanced(completion.barrier, f"{what}, not in phase {phase}: it ended without them")
        found.bytes -= flight.group.bytes
        found.delivered += flight.group.bytes
        found.clock |= flight.before | 1 << flight.event
        self.end(completion.barrier, slot)

    def deliver_one(self) -> bool:
        """Complete the oldest copies in flight, if there are any."""
        if not self.flying:
            return False
        self.deliver(self.flying.pop(0))
        return True

    def end(self, name: str, slot: int) -> None:
        """End an object's phase if it is complete."""
        found = self.objects[name, slot]
        if found.arrivals == 0 and found.bytes == 0:
            found.ends.append((self.event(), found.clock))
            found.phase += 1
            found.arrivals, found.announced, found.delivered = self.counts[name], 0, 0
            found.clock = 0

    # Threads together

    def meet(self, waiting: dict[int, Step]) -> bool:
        """Let the threads of a role go on when all of them stand at a barrier of the role."""
        moved = False
        for program in self.schedule.programs:
            mine = [t for t in self.threads if t.program is program]
            if all(isinstance(waiting.get(t.number), Sync) for t in mine):
                clock = 0
                for t in mine:
                    clock |= t.clock
                for t in mine:
                    t.clock = clock
                    del waiting[t.number]
                moved = True
        return moved

    def stuck(self, waiting: dict[int, Step]) -> None:
        """Say why no thread can go on."""
        for thread in self.threads:
            step = waiting.get(thread.number)
            if isinstance(step, WaitPhase):
                trip = thread.trip + step.ahead
                slot, phase = trip % self.schedule.stages, trip // self.schedule.stages - step.lag
                found = self.objects[step.barrier, slot]
                reason = self.lacks(step.barrier, found)
                raise Unbalanced(step.barrier, f"a wait for phase {phase} of slot {slot} never passes: {reason}")
        names = ", ".join(t.program.role.name for t in self.threads if t.number in waiting)
        raise Unbalanced(names, "some of its threads wait at a barrier that others never reach")

    def lacks(self, name: str, found: _Object) -> str:
        """Say what an object's phase lacks."""
        if found.arrivals:
            return f"it gets {self.counts[name] - found.arrivals} of {self.counts[name]} arrivals"
        return f"{found.announced} bytes are announced and {found.delivered} delivered"

    def finish(self) -> None:
        """Check what is left at the end, and that no phase ended before waits for the one before it had passed."""
        for (name, slot), found in self.objects.items():
            if found.arrivals != self.counts[name] or found.bytes:
                lacks = self.lacks(name, found)
                raise Unbalanced(name, f"phase {found.phase} of slot {slot} is open at the end: {lacks}")
        for thread in self.threads:
            left = [f for group in [*thread.groups, thread.open] for f in group if not thread.clock >> f.event & 1]
            if left:
                raise Unbalanced(left[0].group.name, f"the copies of trip {left[0].trip} are never waited for")
            if thread.uses:
                raise Unbalanced(self.schedule.loop, f"the use of trip {thread.uses[0][1]} is never waited for")
        waited = 0
        for thread in self.threads:
            waited |= thread.clock
        for flight in self.transacted:
            if not waited >> flight.event & 1:
                raise Unbalanced(flight.group.name, f"the copies of trip {flight.trip} are never waited for")
        for name, slot, phase, event in self.waits:
            ends = self.objects[name, slot].ends
            if phase + 1 < len(ends) and not ends[phase + 1][1] >> event & 1:
                reason = f"phase {phase + 1} of slot {slot} may end while a thread waits for phase {phase}"
                raise Unbalanced(name, reason)

    # State

    def event(self, thread: _Thread | None = None) -> int:
        """Return the number of a new event, one of a thread if that is given."""
        number = self.events
        self.events += 1
        if thread is not None:
            thread.clock |= 1 << number
        return number

    def state(self, trip: int) -> Any:
        """Return what decides the future, with trips relative to ``trip``."""
        stages = self.schedule.stages
        base = trip // stages

        def known(event: int) -> tuple[bool, ...]:
            return tuple(bool(t.clock >> event & 1) for t in self.threads)

        def trips(flights: list[_Flight]) -> tuple[int, ...]:
            return tuple(f.trip - trip for f in flights)

        threads = tuple(
            (t.at - trip, tuple(map(trips, t.groups)), trips(t.open), tuple(of - trip for _, of in t.uses))
            for t in self.threads
        )
        objects = tuple(
            (
                (slot - trip) % stages, name, o.phase - base + (slot < trip % stages), o.arrivals, o.bytes,
                known(o.ends[-1][0]) if o.ends else (),
            )
            for (name, slot), o in self.objects.items()
        )  # fmt: skip
        slots = tuple(
            (ring, (slot - trip) % stages, tuple((n, f.trip - trip, known(f.event)) for n, f in sorted(parts.items())),
             tuple(known(r) for r in self.reads[ring, slot]))
            for (ring, slot), parts in self.filled.items()
        )  # fmt: skip
        return threads, tuple(sorted(objects)), tuple(sorted(slots)), tuple(f.trip - trip for f in self.flying)


def _arrivals(thread: _Thread, step: Arrive) -> int:
    """Return how many arrivals the threads that a thread stands for make."""
    if step.each == "thread":
        return thread.weight
    if step.each == "role":
        return int(thread.leads)
    warps = max(1, -(-thread.program.role.count // _WARP))
    return 1 if thread.leads else warps - 1
