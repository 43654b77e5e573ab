"""The order of a schedule's steps, by executing its programs.

Only the order follows from a schedule. A step takes one column, computing on slots ``USE``, and waiting as long as
the awaited step takes. Copies have no duration of their own: a slot is drawn as filling until a role has waited for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from tile_core.errors import InternalError
from tile_core.records import dataclass
from tile_core.simt.pipelining.schedule import (
    Arrival,
    Arrive,
    Commit,
    Complete,
    CopyGroup,
    Expect,
    Immediate,
    Issue,
    Meet,
    RoleProgram,
    Schedule,
    Step,
    Sync,
    Transactions,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
    step_text,
)

USE = 4
"""Columns of a use of slots."""
MORE = 3
"""Iterations that are executed beyond the number of stages."""


@dataclass(frozen=True)
class Bar:
    """A step of a role, or the contents of a slot.

    Attributes
    ----------
    kind
        ``"copy"``, ``"use"``, ``"wait"``, ``"sync"``, and ``"flight"``: an asynchronous use after its issue. Of a slot
        ``"copy"`` and ``"use"``.
    start, end
        The columns.
    iteration
        Of the loop; ``None`` if it is not of one.
    text
        The step in words.
    """

    kind: str
    start: int
    end: int
    iteration: int | None
    text: str


@dataclass(frozen=True)
class Timeline:
    """The bars of roles and of slots.

    Attributes
    ----------
    roles
        By role, in the order of the schedule.
    slots
        By group and slot.
    iterations
        Executed iterations.
    end
        The last column.
    """

    roles: tuple[tuple[Bar, ...], ...]
    slots: dict[tuple[str, int], tuple[Bar, ...]]
    iterations: int
    end: int


def timeline_of(schedule: Schedule) -> Timeline:
    """Return the bars of a schedule's first iterations, as if the loop ended after them.

    Raises
    ------
    InternalError
        If its roles wait for each other.
    """
    return _ScheduleRun(schedule).run()


@dataclass
class _Agent:
    """A role that executes its steps: its clock, and its copies and uses in flight."""

    program: RoleProgram
    steps: list[tuple[Step, int]]
    clock: int = 0
    at: int = 0
    met: int = 0
    bars: list[Bar] = field(default_factory=list)
    issued: list[tuple[str, int]] = field(default_factory=list)
    commits: list[list[tuple[str, int]]] = field(default_factory=list)
    #: Asynchronous uses that nothing has waited for: start, end, iteration, groups.
    flying: list[tuple[int, int, int, tuple[str, ...]]] = field(default_factory=list)
    busy: int = 0


class _ScheduleRun:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        least = schedule.stages + MORE
        self.count = least if schedule.trips is None else min(schedule.trips, least)
        self.agents = [_Agent(p, list(self.unrolled(p))) for p in schedule.programs]
        #: Arrivals of a barrier for an iteration that are left, and the column of the last one.
        self.left = Counter(key for a in self.agents for step, t in a.steps for key in self.arrivals(step, t))
        self.reached: dict[tuple[str, int], int] = {}
        self.meeting: dict[int, list[int]] = {}
        self.filling: dict[tuple[str, int], int] = {}
        self.slots: dict[tuple[str, int], list[Bar]] = {
            (g.name, slot): [] for g in schedule.groups for slot in range(schedule.stages)
        }

    def run(self) -> Timeline:
        while any(a.at < len(a.steps) for a in self.agents):
            if sum(self.advanced(a) for a in self.agents) == 0:
                raise InternalError(stage="explain", detail=f"the roles of loop {self.schedule.loop} wait forever")
        for a in self.agents:
            self.landed(a, len(a.flying), 0)
        end = max((b.end for a in self.agents for b in a.bars), default=0)
        slots = {key: tuple(sorted(bars, key=lambda b: (b.start, b.end))) for key, bars in self.slots.items()}
        return Timeline(tuple(tuple(a.bars) for a in self.agents), slots, self.count, end)

    def unrolled(self, program: RoleProgram) -> Iterator[tuple[Step, int]]:
        """Yield the steps of a role for the iterations that exist."""
        parts = [(program.before, 0), *((program.iteration, t) for t in range(self.count)), (program.after, self.count)]
        for steps, base in parts:
            for step in steps:
                iteration = base + getattr(step, "offset", 0)
                if not hasattr(step, "offset") or 0 <= iteration < self.count:
                    yield step, iteration

    def arrivals(self, step: Step, iteration: int) -> list[tuple[str, int]]:
        """Return the barriers at which a step arrives."""
        if isinstance(step, (Expect, Arrive, Complete)):
            return [(step.barrier, iteration)]
        if isinstance(step, Issue):
            barrier = self.barrier_of(self.schedule.group(step.group))
            return [(barrier, iteration)] if barrier else []
        return []

    def barrier_of(self, group: CopyGroup) -> str:
        """Return the barrier that signals the completion of a group; empty if none does."""
        return group.completion.barrier if isinstance(group.completion, (Transactions, Arrival)) else ""

    def advanced(self, a: _Agent) -> int:
        """Execute steps of a role until it must wait; return their number."""
        first = a.at
        while a.at < len(a.steps) and self.executed(a, *a.steps[a.at]):
            a.at += 1
        return a.at - first

    def executed(self, a: _Agent, step: Step, iteration: int) -> bool:
        """Execute a step; return whether it could be."""
        if isinstance(step, WaitPhase):
            return self.wait_phase(a, step, iteration)
        if isinstance(step, Meet):
            return self.meet(a, step)
        if isinstance(step, Sync):
            self.add(a, "sync", a.clock + 1, None, step)
        elif isinstance(step, Issue):
            self.issue(a, step, iteration)
        elif isinstance(step, Commit):
            a.commits.append(a.issued)
            a.issued = []
        elif isinstance(step, WaitGroups):
            done = a.commits[: len(a.commits) - step.pending]
            del a.commits[: len(done)]
            self.add(a, "wait", a.clock + 1, None, step)
            self.filled([key for group in done for key in group], a.clock)
        elif isinstance(step, Use):
            self.use(a, step, iteration)
        elif isinstance(step, WaitUses):
            many = max(0, len(a.flying) - step.pending)
            self.add(a, "wait", max([a.clock, *(end for _, end, _, _ in a.flying[:many])]), None, step)
            self.landed(a, many)
        self.arrive(a, step, iteration)
        return True

    def add(self, a: _Agent, kind: str, end: int, iteration: int | None, step: Step) -> None:
        """Add a bar that begins at a role's clock, and set the clock."""
        if end > a.clock:
            a.bars.append(Bar(kind, a.clock, end, iteration, step_text(step)))
        a.clock = end

    def arrive(self, a: _Agent, step: Step, iteration: int) -> None:
        for key in self.arrivals(step, iteration):
            self.left[key] -= 1
            when = a.clock
            if isinstance(step, Complete):
                when = max([when, *(end for _, end, t, _ in a.flying if t == iteration)])
                self.landed(a, sum(t <= iteration for _, _, t, _ in a.flying), 0)
            self.reached[key] = max(self.reached.get(key, 0), when)

    def wait_phase(self, a: _Agent, step: WaitPhase, iteration: int) -> bool:
        key = step.barrier, iteration - step.lag * self.schedule.stages
        if self.left[key] > 0:
            return False
        self.add(a, "wait", max(a.clock, self.reached.get(key, 0)), iteration, step)
        ended = [g.name for g in self.schedule.groups if self.barrier_of(g) == step.barrier and not step.lag]
        self.filled([(name, iteration) for name in ended], a.clock)
        return True

    def meet(self, a: _Agent, step: Step) -> bool:
        """Wait for all roles that have as many of these barriers."""
        clocks = self.meeting.setdefault(a.met, [])
        others = [b for b in self.agents if any(isinstance(s, Meet) for s, _ in b.steps)]
        waiting = [b.met > a.met or self.is_at_meet(b) for b in others]
        if not all(waiting):
            return False
        clocks.append(max(b.clock for b in others if b.met == a.met))
        self.add(a, "sync", max(*clocks, a.clock) + 1, None, step)
        a.met += 1
        return True

    def is_at_meet(self, a: _Agent) -> bool:
        return a.at < len(a.steps) and isinstance(a.steps[a.at][0], Meet)

    def issue(self, a: _Agent, step: Issue, iteration: int) -> None:
        group, key = self.schedule.group(step.group), (step.group, iteration)
        self.filling[key] = a.clock
        a.issued.append(key)
        self.add(a, "use" if isinstance(group.completion, Arrival) else "copy", a.clock + 1, iteration, step)
        if isinstance(group.completion, Immediate):
            self.filled([key], a.clock)

    def filled(self, keys: list[tuple[str, int]], column: int) -> None:
        """End the filling of slots that a role has waited for."""
        for name, iteration in keys:
            start = self.filling.pop((name, iteration), None)
            if start is not None:
                text = f"{_rings(self.schedule.group(name))} of iteration {iteration}: issued, and not waited for"
                self.slot(name, Bar("copy", start, max(column, start + 1), iteration, text))

    def use(self, a: _Agent, step: Use, iteration: int) -> None:
        every, named = self.schedule.groups, set(step.rings)
        groups = tuple(g.name for g in every if not named or named & {c.ring for c in g.copies})
        if not step.in_flight:
            start = a.clock
            self.add(a, "use", start + USE, iteration, step)
            self.used(start, a.clock, iteration, groups)
            return
        start, begun = a.clock, max(a.clock, a.busy)
        a.busy = begun + USE
        a.flying.append((start, a.busy, iteration, groups))
        a.bars.append(Bar("flight", begun, a.busy, iteration, f"{step_text(step)}: in flight"))
        self.add(a, "use", a.clock + 1, iteration, step)

    def landed(self, a: _Agent, many: int, waited: int | None = None) -> None:
        """End the first asynchronous uses of a role, by default where it is."""
        for start, end, iteration, groups in a.flying[:many]:
            self.used(start, max(end, a.clock if waited is None else waited), iteration, groups)
        del a.flying[:many]

    def used(self, start: int, end: int, iteration: int, groups: tuple[str, ...]) -> None:
        for name in groups:
            text = f"{_rings(self.schedule.group(name))} of iteration {iteration}: read"
            bars = self.slots[name, iteration % self.schedule.stages]
            # Several roles and steps may read a slot: that is one bar.
            for same in [b for b in bars if (b.kind, b.iteration) == ("use", iteration)]:
                start, end = min(start, same.start), max(end, same.end)
                bars.remove(same)
            self.slot(name, Bar("use", start, end, iteration, text))

    def slot(self, group: str, bar: Bar) -> None:
        assert bar.iteration is not None
        self.slots[group, bar.iteration % self.schedule.stages].append(bar)


def _rings(group: CopyGroup) -> str:
    return ", ".join(dict.fromkeys(c.ring for c in group.copies))
