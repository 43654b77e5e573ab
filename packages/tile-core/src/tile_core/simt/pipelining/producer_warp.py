"""Producer warps for blocks with one tile each.

The counterpart of ``persistent.py`` for loops that persistent blocks do not support: loops of several products, whose
iterations may overlap and whose warpgroups may ping-pong, and loops with trip counts known at run time only::

    the producer:  for k: for each group: wait until its slot is empty; expect bytes; copy
    the consumers: before; for k: wait until slots are full; compute; release unused slots; then after

An iteration's slot is released at its end, and the slot that its tail reads one iteration later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import annotation, renamed, replace_for
from tile_core.simt.pipelining.dependences import top_level
from tile_core.simt.pipelining.grids import GridLoops
from tile_core.simt.pipelining.iteration_counts import IterationCount, KeptCount
from tile_core.simt.pipelining.overlap_writer import OverlapWriter
from tile_core.simt.pipelining.persistent import PRODUCER, PersistentGrid, consumer_role, producer_role
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.role_slices import InPlace, RoleSlice
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Expect,
    Issue,
    PhaseBarrier,
    RoleProgram,
    Schedule,
    Step,
    Transactions,
    Use,
    WaitPhase,
    WaitUses,
    order_barriers_of,
)
from tile_core.simt.pipelining.writers import Around, LoopWriter
from tile_core.simt.role import Role


def with_producer_warp(
    plan: LoopPlan, threads: int, persistent: PersistentGrid, name: Callable[[str], str]
) -> LoopPlan:
    """Return the plan of a loop with a producer warp.

    Parameters
    ----------
    plan
        With a schedule whose copies are transactions.
    threads
        Of the program.
    name
        Makes a name that the program does not have.
    """
    schedule, producer = plan.schedule, Role(PRODUCER, threads, 1)
    late = _late(plan)
    free = {g.name: name(f"{schedule.loop}_free") for g in schedule.groups}
    each: Any = persistent.arrivals
    width = persistent.width if each == "warp" else 1
    copies: list[Step] = []
    for group in schedule.groups:
        assert isinstance(group.completion, Transactions)
        copies += [WaitPhase(free[group.name], lag=1), Expect(group.completion.barrier, group.bytes), Issue(group.name)]
    programs = [RoleProgram(producer, (), tuple(copies))]
    order_barriers = order_barriers_of(schedule)
    for program in schedule.programs:
        in_flight = plan.product is not None
        arrivals = [Arrive(free[g.name], each, -1 if in_flight or g.name in late else 0) for g in schedule.groups]
        after = [a for a in arrivals if a.offset < 0]
        own = {s.barrier for s in program.iteration if isinstance(s, WaitPhase)} & order_barriers
        iteration = (*_without(program.iteration, own), *arrivals)
        programs.append(replace(
            program, before=_without(program.before, own), iteration=iteration,
            after=(*_without(program.after, own), *after),
        ))  # fmt: skip
    # In ping-pong, only the preceding group signals the next one; slots are released by their readers.
    sizes = {b.name: programs[-1].role.count if b.name in order_barriers else b.arrivals for b in schedule.barriers}
    barriers = [PhaseBarrier(b, n) for b, n in sizes.items()]
    barriers += [PhaseBarrier(b, threads // width) for b in free.values()]
    moved = tuple(replace(g, issuer=producer) for g in schedule.groups)
    made = replace(schedule, groups=moved, programs=tuple(programs), barriers=tuple(barriers))
    return replace(plan, schedule=made)


def write_producer_warp(
    plan: LoopPlan, grid: GridLoops, repeated: RoleSlice, persistent: PersistentGrid, thread: Var, threads: int
) -> Stmt:
    """Return the loops over the grid, with a producer warp in each block.

    Parameters
    ----------
    plan
        Of `with_producer_warp`.
    repeated
        The statements of the block that the producer repeats.
    thread
        The variable of a thread's number in the block.
    threads
        Of the program.
    """
    made = _Overlapping if plan.overlap is not None else _Sequential
    return _Block(made(plan, Around(busy=False, nested=False)), grid, repeated, persistent, thread, threads).written()


class _Block:
    """Writes a block: the producer and the consumers.

    Parameters
    ----------
    consumers
        Writes the loop of the program's threads.
    """

    def __init__(
        self,
        consumers: _Sequential | _Overlapping,
        grid: GridLoops,
        repeated: RoleSlice,
        persistent: PersistentGrid,
        thread: Var,
        threads: int,
    ) -> None:
        self.consumers, self.grid, self.repeated = consumers, grid, repeated
        self.persistent, self.thread, self.threads = persistent, thread, threads
        self.loop, self.plan, self.schedule = consumers.loop, consumers.plan, consumers.schedule
        self.number = nodes.fresh("number")
        consumers.lane = lambda: tirx.floormod(self.number, nodes.int_const(persistent.width))

    def written(self) -> Stmt:
        """Return the loops over the grid."""
        shared = [s for s in self.grid.body if isinstance(s, tirx.AllocBuffer)]
        named = self.grid.before() if self.grid.loop is not None else []
        made, parts = self.consumers.objects()
        first = calls.only(("the first thread", 0, 1), nodes.seq(parts))
        both = nodes.seq([self.producer(named), self.consumer(named)])
        rings = calls.managed(list(self.plan.rings.values()), both, self.loop.span)
        body = nodes.seq([*shared, *named, *made, first, rings])
        for axis in sorted(self.grid.axes, reverse=True):
            outer = self.grid.axes[axis]
            notes = {str(k): v for k, v in outer.annotations.items()}
            if annotation(outer, attributes.THREADS) is not None:
                every = self.threads + self.persistent.producers
                notes[attributes.THREADS] = [nodes.int_const(every), *([nodes.int_const(1)] * 2)]
            body = replace_for(outer, body, annotations=notes)
        return body

    def counts(self, name: str) -> tuple[list[Stmt], IterationCount]:
        """Return the statements at the begin of a role, and the count of its iterations."""
        if not self.grid.repeats:
            return [], IterationCount(nodes.int_const(0))
        kept = KeptCount(f"{self.loop.loop_var.name}_{name}", self.schedule.stages)
        return list(kept.made), kept.of(self.consumers.trips)

    def producer(self, named: Sequence[Stmt]) -> Stmt:
        """Return the statements of the producer thread."""
        before, self.consumers.count = self.counts("copied")
        body = nodes.seq(self.repeated.written(lambda loop: self.copying(), named))
        work = nodes.seq([*before, renamed(body)])
        return producer_role(self.persistent, self.threads, self.thread, work, self.loop.span)

    def copying(self) -> list[Stmt]:
        """Return the loop of the producer thread."""
        loop, kind, consumers = self.loop, self.consumers.kind, self.consumers
        k = nodes.fresh(f"{loop.loop_var.name}_ahead", kind)
        mapping: dict[Any, Any] = {loop.loop_var: loop.min + k}
        iteration: list[Stmt] = [tirx.Bind(consumers.prefetch_slot, consumers.slot_in(k))]
        for bind in (consumers.body[i] for i in self.plan.binds):
            var = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
            iteration.append(tirx.Bind(var, consumers.at(bind.value, mapping), bind.span))
            mapping[bind.var] = var
        for step in self.schedule.programs[0].iteration:
            if isinstance(step, WaitPhase):
                iteration.append(consumers.wait(step, k, consumers.prefetch_slot))
            elif isinstance(step, Expect):
                iteration.append(
                    calls.barrier_expect(consumers.barriers[step.barrier], consumers.prefetch_slot, step.bytes)
                )
            elif isinstance(step, Issue):
                group = self.schedule.group(step.group)
                iteration += [
                    consumers.copy(c, group, mapping, consumers.prefetch_slot) for c in self.plan.copies[step.group]
                ]
        count = consumers.count
        work = nodes.for_loop(k, consumers.trips, nodes.seq(iteration), "serial", span=loop.span)
        return [*consumers.before, *count.made, work, *count.advanced]

    def consumer(self, named: Sequence[Stmt]) -> Stmt:
        """Return the statements of the program's threads."""
        consumers, program = self.consumers, self.schedule.programs[-1]
        before, consumers.count = self.counts("computed")
        count = consumers.count

        def computing(s: Stmt) -> list[Stmt]:
            return [*consumers.before, *count.made, *consumers.iterations_of(program), *count.advanced]

        in_place = InPlace([self.loop.loop_var], computing)
        body = [
            s for s in self.grid.body if not isinstance(s, tirx.AllocBuffer) and not any(s.same_as(n) for n in named)
        ]
        parts = [*before, *map(in_place.stmt, body)]
        return consumer_role(self.persistent, self.threads, (self.thread, self.number), parts, self.loop.span)


class _Consumers(LoopWriter):
    """The loop of consumer threads."""

    lane: Callable[[], Expr]
    count = IterationCount(nodes.int_const(0))

    def numbered(self, iteration: Expr) -> Expr:
        """Return the number of an iteration among those of all executions of the loop."""
        first = self.count.first
        return iteration if nodes.as_int(first) == 0 else nodes.cast(first, self.kind) + iteration

    def release_slots(self, step: Arrive, iteration: Expr) -> list[Stmt]:
        return [self.release(step, iteration, not step.offset)]

    def release(self, step: Arrive, iteration: Expr, exists: bool = True) -> Stmt:
        """Return the arrival that releases an iteration's slot, guarded if it may not exist."""
        at = self.at(iteration + nodes.int_const(step.offset, self.kind), {})
        arrive = calls.barrier_arrive(self.barriers[step.barrier], self.slot_in(at))
        if step.each == "warp":
            arrive = tirx.IfThenElse(tirx.EQ(self.lane(), nodes.int_const(0)), arrive, None)
        return arrive if exists else tirx.IfThenElse(at >= nodes.int_const(0, self.kind), arrive, None)


class _Sequential(_Consumers):
    """Iterations without overlap; their product may complete in the next iteration."""

    def iterations_of(self, program: RoleProgram) -> list[Stmt]:
        started = [self.settled(0)] if self.plan.product is not None else []
        ends = [self.settled(0)] if self.plan.product is not None else []
        releases = [s for s in program.after if isinstance(s, Arrive)]
        return [*started, self.iteration(program), *ends, *(self.release(s, self.trips, False) for s in releases)]


class _Overlapping(_Consumers, OverlapWriter):
    """Iterations whose products overlap other iterations or other statements."""

    def iterations_of(self, program: RoleProgram) -> list[Stmt]:
        if not self.overlap.tails:
            return [self.iteration(program)]
        return super().iterations_of(program)[:-1]  # without the barrier of the block

    def one_iteration(self, program: RoleProgram, iteration: Expr, first: bool) -> Stmt:
        found = super().one_iteration(program, iteration, first)
        steps = [s for s in _releases(self.schedule, program.iteration) if not first or s.offset >= 0]
        return nodes.seq([found, *(self.release(s, iteration) for s in steps)])

    def ended(self, steps: Sequence[Step]) -> list[Stmt]:
        releases = _releases(self.schedule, steps)
        others = [s for s in steps if s not in releases]
        return [*super().ended(others), *(self.release(s, self.trips) for s in releases)]


def _late(plan: LoopPlan) -> Collection[str]:
    """Return the groups of copies that the next iteration reads in its delayed tail."""
    if plan.overlap is None:
        return ()
    late, _ = plan.overlap.rings(top_level(plan.loop.body), {c.buffer for of in plan.copies.values() for c in of})
    return {name for name, of in plan.copies.items() if any(c.buffer in late for c in of)}


def _releases(schedule: Schedule, steps: Sequence[Step]) -> list[Arrive]:
    """Return the arrivals among steps that release slots."""
    free = {s.barrier for s in schedule.programs[0].iteration if isinstance(s, WaitPhase)}
    return [s for s in steps if isinstance(s, Arrive) and s.barrier in free]


def _without(steps: Sequence[Step], own: Collection[str]) -> tuple[Step, ...]:
    """Return steps without copies, block barriers and arrivals at the group's own barrier."""
    kept = (WaitPhase, Use, WaitUses, Arrive)
    return tuple(s for s in steps if isinstance(s, kept) and not (isinstance(s, Arrive) and s.barrier in own))
