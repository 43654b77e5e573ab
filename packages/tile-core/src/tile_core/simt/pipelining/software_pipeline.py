"""Pipelined loops: copies of later iterations are in flight while an iteration computes.

A loop that copies tiles from global to shared memory and reads them becomes::

    copy iterations 0 … stages - 2, each a group           # those that exist
    for k:
        wait for all but the latest stages - 2 groups      # this thread's part of iteration k is there
        sync_threads                                       # all threads' parts are there, slot k - 1 is free
        copy iteration k + stages - 1 into the slot of k - 1, if there is one; end the group
        compute on slot k % stages

with one slot per stage in each copied buffer. Past the last iteration an empty group is committed, so that a wait has
the same count in every iteration and for every trip count. Copies that cannot be moved stay in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.errors.base import Where
from tile_core.ir import calls, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, replace_for, role, substitute
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.dependences import Analysis, Candidate, top_level, uses

#: Attribute of a copy that may complete later: at the wait for its group.
ASYNC = "async"

CanCopy = Callable[[OpCall], "Accept | Reject | bool"]


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
    """

    name: str
    where: Where | None
    stages: int = 0
    buffers: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        head = f"loop {self.name}: " + (
            f"{self.stages} stages of {', '.join(self.buffers)}" if self.stages else f"not pipelined: {self.reason}"
        )
        return "; ".join([head, *(f"{name} is copied in place: {why}" for name, why in self.kept)])


@dataclass(frozen=True)
class PipelineReport:
    """The outcome for all pipelined loops.

    Attributes
    ----------
    loops
        In program order, inner ones first.
    versions
        Each new buffer ``[stages, ...]`` with the buffer that it replaces, whose annotated layout applies to a slot.
    """

    loops: tuple[LoopReport, ...] = ()
    versions: Mapping[Any, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(map(str, self.loops))


def plan_pipeline(
    body: Stmt, can_copy: CanCopy, safe_values: Mapping[str, Any] | None = None
) -> tuple[Any, PipelineReport]:
    """Overlap the copies of pipelined loops with their computation.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    can_copy
        Whether the target can make a copy asynchronous. The facts of an ``Accept`` become attributes of the call.
    safe_values
        The value of out-of-bounds reads by buffer name; asynchronous copies yield zero.

    Returns
    -------
    tuple
        The program, with asynchronous copies marked by the attribute ``async``, and the report.
    """
    pipeliner = _Pipeliner(body, can_copy, frozenset(safe_values or ()))
    new = pipeliner.stmt(body)
    if pipeliner.versions:
        new = _Allocations(new, pipeliner.placed).stmt(new)
    return new, PipelineReport(tuple(pipeliner.reports), dict(pipeliner.versions))


@dataclass
class _PipelinedLoop:
    """A loop that will be pipelined."""

    loop: Any
    stages: int
    copies: list[Candidate]
    binds: list[int]
    buffers: dict[Any, Any]
    facts: dict[Any, Mapping[str, Any]]


class _Pipeliner(StmtRewriter):
    def __init__(self, body: Stmt, can_copy: CanCopy, safe_values: frozenset[str]) -> None:
        self.analysis = Analysis(body)
        self.can_copy, self.safe_values = can_copy, safe_values
        self.names = {str(v.name) for v in collect(body, tirx.Var)}
        self.reports: list[LoopReport] = []
        self.versions: dict[Any, Any] = {}
        self.placed: dict[Any, list[Any]] = {}
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
        kept: tuple[tuple[str, str], ...] = ()
        plan = None
        if not reason:
            plan, kept = self.plan(original, loop)
            reason = "" if plan else "no copy from global to shared memory can run ahead"
        if plan is None:
            self.reports.append(LoopReport(name, where, kept=kept, reason=reason))
            return loop
        for buffer, version in plan.buffers.items():
            self.versions[version] = buffer
            self.placed.setdefault(buffer, []).append(version)
        names = tuple(str(c.buffer.name) for c in plan.copies)
        self.reports.append(LoopReport(name, where, plan.stages, names, kept))
        return _Builder(plan, self.busy, nested=self.depth > 0).build()

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
        return "it is left by a jump" if _jumps(loop.body) else ""

    def plan(self, original: Stmt, loop: Stmt) -> tuple[_PipelinedLoop | None, tuple[tuple[str, str], ...]]:
        """Return which copies run ahead, and why others do not."""
        trips = nodes.as_int(loop.extent)
        stages = int(annotation(loop, nodes.STAGES))
        stages = min(stages, trips) if isinstance(trips, int) else stages
        chosen: list[Candidate] = []
        kept: list[tuple[str, str]] = []
        facts: dict[Any, Mapping[str, Any]] = {}
        for candidate in self.analysis.candidates(loop):
            reason = candidate.reason or self.analysis.keeps(candidate.buffer, original)
            if not reason and candidate.source_name in self.safe_values:
                reason = f"reads outside of {candidate.source_name} do not give zero"
            if not reason:
                answer = self.can_copy(candidate.call)
                if isinstance(answer, Accept):
                    facts[candidate.buffer] = answer.facts
                elif isinstance(answer, Reject):
                    reason = answer.reason
                elif not answer:
                    reason = "the target cannot make it asynchronous"
            if reason:
                kept.append((str(candidate.buffer.name), reason))
            else:
                chosen.append(candidate)
        kept += [(name, "it stands under a condition or in an inner loop") for name in self.analysis.elsewhere(loop)]
        if not chosen:
            return None, tuple(kept)
        binds = self.analysis.recomputed(loop, chosen)
        versions = {c.buffer: self.version(c.buffer, stages) for c in chosen}
        return _PipelinedLoop(loop, stages, chosen, binds, versions, facts), tuple(kept)

    def version(self, buffer: BufferVar, stages: int) -> BufferVar:
        base = name = f"{buffer.name}_stages"
        count = 1
        while name in self.names:
            name, count = f"{base}_{count}", count + 1
        self.names.add(name)
        return tirx.decl_buffer(
            [stages, *buffer.shape], nodes.element_type(buffer), name, scope="shared", layout=None
        )  # fmt: skip


class _Builder:
    """Writes one pipelined loop."""

    def __init__(self, plan: _PipelinedLoop, busy: bool, nested: bool) -> None:
        self.plan, self.loop, self.stages = plan, plan.loop, plan.stages
        self.busy, self.nested = busy, nested
        self.body = top_level(plan.loop.body)
        self.analyzer = Analyzer()
        self.kind = nodes.dtype_of(self.loop.loop_var)
        self.trips = self.loop.extent
        self.before: list[Any] = []
        if not isinstance(self.trips, (tirx.IntImm, tirx.Var)):
            trips = nodes.fresh(f"{self.loop.loop_var.name}_trips", self.kind)
            self.before.append(tirx.Bind(trips, self.trips, self.loop.span))
            self.trips = trips

    def build(self) -> Stmt:
        span = self.loop.span
        parts = [] if not self.busy else [calls.sync_threads()]
        for turn in range(self.stages - 1):
            parts += self.issue(nodes.int_const(turn, self.kind), nodes.int_const(turn))
        parts.append(self.steady())
        # Every issued copy has been waited for by the iteration that reads it. Only empty groups remain, and an
        # enclosing loop relies on its own copies staying in flight.
        if not self.nested:
            parts.append(calls.async_wait(0))
        parts.append(calls.sync_threads())
        own = [s for s in self.body if isinstance(s, tirx.AllocBuffer)]
        allocated = [tirx.AllocBuffer(v) for b, v in self.plan.buffers.items() if any(a.buffer.same_as(b) for a in own)]
        managed = calls.managed(list(self.plan.buffers.values()), nodes.seq(parts), span)
        return nodes.seq([*allocated, *self.before, managed])

    def steady(self) -> Stmt:
        """Return the loop."""
        loop, stages = self.loop, self.stages
        turn = loop.loop_var if nodes.as_int(loop.min) == 0 else loop.loop_var - loop.min
        slot, ahead = nodes.fresh("slot"), nodes.fresh("slot_ahead")
        # One division per iteration, for all accesses: a counter that wraps around would make it harder to prove that
        # an access stays inside its buffer.
        start = [
            calls.async_wait(stages - 2),
            calls.sync_threads(),
            tirx.Bind(slot, _slot(turn, stages)),
            tirx.Bind(ahead, _slot(turn + nodes.int_const(stages - 1, self.kind), stages)),
        ]
        start += self.issue(turn + nodes.int_const(stages - 1, self.kind), ahead)
        moved = {c.position for c in self.plan.copies}
        rewriter = _Versions(self.plan.buffers, slot)
        rest = [rewriter.stmt(s) for s in _without_dead(self.body, moved, self.plan.binds)]
        notes = {str(k): v for k, v in loop.annotations.items()}
        notes[nodes.ROLE] = "serial"
        return replace_for(loop, nodes.seq([*start, *rest]), annotations=notes)

    def issue(self, turn: Expr, slot: Expr) -> list[Stmt]:
        """Return the copies of one iteration, if it exists, and the end of their group."""
        loop = self.loop
        at = turn if nodes.as_int(loop.min) == 0 else loop.min + turn
        mapping: dict[Any, Any] = {loop.loop_var: at}
        parts: list[Any] = []
        for bind in (self.body[i] for i in self.plan.binds):
            var = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
            parts.append(tirx.Bind(var, self.at(bind.value, mapping), bind.span))
            mapping[bind.var] = var
        for c in self.plan.copies:
            parts.append(self.copy(c, mapping, slot))
        trips, number = nodes.as_int(self.trips), nodes.as_int(turn)
        copies = nodes.seq(parts)
        if not (isinstance(trips, int) and isinstance(number, int) and number < trips):
            copies = tirx.IfThenElse(turn < self.trips, copies, None, loop.span)
        return [copies, calls.async_commit()]

    def copy(self, c: Candidate, mapping: dict[Var, Expr], slot: Expr) -> Stmt:
        src, dst = c.call.args
        source = nodes.region(src.buffer, [self.at(nodes.int_const(0) + m, mapping) for m in src.mins], src.extents)
        to = nodes.region(self.plan.buffers[c.buffer], [slot, *dst.mins], [1, *dst.extents])
        attrs = {**c.call.attrs, **self.plan.facts.get(c.buffer, {}), ASYNC: 1}
        return tirx.Evaluate(nodes.tile_call("copy", [source, to], attrs), c.stmt.span)

    def at(self, e: Expr, mapping: dict[Var, Expr]) -> Expr:
        """Return an expression with variables substituted and constant sums folded."""
        return self.analyzer.simplify(substitute(e, mapping))


class _Versions(StmtRewriter):
    """Rewrites a statement to read the slots of versioned buffers."""

    def __init__(self, versions: dict[BufferVar, BufferVar], slot: Var) -> None:
        self.versions, self.slot = versions, slot

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        new = self.versions.get(e.source)
        return e if new is None else nodes.load(new, [self.slot, *e.indices], e.span)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.versions else s

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
            new = self.versions.get(a.source) if hasattr(a, "region") else None
            if new is None:
                args.append(self.region(a) if hasattr(a, "region") else self.expr(a))
                continue
            view = View.of(a)
            mins = [self.expr(nodes.int_const(0) + m) for m in view.mins]
            args.append(nodes.region(new, [self.slot, *mins], [1, *view.extents]))
            if position == 0 and "dim" in attrs:
                attrs["dim"] = int(attrs["dim"]) + 1
            if position == 0 and "src_dims" in attrs:
                attrs["src_dims"] = [int(d) + 1 for d in attrs["src_dims"]]
        return type(call)(call.op, args, attrs=attrs, ret_ty=call.ty)

    def region(self, a: Expr) -> Expr:
        """Rewrite the corner of a region of another buffer."""
        view = View.of(a)
        mins = [self.expr(nodes.int_const(0) + m) for m in view.mins]
        return nodes.region(view.buffer, mins, view.extents)


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


def _slot(turn: Expr, stages: int) -> Expr:
    return nodes.cast(tirx.floormod(turn, nodes.int_const(stages, nodes.dtype_of(turn))), "int32")


def _is_clear(s: Stmt) -> bool:
    """Whether a statement only fills a fragment."""
    return is_op(s) and nodes.is_tile_call(s.value, "fill") and View.of(s.value.args[0]).scope == "local.fragment"


def _jumps(s: Stmt) -> bool:
    """Whether a loop's body leaves the loop, or ends an iteration early."""
    if isinstance(s, (tirx.Break, tirx.Continue)):
        return True
    if isinstance(s, tirx.SeqStmt):
        return any(_jumps(x) for x in s.seq)
    if isinstance(s, tirx.IfThenElse):
        return _jumps(s.then_case) or (s.else_case is not None and _jumps(s.else_case))
    return isinstance(s, tirx.AttrStmt) and _jumps(s.body)


def _without_dead(body: Sequence[Stmt], moved: set[int], recomputed: Sequence[int]) -> list[Stmt]:
    """Return the rest of a body: without the moved copies, and only with recomputed bindings that are still used."""
    kept: list[Any] = []
    used: set[Any] = set()
    for i, s in reversed(list(enumerate(body))):
        if i in moved or (i in recomputed and s.var not in used):
            continue
        used |= set(collect(s.value if isinstance(s, tirx.Bind) else s, tirx.Var))
        kept.append(s)
    return kept[::-1]
