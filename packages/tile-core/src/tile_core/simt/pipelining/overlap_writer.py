"""Writer of loops whose iterations overlap (``overlap.py``).

With three stages::

    copy iterations 0 and 1, for tails only iteration 0
    if there are iterations:
        iteration 0, without a tail
        for k from 1:
            wait for the copies of iteration k, and of k - 1 that its tail reads; sync
            copy iteration k + 2 and, for tails, iteration k + 1
            begin the first products of k and the tail of k - 1
            the rest of iteration k, with waits where it needs them
        wait for the last copies that a tail reads; the tail of the last iteration
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import renamed, replace_for, substitute
from tile_core.ops.base import with_attributes
from tile_core.simt.pipelining.async_products import PENDING, WAIT_USES, Product
from tile_core.simt.pipelining.dependences import without_dead
from tile_core.simt.pipelining.overlap import Item
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    Expect,
    Issue,
    RoleProgram,
    Step,
    Sync,
    Use,
    WaitPhase,
    WaitUses,
    order_barriers_of,
    ping_pong_programs,
)
from tile_core.simt.pipelining.writers import Around, LoopWriter, on_slot, runs_of, slot_of


class OverlapWriter(LoopWriter):
    """Writes such a loop."""

    def __init__(self, plan: LoopPlan, around: Around) -> None:
        super().__init__(plan, around)
        assert plan.overlap is not None
        self.overlap = plan.overlap
        self.zero = nodes.int_const(0, self.kind)
        self.one = nodes.int_const(1, self.kind)

    def iterations_of(self, program: RoleProgram) -> list[Stmt]:
        """Return the first iteration, the loop, the last tail, and the last barrier."""
        if not self.overlap.tails:
            return super().iterations_of(program)
        loop, rest = self.loop, program.after[: -1 if program.after[-1] == Sync() else None]
        signals = [
            calls.only(_threads(p), calls.barrier_arrive(self.barriers[s.barrier], nodes.int_const(0)))
            for p in self.schedule.programs for s in p.before if isinstance(s, Arrive)
        ]  # fmt: skip
        first = substitute(self.one_iteration(program, self.zero, True), {loop.loop_var: loop.min})
        notes = {str(k): v for k, v in loop.annotations.items()} | {attributes.ROLE: "serial"}
        iteration = loop.loop_var if nodes.as_int(loop.min) == 0 else loop.loop_var - loop.min
        extent = self.at(self.trips - self.one, {})
        others = replace_for(
            loop, self.one_iteration(program, iteration, False), min=self.at(loop.min + self.one, {}), extent=extent,
            annotations=notes,
        )  # fmt: skip
        parts = nodes.seq([*signals, renamed(first), others, *self.ended(rest)])
        trips = nodes.as_int(self.trips)
        if not isinstance(trips, int):
            parts = tirx.IfThenElse(self.zero < self.trips, parts, None, loop.span)
        return [parts, calls.sync_threads()]

    def computed(self) -> list[Stmt]:
        """Return the rest of the body with waits, if no product runs in another iteration."""
        kept = without_dead(self.body, self.plan.moved, self.plan.binds)
        order = self.overlap.order(self.body, kept, True)
        return [self.written(item, self.slot, self.slot, self.loop.loop_var) for item in order]

    def one_iteration(self, program: RoleProgram, iteration: Expr, first: bool) -> Stmt:
        """Return an iteration, without a tail if it is the first."""
        slot, before = nodes.fresh("slot"), nodes.fresh("slot_before")
        parts: list[Stmt] = [tirx.Bind(slot, slot_of(iteration, self.stages))]
        if not first:
            parts.append(tirx.Bind(before, slot_of(iteration - self.one, self.stages)))
        opening = program.iteration[
            : next(i for i, s in enumerate(program.iteration) if isinstance(s, (Use, WaitUses)))
        ]
        order_barriers = order_barriers_of(self.schedule)
        for offset, run in runs_of(opening):
            issued = [s for s in run if isinstance(s, (Issue, Expect, Commit))]
            for step in run:
                if isinstance(step, WaitPhase) and step.barrier in order_barriers:
                    parts += [
                        self.wait_for_signal(p, iteration, slot, order_barriers)
                        for p in ping_pong_programs(self.schedule)
                    ]
                elif step not in issued and not (first and offset < 0):
                    parts.append(
                        self.wait(step, iteration + offset if offset else iteration, slot if offset == 0 else before)
                    )
            if issued:
                at_iteration, at = iteration + nodes.int_const(offset, self.kind), nodes.fresh("slot_ahead")
                parts += [tirx.Bind(at, slot_of(at_iteration, self.stages)), *self.issue(issued, at_iteration, at)]
        kept = without_dead(self.body, self.plan.moved, self.plan.binds)
        for item in self.overlap.order(self.body, kept, first):
            parts += (
                self.arrivals(iteration, slot, True) if item.begun else [self.written(item, slot, before, iteration)]
            )
        return nodes.seq([*parts, *self.arrivals(iteration, slot, False)])

    def wait_for_signal(
        self, program: RoleProgram, iteration: Expr, slot: Var, order_barriers: Collection[str]
    ) -> Stmt:
        """Return the wait of a ping-pong group for its signal."""
        (step,) = (s for s in program.iteration if isinstance(s, WaitPhase) and s.barrier in order_barriers)
        return calls.only(_threads(program), self.wait(step, iteration, slot), self.loop.span)

    def arrivals(self, iteration: Expr, slot: Var, begun: bool) -> list[Stmt]:
        """Return the arrivals that signal the next ping-pong group, after issue or after completion."""
        found: list[Stmt] = []
        order_barriers = order_barriers_of(self.schedule)
        for program in ping_pong_programs(self.schedule):
            ends = program.iteration.index(WaitUses(0))
            steps = program.iteration[:ends] if begun else program.iteration[ends:]
            for step in (s for s in steps if isinstance(s, Arrive) and s.barrier in order_barriers):
                at_iteration = iteration + nodes.int_const(step.offset, self.kind)
                at = slot_of(at_iteration, self.stages) if step.offset else slot
                gives = calls.barrier_arrive(self.barriers[step.barrier], at)
                if step.offset:
                    gives = tirx.IfThenElse(at_iteration < self.trips, gives, None, self.loop.span)
                found.append(calls.only(_threads(program), gives, self.loop.span))
        return found

    def ended(self, steps: Sequence[Step]) -> list[Stmt]:
        """Return the steps after the loop: the tail of the last iteration."""
        before = nodes.fresh("slot_before")
        last = self.trips - self.one
        parts: list[Stmt] = [tirx.Bind(before, slot_of(last, self.stages))]
        parts += [self.wait(s, last, before) for s in steps if not isinstance(s, (Use, WaitUses))]
        return [*parts, *(self.written(item, before, before, self.trips) for item in self.overlap.last(self.body))]

    def written(self, item: Item, slot: Var, before: Var, iteration: Expr) -> Stmt:
        """Return a statement of an iteration on its slot, or a wait."""
        if item.stmt is None:
            span, attrs = self.body[item.ended[-1].position].span, {PENDING: item.pending, attributes.IN_FLIGHT: 1}
            waits = [nodes.tile_call(WAIT_USES, [_whole(p)], attrs) for p in item.ended]
            return nodes.seq([tirx.Evaluate(w, span) for w in waits])
        found = item.stmt
        if item.product is not None:
            found = with_attributes(found, {attributes.IN_FLIGHT: 1, attributes.ENDED: 1, attributes.SETTLED: 1})
        if item.tail:
            found = substitute(found, {self.loop.loop_var: self.at(self.loop.min + iteration - self.one, {})})
        return on_slot(found, self.plan.rings, before if item.tail else slot)


def _whole(product: Product) -> Expr:
    """Return the region of a product's accumulator."""
    return nodes.region(product.accumulator.buffer, list(product.accumulator.mins), list(product.accumulator.extents))


def _threads(program: RoleProgram) -> tuple[str, int, int]:
    return program.role.name, program.role.first, program.role.count


def write_overlapping(plan: LoopPlan, around: Around) -> Stmt:
    """Return the statements of a loop whose iterations overlap."""
    return OverlapWriter(plan, around).write()
