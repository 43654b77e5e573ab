"""One execution of a schedule for the ledger, with the order of its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tile_core.simt.pipelining.ledger_state import Flight, Object, Thread, Unbalanced
from tile_core.simt.pipelining.schedule import (
    Arrival,
    Arrive,
    Commit,
    Complete,
    CopyGroup,
    CountedGroups,
    Expect,
    Immediate,
    Issue,
    Meet,
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
        The state when the last thread begins an iteration, renumbered so that equal ones behave equally.
    """

    def __init__(self, schedule: Schedule, trips: int, late: bool, keep: bool = False) -> None:
        self.schedule, self.trips, self.late, self.keep = schedule, trips, late, keep
        self.events = 0
        self.threads: list[Thread] = []
        self.blocks = range(schedule.blocks)
        for block in self.blocks:
            for program in schedule.programs:
                count = program.role.count
                self.threads.append(Thread(len(self.threads), program, True, 1, block))
                if count > 1:
                    self.threads.append(Thread(len(self.threads), program, False, count - 1, block))
        self.counts = {b.name: b.arrivals for b in schedule.barriers}
        #: By block, name and slot.
        self.objects = {
            (block, b.name, slot): Object(arrivals=b.arrivals)
            for block in self.blocks for b in schedule.barriers for slot in range(schedule.stages)
        }  # fmt: skip
        #: By block, ring and slot: the copies that fill it by the thread that issued them, and the reads since then.
        self.filled: dict[tuple[int, str, int], dict[int, Flight]] = {}
        self.reads: dict[tuple[int, str, int], list[int]] = {}
        self.flying: list[Flight] = []
        self.transacted: list[Flight] = []
        self.waits: list[tuple[int, str, int, int, int]] = []
        #: What threads do in other blocks: the block, the barrier, and the event.
        self.sent: list[tuple[int, str, int]] = []
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
                    if len(self.blocks) > 1:
                        break  # blocks side by side: their states repeat soonest
            moved = self.meet(waiting) or moved
            if not moved and not self.deliver_one():
                self.stuck(waiting)
        while self.deliver_one():
            pass
        self.finish()

    def steps(self, thread: Thread) -> Iterator[Step]:
        """Yield the steps of a thread; ``thread.iteration`` is the current iteration."""
        thread.iteration = 0
        yield from thread.program.before
        for iteration in range(self.trips):
            thread.iteration, thread.at = iteration, iteration
            if self.keep and all(t.at >= iteration for t in self.threads):
                self.states[iteration] = self.state(iteration)
            for position, step in enumerate(thread.program.iteration):
                thread.position = position
                yield step
        thread.iteration = self.trips
        yield from thread.program.after

    def execute(self, thread: Thread, step: Step) -> bool:
        """Execute a step; return false if the thread has to wait."""
        if isinstance(step, (Sync, Meet)):
            thread.waits = "sync"
            return False
        iteration = thread.iteration + getattr(step, "offset", 0)
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
        elif not 0 <= iteration < self.trips:
            return True
        elif isinstance(step, Issue):
            self.issue(thread, self.schedule.group(step.group), iteration)
        elif isinstance(step, Complete):
            if thread.leads:
                blocks = self.schedule.partners(thread.block) if step.everywhere else (thread.block,)
                self.complete(thread, step.barrier, iteration, blocks)
        elif isinstance(step, Expect):
            if thread.leads:
                self.arrive(thread, step.barrier, iteration, 1, step.bytes)
        elif isinstance(step, Arrive):
            for block in self.schedule.partners(thread.block) if step.everywhere else (thread.block,):
                self.arrive(thread, step.barrier, iteration, _arrivals(thread, step), block=block)
        elif isinstance(step, WaitPhase):
            return (step.alone and not thread.leads) or self.wait(thread, step.barrier, iteration, step.lag)
        else:
            self.use(thread, step, iteration)
        return True

    # Copies and slots

    def issue(self, thread: Thread, group: CopyGroup, iteration: int) -> None:
        """Issue a group's copies; for transactions, the first thread issues all of its block."""
        alone = isinstance(group.completion, (Transactions, Arrival)) or group.issuer.count == 1
        if alone and not thread.leads:
            return
        sizes = dict.fromkeys((thread.block,), 0)
        for c in group.copies:
            partners = c.partners(thread.block)
            for block in partners:
                sizes[block] = sizes.get(block, 0) + c.bytes // len(partners)
        for block, size in sizes.items():
            arrives = group.completion.barrier if isinstance(group.completion, Arrival) else ""
            self.fly(thread, Flight(self.event(), iteration, group, thread.clock, block, size, arrives))

    def complete(self, thread: Thread, name: str, iteration: int, blocks: Sequence[int]) -> None:
        """Let the uses of a thread arrive in some blocks when they are complete."""
        before = thread.clock
        for event, _ in thread.uses:
            before |= 1 << event
        thread.uses = []
        for block in blocks:
            event = self.event()
            if block != thread.block:
                self.send(thread, block, name, event)
            self.launch(thread, Flight(event, iteration, None, before, block, 0, name))

    def fly(self, thread: Thread, flight: Flight) -> None:
        """Begin the copies of a thread to a block."""
        block, iteration, group, slot = (
            flight.block,
            flight.iteration,
            flight.group,
            flight.iteration % self.schedule.stages,
        )
        assert group is not None
        for ring in dict.fromkeys(c.ring for c in group.copies if block in c.partners(thread.block)):
            for read in self.reads.get((block, ring, slot), ()):
                if not thread.clock >> read & 1:
                    raise Unbalanced(
                        ring, f"slot {slot} is filled for iteration {iteration} while it may still be read"
                    )
            parts = self.filled.setdefault((block, ring, slot), {})
            for old in parts.values():
                if old.iteration != iteration and not thread.clock >> old.event & 1:
                    raise Unbalanced(
                        ring, f"slot {slot} is filled for iteration {iteration} while a copy to it is in flight"
                    )
                if old.iteration == iteration and parts.get(thread.number) is old:
                    raise Unbalanced(ring, f"slot {slot} is filled twice for iteration {iteration}")
            parts = {n: f for n, f in parts.items() if f.iteration == iteration}
            self.filled[block, ring, slot] = parts | {thread.number: flight}
            self.reads[block, ring, slot] = []
        if isinstance(group.completion, Immediate):
            thread.clock |= 1 << flight.event
        elif isinstance(group.completion, CountedGroups):
            thread.open.append(flight)
        else:
            if block != thread.block:  # its own thread has arrived in that phase
                name, phase = group.completion.barrier, iteration // self.schedule.stages
                self.send(thread, block, name, flight.event)
                self.certain(thread, (block, name, slot), phase, f"bytes of iteration {iteration}")
            self.launch(thread, flight)

    def launch(self, thread: Thread, flight: Flight) -> None:
        """Start an asynchronous completion."""
        if flight.arrives:
            slot, phase = flight.iteration % self.schedule.stages, flight.iteration // self.schedule.stages
            what = f"an arrival for iteration {flight.iteration}"
            self.certain(thread, (flight.block, flight.arrives, slot), phase, what)
        if self.late:
            self.transacted.append(flight)
            self.flying.append(flight)
        else:
            self.deliver(flight)

    def use(self, thread: Thread, step: Use, iteration: int) -> None:
        """Check that slots hold what the thread reads."""
        slot, event = iteration % self.schedule.stages, self.event(None if step.in_flight else thread)
        if step.in_flight:
            thread.uses.append((event, iteration))
        for ring in step.rings or [r.name for r in self.schedule.rings]:
            parts = self.filled.get((thread.block, ring, slot), {})
            wanted = self.parts(ring, thread.block)
            if any(f.iteration != iteration for f in parts.values()):
                other = next(f.iteration for f in parts.values() if f.iteration != iteration)
                raise Unbalanced(ring, f"slot {slot} holds iteration {other} when iteration {iteration} is read")
            if len(parts) < wanted:
                raise Unbalanced(ring, f"slot {slot} is read for iteration {iteration} before its copy is issued")
            for flight in parts.values():
                if not thread.clock >> flight.event & 1:
                    raise Unbalanced(ring, f"slot {slot} is read for iteration {iteration} before its copy is complete")
            self.reads.setdefault((thread.block, ring, slot), []).append(event)

    def parts(self, ring: str, block: int) -> int:
        """Return the number of threads that issue parts of a ring's copies to a block."""
        for group in self.schedule.groups:
            for c in group.copies:
                if c.ring == ring:
                    several = 1 if isinstance(group.completion, (Transactions, Arrival)) else min(2, group.issuer.count)
                    return several * len(c.partners(block))
        raise Unbalanced(ring, "nothing is copied to it")

    # Barriers

    def arrive(
        self, thread: Thread, name: str, iteration: int, arrivals: int, announced: int = 0, block: int | None = None
    ) -> None:
        """Arrive for an iteration, in another block than the thread's if that is given."""
        if not arrivals:
            return
        event = self.event(thread)
        if block not in (None, thread.block):
            self.send(thread, block, name, event)
        slot, phase = iteration % self.schedule.stages, iteration // self.schedule.stages
        key = (thread.block if block is None else block, name, slot)
        found = self.objects[key]
        self.certain(thread, key, phase, f"an arrival for iteration {iteration}")
        if arrivals > found.arrivals:
            total = self.counts[name] - found.arrivals + arrivals
            raise Unbalanced(name, f"phase {phase} of slot {slot} gets {total} arrivals of {self.counts[name]}")
        found.arrivals -= arrivals
        found.bytes += announced
        found.announced += announced
        found.clock |= thread.clock
        self.end(key)

    def send(self, thread: Thread, block: int, name: str, event: int) -> None:
        """Record an access to another block, whose objects must exist then."""
        if not thread.met:
            raise Unbalanced(name, f"block {thread.block} uses the objects of block {block} before the blocks meet")
        self.sent.append((block, name, event))

    def wait(self, thread: Thread, name: str, iteration: int, lag: int) -> bool:
        """Pass if the phase has ended."""
        slot, phase = iteration % self.schedule.stages, iteration // self.schedule.stages - lag
        if phase < 0:
            if lag == 0 or phase < -1:
                raise Unbalanced(name, f"a wait names phase {phase} of slot {slot}")
            self.waits.append((thread.block, name, slot, phase, self.event(thread)))
            return True
        key = (thread.block, name, slot)
        found = self.objects[key]
        self.certain(thread, key, phase, f"a wait for phase {phase}")
        if found.phase <= phase:
            thread.waits = name
            return False
        thread.clock |= found.ends[phase][1] | 1 << found.ends[phase][0]
        self.waits.append((*key, phase, self.event(thread)))
        return True

    def certain(self, thread: Thread, key: tuple[int, str, int], phase: int, what: str) -> None:
        """Require that the phase before a phase has ended before an event, in every interleaving."""
        found, (_, name, slot) = self.objects[key], key
        if found.phase > phase and "arrival" in what:
            raise Unbalanced(name, f"{what} comes when phase {found.phase} of slot {slot} has begun")
        if phase == 0:
            return
        if found.phase < phase or not thread.clock >> found.ends[phase - 1][0] & 1:
            raise Unbalanced(name, f"{what} of slot {slot} may come before phase {phase - 1} has ended")

    def deliver(self, flight: Flight) -> None:
        """Complete copies of transactions."""
        name = flight.barrier
        slot, phase = flight.iteration % self.schedule.stages, flight.iteration // self.schedule.stages
        key = (flight.block, name, slot)
        found = self.objects[key]
        if found.phase != phase:
            what = f"the bytes of iteration {flight.iteration} come in phase {found.phase} of slot {slot}"
            raise Unbalanced(name, f"{what}, not in phase {phase}: it ended without them")
        if flight.arrives and not found.arrivals:
            raise Unbalanced(name, f"phase {phase} of slot {slot} gets more than {self.counts[name]} arrivals")
        if flight.arrives:
            found.arrivals -= 1
        else:
            found.bytes -= flight.bytes
            found.delivered += flight.bytes
        found.clock |= flight.before | 1 << flight.event
        self.end(key)

    def deliver_one(self) -> bool:
        """Complete the oldest copies in flight, if there are any."""
        if not self.flying:
            return False
        oldest = min(self.flying, key=lambda f: (f.iteration, f.block))
        self.flying = [f for f in self.flying if f is not oldest]
        self.deliver(oldest)
        return True

    def end(self, key: tuple[int, str, int]) -> None:
        """End an object's phase if it is complete."""
        found, (_, name, _) = self.objects[key], key
        if found.arrivals == 0 and found.bytes == 0:
            found.ends.append((self.event(), found.clock))
            found.phase += 1
            found.arrivals, found.announced, found.delivered = self.counts[name], 0, 0
            found.clock = 0

    # Threads together

    def meet(self, waiting: dict[int, Step]) -> bool:
        """Release threads at a role or cluster barrier once all have arrived."""
        moved = False
        roles = [
            (Sync, [t for t in self.threads if t.program is program and t.block == block])
            for block in self.blocks for program in self.schedule.programs
        ]  # fmt: skip
        for kind, mine in [*roles, (Meet, self.threads)]:
            if all(isinstance(waiting.get(t.number), kind) for t in mine):
                clock = 0
                for t in mine:
                    clock |= t.clock
                for t in mine:
                    t.clock, t.met = clock, t.met or kind is Meet
                    del waiting[t.number]
                moved = True
        return moved

    def stuck(self, waiting: dict[int, Step]) -> None:
        """Raise the reason of a deadlock."""
        for thread in self.threads:
            step = waiting.get(thread.number)
            if isinstance(step, WaitPhase):
                iteration = thread.iteration + step.offset
                slot, phase = iteration % self.schedule.stages, iteration // self.schedule.stages - step.lag
                found = self.objects[thread.block, step.barrier, slot]
                reason = self.lacks(step.barrier, found)
                raise Unbalanced(step.barrier, f"a wait for phase {phase} of slot {slot} never passes: {reason}")
        names = ", ".join(t.program.role.name for t in self.threads if t.number in waiting)
        raise Unbalanced(names, "some of its threads wait at a barrier that others never reach")

    def lacks(self, name: str, found: Object) -> str:
        """Describe the missing arrivals or bytes of a phase."""
        if found.arrivals:
            return f"it gets {self.counts[name] - found.arrivals} of {self.counts[name]} arrivals"
        return f"{found.announced} bytes are announced and {found.delivered} delivered"

    def finish(self) -> None:
        """Check the final state, and that waits for a phase precede the next phase's end."""
        for (_, name, slot), found in self.objects.items():
            if found.arrivals != self.counts[name] or found.bytes:
                lacks = self.lacks(name, found)
                raise Unbalanced(name, f"phase {found.phase} of slot {slot} is open at the end: {lacks}")
        for thread in self.threads:
            left = [f for group in [*thread.groups, thread.open] for f in group if not thread.clock >> f.event & 1]
            if left:
                raise Unbalanced(left[0].name, f"the copies of iteration {left[0].iteration} are never waited for")
            if thread.uses:
                raise Unbalanced(self.schedule.loop, f"the use of iteration {thread.uses[0][1]} is never waited for")
        waited = [0 for _ in self.blocks]
        for thread in self.threads:
            waited[thread.block] |= thread.clock
        for flight in self.transacted:
            if not waited[flight.block] >> flight.event & 1:
                what = "copies" if flight.group is not None else "uses"
                raise Unbalanced(flight.name, f"the {what} of iteration {flight.iteration} are never waited for")
        for block, name, event in self.sent:
            if not waited[block] >> event & 1:
                raise Unbalanced(name, f"block {block} may end before another one has used its objects")
        for block, name, slot, phase, event in self.waits:
            ends = self.objects[block, name, slot].ends
            if phase + 1 < len(ends) and not ends[phase + 1][1] >> event & 1:
                reason = f"phase {phase + 1} of slot {slot} may end while a thread waits for phase {phase}"
                raise Unbalanced(name, reason)

    # State

    def event(self, thread: Thread | None = None) -> int:
        """Return the number of a new event, one of a thread if that is given."""
        number = self.events
        self.events += 1
        if thread is not None:
            thread.clock |= 1 << number
        return number

    def state(self, iteration: int) -> Any:
        """Return the state that determines all further steps, with iterations relative to ``iteration``."""
        stages = self.schedule.stages
        base = iteration // stages

        def known(event: int) -> tuple[bool, ...]:
            return tuple(bool(t.clock >> event & 1) for t in self.threads)

        def trips(flights: list[Flight]) -> tuple[int, ...]:
            return tuple(f.iteration - iteration for f in flights)

        threads = tuple(
            (
                t.at - iteration,
                t.position,
                tuple(map(trips, t.groups)),
                trips(t.open),
                tuple(of - iteration for _, of in t.uses),
            )
            for t in self.threads
        )
        objects = tuple(
            (
                block, (slot - iteration) % stages, name, o.phase - base + (slot < iteration % stages),
                o.arrivals, o.bytes, known(o.ends[-1][0]) if o.ends else (),
            )
            for (block, name, slot), o in self.objects.items()
        )  # fmt: skip
        slots = tuple(
            (block, ring, (slot - iteration) % stages,
             tuple((n, f.iteration - iteration, known(f.event)) for n, f in sorted(parts.items())),
             tuple(known(r) for r in self.reads[block, ring, slot]))
            for (block, ring, slot), parts in self.filled.items()
        )  # fmt: skip
        flying = tuple(sorted((f.block, f.iteration - iteration, f.arrives) for f in self.flying))
        return threads, tuple(sorted(objects)), tuple(sorted(slots)), flying


def _arrivals(thread: Thread, step: Arrive) -> int:
    """Return the number of arrivals of the threads that a thread represents."""
    if step.each == "thread":
        return thread.weight
    if step.each == "role":
        return int(thread.leads)
    warps = max(1, -(-thread.program.role.count // _WARP))
    return 1 if thread.leads else warps - 1
