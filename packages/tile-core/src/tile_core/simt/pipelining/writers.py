"""Writers of schedules: the statements of a pipelined loop, by how its copies complete.

A loop of three stages whose threads count groups becomes::

    copy iterations 0 and 1, each a group              # those that exist
    for k:
        wait for all but the latest group              # this thread's part of iteration k is there
        sync_threads                                   # all threads' parts are there, slot k - 1 is free
        copy iteration k + 2 into the slot of k - 1, if there is one; end the group
        compute on slot k % 3

Synchronous copies need no groups. For transactions, one thread sets the expected bytes of an iteration before its
copies, and the wait is for the phase of the slot's barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ASYNC, DIM, HALVES, IN_FLIGHT, ROLE, SRC_DIMS, AttrDict
from tile_core.ir.visit import StmtRewriter, map_expr, replace_for, substitute
from tile_core.ops.base import View, is_op, with_attributes
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import PENDING, WAIT_USES
from tile_core.simt.pipelining.dependences import Candidate, top_level, uses, without_dead
from tile_core.simt.pipelining.multicast import arrive_at_peers
from tile_core.simt.pipelining.plan import TRANSACTIONS, LoopPlan
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Commit,
    CopyGroup,
    Expect,
    Immediate,
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


@dataclass(frozen=True)
class Around:
    """Facts about the program around a loop.

    Attributes
    ----------
    busy
        Whether earlier statements may still use shared memory, or write the source of a copy.
    nested
        Whether the loop is nested in a pipelined loop.
    """

    busy: bool
    nested: bool


def write_loop(plan: LoopPlan, around: Around) -> Stmt:
    """Return the statements of a loop, with the allocations of its own rings."""
    return LoopWriter(plan, around).write()


class LoopWriter:
    """Writes a loop whose iterations are executed one after the other."""

    def __init__(self, plan: LoopPlan, around: Around) -> None:
        self.plan, self.loop, self.around = plan, plan.loop, around
        self.schedule, self.stages = plan.schedule, plan.schedule.stages
        self.body = top_level(plan.loop.body)
        self.analyzer = Analyzer()
        self.kind = nodes.dtype_of(self.loop.loop_var)
        self.trips = self.loop.extent
        self.before: list[Any] = []
        if not isinstance(self.trips, (tirx.IntImm, tirx.Var)):
            trips = nodes.fresh(f"{self.loop.loop_var.name}_trips", self.kind)
            self.before.append(tirx.Bind(trips, self.trips, self.loop.span))
            self.trips = trips
        self.barriers: dict[str, Any] = {}
        self.slot, self.prefetch_slot = nodes.fresh("slot"), nodes.fresh("slot_ahead")

    def write(self) -> Stmt:
        """Return the allocations, the barriers and the loop."""
        program = self.schedule.programs[-1]
        parts, after = self.around_barriers(program)
        if any(isinstance(s, Meet) for s in program.before):
            parts += self.met()
        elif self.around.busy:
            parts.append(calls.sync_threads())
        parts += self.started(program.before)
        parts += self.iterations_of(program)
        own = [s.buffer for s in self.body if isinstance(s, tirx.AllocBuffer)]
        allocated = [tirx.AllocBuffer(r) for b, r in self.plan.rings.items() if any(a.same_as(b) for a in own)]
        managed = calls.managed(list(self.plan.rings.values()), nodes.seq([*parts, *after]), self.loop.span)
        return nodes.seq([*allocated, *self.before, managed])

    def iterations_of(self, program: RoleProgram) -> list[Stmt]:
        """Return the loop and the steps after it."""
        parts = [self.iteration(program)]
        for step in program.after:
            # Every issued copy has been waited for by the iteration that reads it. Only empty groups remain, and an
            # enclosing loop relies on its own copies staying in flight.
            if isinstance(step, Meet):
                parts += self.met()
            elif not (isinstance(step, WaitGroups) and self.around.nested):
                parts.append(self.wait(step, self.loop.loop_var))
        return parts

    def around_barriers(self, program: RoleProgram) -> tuple[list[Stmt], list[Stmt]]:
        """Return the statements that initialise the barriers, and those after the loop."""
        first: list[Stmt] = []
        last: list[Stmt] = []
        leader = _threads(program)
        for barrier in self.schedule.barriers:
            buffer, allocate = calls.alloc_barriers(barrier.name, self.stages)
            self.barriers[barrier.name] = buffer
            self.before.append(allocate)
            slots = [nodes.int_const(slot) for slot in range(self.stages)]
            inits = [calls.barrier_init(buffer, s, barrier.arrivals) for s in slots]
            first.append(calls.only(leader, nodes.seq(inits)))
            last.append(calls.only(leader, nodes.seq([calls.barrier_drop(buffer, s) for s in slots])))
        return first, last

    def objects(self) -> tuple[list[Stmt], list[Stmt]]:
        """Return the allocations of the barriers, and their initialisation by one thread."""
        made: list[Stmt] = []
        parts: list[Stmt] = []
        for barrier in self.schedule.barriers:
            self.barriers[barrier.name], allocate = calls.alloc_barriers(barrier.name, self.stages)
            made.append(allocate)
            slots = map(nodes.int_const, range(self.stages))
            parts += [calls.barrier_init(self.barriers[barrier.name], slot, barrier.arrivals) for slot in slots]
        return made, parts

    def numbered(self, iteration: Expr) -> Expr:
        """Return the number of an iteration that decides its slot and phase."""
        return iteration

    def slot_in(self, iteration: Expr) -> Expr:
        """Return the slot of an iteration."""
        return slot_of(self.numbered(iteration), self.stages)

    # Steps

    def started(self, steps: Sequence[Step]) -> list[Stmt]:
        """Return the statements before the loop."""
        parts: list[Stmt] = []
        for offset, run in runs_of([s for s in steps if not isinstance(s, (Arrive, Meet, WaitUses))]):
            iteration = nodes.int_const(offset, self.kind)
            parts += self.issue(run, iteration, nodes.int_const(offset))
        return [*parts, *(self.wait(s, self.loop.loop_var) for s in steps if isinstance(s, WaitUses))]

    def iteration(self, program: RoleProgram) -> Stmt:
        """Return the loop."""
        loop, stages = self.loop, self.stages
        iteration = loop.loop_var if nodes.as_int(loop.min) == 0 else loop.loop_var - loop.min
        # One division per iteration, for all accesses: a counter that wraps around would make it harder to prove that
        # an access stays inside its buffer.
        late = [tirx.Bind(self.slot, self.slot_in(iteration))]
        parts: list[Stmt] = []
        rest: list[Stmt] = []
        for offset, run in runs_of(program.iteration):
            if offset == 0:
                for at, step in enumerate(run):
                    if isinstance(step, (Use, WaitPhase)):
                        parts, late = [*parts, *late], []
                    if not isinstance(step, Arrive):
                        parts, rest = [*parts, *rest], []
                    if isinstance(step, Use):
                        reads, rest = self.reads_and_rest()
                        parts += reads
                    elif isinstance(step, Arrive):
                        parts += self.release_slots(step, iteration)
                    elif isinstance(step, Sync):
                        parts.append(calls.sync_threads(after_reads=isinstance(run[at - 1], WaitUses)))
                    else:
                        parts.append(self.wait(step, iteration))
            else:
                target = iteration + nodes.int_const(offset, self.kind)
                parts += [
                    *late,
                    tirx.Bind(self.prefetch_slot, slot_of(target, stages)),
                    *self.issue(run, target, self.prefetch_slot),
                ]
                late = []
        notes = {str(k): v for k, v in loop.annotations.items()}
        notes[ROLE] = "serial"
        return replace_for(loop, nodes.seq([*parts, *rest]), annotations=notes)

    def reads_and_rest(self) -> tuple[list[Stmt], list[Stmt]]:
        """Return the statements up to the last reader of the current slot, and the others."""
        made = self.computed()
        if self.plan.product is not None or self.plan.overlap is not None:
            return made, []  # instructions read the slot until their wait
        last = max((i for i, s in enumerate(made) if any(uses(s, r) for r in self.plan.rings.values())), default=-1)
        return made[: last + 1], made[last + 1 :]

    def computed(self) -> list[Stmt]:
        """Return the rest of the body, on the current slot."""
        body, product = list(self.body), self.plan.product
        if product is not None:
            attrs: AttrDict = {IN_FLIGHT: 1}
            if self.plan.multicast is not None and self.plan.multicast.halves:
                attrs[HALVES] = list(self.plan.multicast.offer.cluster)
            body[product.position] = with_attributes(body[product.position], attrs)
        rewriter = _Slots(self.plan.rings, self.slot)
        return [rewriter.stmt(s) for s in without_dead(body, self.plan.moved, self.plan.binds)]

    def wait(self, step: Step, iteration: Expr, slot: Var | None = None) -> Stmt:
        """Return the wait for an iteration, at the current slot if none is given."""
        if isinstance(step, WaitGroups):
            return calls.async_wait(step.pending)
        if isinstance(step, WaitUses):
            return self.settled(step.pending)
        if isinstance(step, WaitPhase):
            two = nodes.int_const(2, self.kind)
            number = self.numbered(iteration)
            phase = tirx.floordiv(number, nodes.int_const(self.stages, self.kind)) - nodes.int_const(
                step.lag, self.kind
            )
            return calls.barrier_wait(
                self.barriers[step.barrier],
                self.slot if slot is None else slot,
                nodes.cast(tirx.floormod(phase, two), "int32"),
            )
        assert isinstance(step, Sync)
        return calls.sync_threads()

    def met(self) -> list[Stmt]:
        """Return the barrier of the cluster."""
        return [calls.cluster_arrive(self.loop.span, meets=True), calls.cluster_wait(self.loop.span)]

    def release_slots(self, step: Arrive, iteration: Expr) -> list[Stmt]:
        """Return the arrivals for an iteration, if it exists, in all filling blocks."""
        multicast = self.plan.multicast
        assert multicast is not None
        at = self.analyzer.simplify(iteration + nodes.int_const(step.offset, self.kind))
        others, barrier, slot = self.schedule.partners(0), self.barriers[step.barrier], slot_of(at, self.stages)
        lane = tirx.floormod(self.plan.thread, nodes.int_const(multicast.width)) if multicast.each == "warp" else None
        made = arrive_at_peers(barrier, slot, multicast.offer.cluster, others, lane, self.loop.span)
        return [tirx.IfThenElse(at >= nodes.int_const(0, self.kind), made, None)]

    def settled(self, pending: int) -> Stmt:
        """Return the wait for asynchronous uses; without pending ones the accumulator is accessible."""
        assert self.plan.product is not None
        accumulator, product = self.plan.product.accumulator, self.body[self.plan.product.position]
        operands = (
            [] if pending else [nodes.region(accumulator.buffer, list(accumulator.mins), list(accumulator.extents))]
        )
        return tirx.Evaluate(nodes.tile_call(WAIT_USES, operands, {PENDING: pending, IN_FLIGHT: 1}), product.span)

    def issue(self, steps: Sequence[Step], iteration: Expr, slot: Expr) -> list[Stmt]:
        """Return the copies of one iteration, if it exists, and the end of their group."""
        loop = self.loop
        at = iteration if nodes.as_int(loop.min) == 0 else loop.min + iteration
        mapping: dict[Any, Any] = {loop.loop_var: at}
        parts: list[Any] = []
        for bind in (self.body[i] for i in self.plan.binds):
            var = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
            parts.append(tirx.Bind(var, self.at(bind.value, mapping), bind.span))
            mapping[bind.var] = var
        committed: list[Stmt] = []
        waits = [self.wait(s, iteration, slot) for s in steps if isinstance(s, WaitPhase)]
        for step in steps:
            if isinstance(step, Commit):
                committed.append(calls.async_commit())
            elif isinstance(step, Issue):
                parts += self.copies(self.schedule.group(step.group), mapping, slot, waits)
        trips, number = nodes.as_int(self.trips), nodes.as_int(iteration)
        copies = nodes.seq(parts)
        if not (isinstance(trips, int) and isinstance(number, int) and number < trips):
            copies = tirx.IfThenElse(iteration < self.trips, copies, None, loop.span)
        return [copies, *committed]

    def copies(self, group: CopyGroup, mapping: dict[Var, Expr], slot: Expr, waits: Sequence[Stmt] = ()) -> list[Stmt]:
        """Return the copies of a group with expected bytes and the issuer's waits."""
        made = [self.copy(c, group, mapping, slot) for c in self.plan.copies[group.name]]
        if not isinstance(group.completion, Transactions):
            return made
        announced = calls.barrier_expect(self.barriers[group.completion.barrier], slot, group.bytes)
        role = (group.issuer.name, group.issuer.first, group.issuer.count)
        return [calls.only(role, nodes.seq([*waits, announced, *made]), self.loop.span)]

    def copy(self, c: Candidate, group: CopyGroup, mapping: dict[Var, Expr], slot: Expr) -> Stmt:
        """Return a copy to a slot."""
        src, dst, *rows = c.call.args
        source = nodes.region(src.buffer, [self.at(nodes.int_const(0) + m, mapping) for m in src.mins], src.extents)
        to = nodes.region(self.plan.rings[c.buffer], [slot, *dst.mins], [1, *dst.extents])
        attrs: AttrDict = {**c.call.attrs, **self.plan.facts.get(c.buffer, {}), ASYNC: 1}
        if isinstance(group.completion, Immediate):
            del attrs[ASYNC]
        numbers = [
            nodes.region(r.buffer, [self.at(nodes.int_const(0) + m, mapping) for m in r.mins], r.extents) for r in rows
        ]
        operands = [source, *numbers, to]
        if isinstance(group.completion, Transactions):
            operands.append(nodes.region(self.barriers[group.completion.barrier], [slot], [1]))
            attrs[ASYNC] = TRANSACTIONS
        return tirx.Evaluate(nodes.tile_call(c.call.name, operands, attrs), c.stmt.span)

    def at(self, e: Expr, mapping: dict[Var, Expr]) -> Expr:
        """Return an expression with variables substituted and constants folded."""
        return self.analyzer.simplify(substitute(e, mapping))


def on_slot(s: Stmt, rings: Any, slot: Var) -> Stmt:
    """Return a statement that reads the slots of rings instead of the original buffers."""
    return _Slots(rings, slot).stmt(s)


class _Slots(StmtRewriter):
    """Rewrites a statement to read the slots of rings."""

    def __init__(self, rings: Any, slot: Var) -> None:
        self.rings, self.slot = rings, slot

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        new = self.rings.get(e.source)
        return e if new is None else nodes.load(new, [self.slot, *e.indices], e.span)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.rings else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return tirx.Evaluate(self.op(s), s.span) if is_op(s) else super().visit_Evaluate(s)

    def visit_Bind(self, s: Stmt) -> Stmt:
        return tirx.Bind(s.var, self.op(s), s.span) if nodes.is_tile_call(s.value) else super().visit_Bind(s)

    def op(self, s: Stmt) -> Call:
        """Rewrite a tile call: regions get the slot as their first dimension, dimension attributes shift."""
        call = s.value
        attrs = {str(k): v for k, v in dict(call.attrs).items()} if call.attrs else {}
        args = []
        for position, a in enumerate(call.args):
            new = self.rings.get(a.source) if hasattr(a, "region") else None
            if new is None:
                args.append(self.region(a) if hasattr(a, "region") else self.expr(a))
                continue
            view = View.of(a)
            mins = [self.expr(nodes.int_const(0) + m) for m in view.mins]
            # A product that a pair of blocks compute has half of a tile in its slot.
            inside = zip(view.extents, nodes.shape_of(new)[1:], strict=True)
            args.append(nodes.region(new, [self.slot, *mins], [1, *(min(n, whole) for n, whole in inside)]))
            if position == 0 and DIM in attrs:
                attrs[DIM] = int(attrs[DIM]) + 1
            if position == 0 and SRC_DIMS in attrs:
                attrs[SRC_DIMS] = [int(d) + 1 for d in attrs[SRC_DIMS]]
        return type(call)(call.op, args, attrs=attrs, ret_ty=call.ty)

    def region(self, a: Expr) -> Expr:
        """Rewrite the corner of a region of another buffer."""
        view = View.of(a)
        mins = [self.expr(nodes.int_const(0) + m) for m in view.mins]
        return nodes.region(view.buffer, mins, view.extents)


def _threads(program: RoleProgram) -> tuple[str, int, int]:
    leader = program.role.leader
    return leader.name, leader.first, leader.count


def runs_of(steps: Sequence[Step]) -> list[tuple[int, list[Step]]]:
    """Group consecutive steps of one iteration; a commit belongs to the steps that it ends."""
    found: list[tuple[int, list[Step]]] = []
    for step in steps:
        offset = step.offset if isinstance(step, (Issue, Expect, WaitPhase, Use)) else None
        if found and (isinstance(step, Commit) or offset == found[-1][0] or (offset is None and found[-1][0] == 0)):
            found[-1][1].append(step)
        else:
            found.append((offset or 0, [step]))
    return found


def slot_of(iteration: Expr, stages: int) -> Expr:
    """Return the slot of an iteration."""
    return nodes.cast(tirx.floormod(iteration, nodes.int_const(stages, nodes.dtype_of(iteration))), "int32")
