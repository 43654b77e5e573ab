"""Pipelined loops: copies of later iterations are in flight while an iteration computes.

Of each loop that the program marks, the copies from global to shared memory that can run ahead get a schedule
(``plan.py``), the ledger checks it, and it is written (``writers.py``), with one slot per stage in each copied buffer.
Copies that cannot be moved stay in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tile_core.analysis.flow import jumps_of
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, collect, role
from tile_core.layout.base import LayoutMap
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.dependences import Analysis, uses
from tile_core.simt.pipelining.lasting import Product, lasting_product
from tile_core.simt.pipelining.ledger import require_balanced
from tile_core.simt.pipelining.plan import (
    ALIGN,
    COMPLETION,
    REGISTERS,
    CanCopy,
    CopiesAhead,
    LoopPlan,
    choose,
    plan_loop,
    stages_of,
)
from tile_core.simt.pipelining.schedule import Schedule
from tile_core.simt.pipelining.staging import groups_of, not_staged, write_staged
from tile_core.simt.pipelining.writers import Around, write_loop
from tile_core.simt.roles import is_shared, role_of


@dataclass(frozen=True)
class LoopReport:
    """The outcome for one pipelined loop.

    Attributes
    ----------
    name
        The loop's variable.
    where
        The user's line.
    stages
        Slots of each buffer; 0 if the loop is unchanged.
    buffers
        Names of the buffers that are copied ahead.
    kept
        Other copies from global to shared memory: (name of the buffer, why it is not moved).
    reason
        Why the loop is unchanged; empty if it was pipelined.
    schedule
        Its schedule, if its buffers have slots.
    through
        Names of the buffers whose copies go through registers, which need no slots.
        Its schedule, if it was pipelined.
    notes
        What the target says about the way of a copy that runs ahead: (name of the buffer, note).
    """

    name: str
    where: Where | None
    stages: int = 0
    buffers: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    schedule: Schedule | None = None
    through: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The schedule in words, a line for each group, barrier and part of a role's steps."""
        return () if self.schedule is None else tuple(self.schedule.lines())

    def __str__(self) -> str:
        if self.through:
            outcome = f"{', '.join(self.through)} through registers"
        elif self.stages:
            outcome = f"{self.stages} stages of {', '.join(self.buffers)}"
        else:
            outcome = f"not pipelined: {self.reason}"
        notes = (f"{name}: {note}" for name, note in self.notes)
        kept = (f"{name} is copied in place: {why}" for name, why in self.kept)
        return "; ".join([f"loop {self.name}: {outcome}", *notes, *kept])


@dataclass(frozen=True)
class PipelineReport:
    """The outcome for all pipelined loops.

    Attributes
    ----------
    loops
        In program order, inner ones first.
    versions
        Each new buffer ``[stages, ...]`` with the buffer that it replaces, whose annotated layout applies to a slot.
    slots
        The layout of a slot, by new buffer, where its copy needs one.
    """

    loops: tuple[LoopReport, ...] = ()
    versions: Mapping[Any, Any] = field(default_factory=dict)
    slots: Mapping[Any, LayoutMap] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(map(str, self.loops))


def plan_pipeline(
    body: Stmt, can_copy: CanCopy, safe_values: Mapping[str, Any] | None = None, threads: int = 1,
    can_last: Callable[[OpCall, int], bool] = lambda call, threads: False,
) -> tuple[Any, PipelineReport]:  # fmt: skip
    """Overlap the copies of pipelined loops with their computation.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    can_copy
        Whether the target can make a copy asynchronous. The facts of an ``Accept`` become attributes of the call, but
        for ``COMPLETION``, which says how it completes, and ``LAYOUT`` and ``ALIGN``, which its new buffer gets.
    safe_values
        The value of out-of-bounds reads by buffer name; asynchronous copies yield zero.
    threads
        Of a block.
    can_last
        Whether the target has instructions for a product (of so many threads) that last until they are waited for.

    Returns
    -------
    tuple
        The program, with asynchronous copies marked by the attribute ``async``, and the report.

    Raises
    ------
    UnbalancedSchedule
        If a schedule does not balance, which is a defect.
    """
    pipeliner = _Pipeliner(body, can_copy, frozenset(safe_values or ()), threads, can_last)
    new = pipeliner.stmt(body)
    if pipeliner.inside:
        new = _Moved(pipeliner.inside).stmt(new)
    if pipeliner.versions:
        new = _Allocations(new, pipeliner.placed).stmt(new)
    return new, PipelineReport(tuple(pipeliner.reports), dict(pipeliner.versions), dict(pipeliner.slots))


class _Pipeliner(StmtRewriter):
    def __init__(
        self, body: Stmt, can_copy: CanCopy, safe_values: frozenset[str], threads: int,
        can_last: Callable[[OpCall, int], bool],
    ) -> None:  # fmt: skip
        self.analysis = Analysis(body)
        self.can_last = can_last
        self.can_copy, self.safe_values, self.threads = can_copy, safe_values, threads
        self.names = {str(v.name) for v in collect(body, tirx.Var)}
        self.reports: list[LoopReport] = []
        self.versions: dict[Any, Any] = {}
        self.slots: dict[Any, LayoutMap] = {}
        self.placed: dict[Any, list[Any]] = {}
        self.allocated = {a.buffer: a for a in collect(body, tirx.AllocBuffer)}
        #: By buffer the variable of the loop that its allocation has moved into.
        self.inside: dict[Any, Any] = {}
        self.depth = 0
        self.inside_parallel = False
        #: Whether earlier statements may still use shared memory, or write the source of a copy.
        self.busy = False

    def visit_For(self, s: Stmt) -> Stmt:
        kind = role(s)
        if kind in ("parallel", "vectorized"):
            self.busy = True
            outer, self.inside_parallel = self.inside_parallel, True
            new = super().visit_For(s)
            self.inside_parallel = outer
            return new
        was_busy = self.busy
        self.busy = self.busy or kind != "grid"
        self.depth += kind == "pipelined"
        new = super().visit_For(s)
        self.depth -= kind == "pipelined"
        if kind == "pipelined":
            self.busy = was_busy
            new = self.pipelined(s, new)
            self.busy = True
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer = self.threads
        if is_shared(s):
            self.threads = role_of(s).count
        new = super().visit_AttrStmt(s)
        self.threads = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not _is_clear(s):
            self.busy = True
        return s

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        self.busy = self.busy or nodes.scope_of(s.buffer) not in PRIVATE
        return s

    def visit_Bind(self, s: Stmt) -> Stmt:
        self.busy = self.busy or nodes.is_tile_call(s.value)
        return s

    def visit_While(self, s: Stmt) -> Any:
        self.busy = True
        return super().visit_While(s)

    # One loop

    def pipelined(self, original: Stmt, loop: Stmt) -> Stmt:
        """Return the loop, pipelined or unchanged; record in the report which."""
        name, where = str(loop.loop_var.name), nodes.where_of(loop)
        reason = self.refusal(loop)
        choice = CopiesAhead((), (), {})
        if not reason:
            choice = choose(self.analysis, original, loop, self.can_copy, self.safe_values)
            if any(f.get(COMPLETION) == REGISTERS for f in choice.facts.values()):
                return self.staged(original, loop, choice)
            reason = "" if choice.chosen else "no copy from global to shared memory can run ahead"
        if reason:
            self.reports.append(LoopReport(name, where, kept=choice.kept, reason=reason))
            return loop
        copied = [c.buffer for c in choice.chosen]
        product, remarks = lasting_product(self.analysis, loop, copied, lambda call: self.can_last(call, self.threads))
        plan = self.plan(loop, choice, product)
        for buffer, ring in plan.rings.items():
            self.versions[ring] = buffer
            self.placed.setdefault(buffer, []).append(ring)
        self.slots.update(plan.slots)
        names = tuple(str(b.name) for b in plan.rings)
        schedule = plan.schedule
        notes = (*choice.notes, *remarks)
        report = LoopReport(name, where, schedule.stages, names, choice.kept, schedule=schedule, notes=notes)
        self.reports.append(report)
        return write_loop(plan, Around(self.busy, nested=self.depth > 0))

    def refusal(self, loop: Stmt) -> str:
        """Return why a loop is not a candidate."""
        stages, trips = annotation(loop, nodes.STAGES, 0), nodes.as_int(loop.extent)
        if stages < 2:
            return f"num_stages is {stages}"
        if self.inside_parallel:
            return "it stands in a data-parallel loop"
        if isinstance(trips, int) and trips < 2:
            return f"it has {trips} iterations"
        if loop.step is not None and nodes.as_int(loop.step) != 1:
            return "its step is not 1"
        return "it is left by a jump" if jumps_of(loop.body) else ""

    def plan(self, loop: Stmt, choice: CopiesAhead, product: Product | None) -> LoopPlan:
        """Return the plan of a loop, checked."""
        binds = self.analysis.recomputed(loop, choice.chosen)
        rings = {
            c.buffer: self.ring(c.buffer, stages_of(loop), int(choice.facts.get(c.buffer, {}).get(ALIGN, 0)))
            for c in choice.chosen
        }
        plan = plan_loop(loop, choice, binds, rings, self.threads, self.name, product)
        require_balanced(plan.schedule, nodes.where_of(loop))
        return plan

    def staged(self, original: Stmt, loop: Stmt, choice: CopiesAhead) -> Stmt:
        """Return the loop with copies through registers, or unchanged; record in the report which."""
        reasons = {c.position: not_staged(c, self.threads) for c in choice.chosen}
        groups = groups_of(loop, [c for c in choice.chosen if not reasons[c.position]], self.threads)
        through = tuple(str(c.buffer.name) for g in groups for c in g.copies)
        kept = choice.kept + tuple(
            (str(c.buffer.name), reasons[c.position] or "its tiles take too many registers")
            for c in choice.chosen
            if str(c.buffer.name) not in through
        )
        reason = "" if groups else "no copy from global to shared memory can run ahead"
        self.reports.append(
            LoopReport(str(loop.loop_var.name), nodes.where_of(loop), kept=kept, reason=reason, through=through)
        )
        if not groups:
            return loop
        own = {}
        for buffer in (c.buffer for g in groups for c in g.copies):
            if self.analysis.only_in(buffer, original):
                own[buffer], self.inside[buffer] = self.allocated[buffer], loop.loop_var
        return write_staged(loop, groups, self.analysis, own, self.name)

    def ring(self, buffer: BufferVar, stages: int, align: int) -> BufferVar:
        name, kind = self.name(f"{buffer.name}_stages"), nodes.element_type(buffer)
        facts = {"data_alignment": align} if align else {}
        return tirx.decl_buffer([stages, *buffer.shape], kind, name, scope="shared", layout=None, **facts)

    def name(self, base: str) -> str:
        """Return a name that the program does not have."""
        name, count = base, 1
        while name in self.names:
            name, count = f"{base}_{count}", count + 1
        self.names.add(name)
        return name


class _Moved(StmtRewriter):
    """Drops allocations where the loops that they have moved into are not."""

    def __init__(self, inside: dict[Any, Any]) -> None:
        self.inside = inside
        self.loops: list[Any] = []

    def visit_For(self, s: Stmt) -> Stmt:
        self.loops.append(s.loop_var)
        new = super().visit_For(s)
        self.loops.pop()
        return new

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        loop = self.inside.get(s.buffer)
        return s if loop is None or any(v.same_as(loop) for v in self.loops) else nodes.seq([])


class _Allocations(StmtRewriter):
    """Allocates versioned buffers where the originals were, and drops originals that are unused."""

    def __init__(self, body: Stmt, placed: dict[Any, list[Any]]) -> None:
        self.placed = placed
        self.left = {b for b in placed if uses(body, b)}
        self.done = {a.buffer for a in collect(body, tirx.AllocBuffer)}

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        if s.buffer not in self.placed:
            return s
        new = [tirx.AllocBuffer(v) for v in self.placed[s.buffer] if v not in self.done]
        return nodes.seq([s if s.buffer in self.left else None, *new])


def _is_clear(s: Stmt) -> bool:
    """Whether a statement only fills a fragment."""
    return is_op(s) and nodes.is_tile_call(s.value, "fill") and View.of(s.value.args[0]).scope == "local.fragment"
