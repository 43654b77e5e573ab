"""Pipelined loops: copies of later iterations are in flight while an iteration computes.

Of each loop that the program marks, the prefetchable copies from global to shared memory get a schedule
(``plan.py``), and it is written (``writers.py``), with one slot per stage in each copied buffer.
Copies that cannot be moved stay in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ALIGN, AXIS, COMPLETION, PING_PONG
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, collect, distinct, role
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.allocations import Allocations, Moved
from tile_core.simt.pipelining.async_products import Product, accumulator_of, async_product, products_of
from tile_core.simt.pipelining.dependences import Analysis, top_level
from tile_core.simt.pipelining.grids import GridLoops, grid_of, slice_of
from tile_core.simt.pipelining.late_epilogue import epilogue_of
from tile_core.simt.pipelining.loop_note import LoopNote
from tile_core.simt.pipelining.mma_warp import accumulator_schedule, mma_warp_reason, with_mma_warp, write_mma_warp
from tile_core.simt.pipelining.multicast import ChosenCluster, Clustering
from tile_core.simt.pipelining.multicast_copies import MulticastAnalysis
from tile_core.simt.pipelining.overlap import (
    Candidates,
    CanOverlap,
    OverlapPlan,
    are_products_own,
    overlap_of,
    within_iterations,
)
from tile_core.simt.pipelining.overlap_writer import write_overlapping
from tile_core.simt.pipelining.persistent import (
    PersistentGrid,
    PersistentHooks,
    with_producer_role,
)
from tile_core.simt.pipelining.persistent_writer import write_persistent
from tile_core.simt.pipelining.plan import (
    REGISTERS,
    TRANSACTIONS,
    CanCopy,
    LoopPlan,
    Prefetched,
    bytes_of,
    choose,
    not_pipelined,
    plan_loop,
    stages_of,
)
from tile_core.simt.pipelining.producer_warp import with_producer_warp, write_producer_warp
from tile_core.simt.pipelining.report import LoopReport, PipelineReport
from tile_core.simt.pipelining.role_loops import RoleLoop, not_repeated, role_loops, shape_of
from tile_core.simt.pipelining.role_slices import RoleSlice
from tile_core.simt.pipelining.single_assignments import name_single_assignments
from tile_core.simt.pipelining.staging import groups_of, not_staged, write_staged
from tile_core.simt.pipelining.writers import Around, write_loop
from tile_core.simt.role_threads import is_shared, role_of


def plan_pipeline(
    body: Stmt, can_copy: CanCopy, safe_values: Mapping[str, Any] | None = None, threads: int = 1,
    is_async: Callable[[OpCall, int], bool] = lambda call, threads: False,
    can_overlap: CanOverlap = lambda candidates: Accept(), persistent_hooks: PersistentHooks | None = None,
    clustering: Clustering | None = None,
) -> tuple[Any, PipelineReport]:  # fmt: skip
    """Overlap the copies of pipelined loops with their computation.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    can_copy
        Whether the target can make a copy asynchronous. The facts of an ``Accept`` become attributes of the call, but
        for ``COMPLETION``, how it completes, and ``LAYOUT`` and ``ALIGN``, which its new buffer gets.
    safe_values
        The value of out-of-bounds reads by buffer name; asynchronous copies yield zero.
    threads
        Of a block.
    is_async
        Whether the target has asynchronous instructions for a product of a number of threads.
    can_overlap
        Whether the iterations of a loop with these products should overlap, where they can; the fact ``PING_PONG``
        requests ping-pong groups.
    persistent_hooks
        The target's decision about persistent blocks; without it there are none.
    clustering
        The target's decision about multicast; without it there is none.

    Returns
    -------
    tuple
        The program, with asynchronous copies marked by the attribute ``async``, and the report.
    """
    body = name_single_assignments(body)
    pipeliner = _Pipeliner(
        body, can_copy, frozenset(safe_values or ()), threads, is_async, can_overlap, persistent_hooks
    )
    pipeliner.clustering = clustering
    new = pipeliner.stmt(body)
    if pipeliner.inside:
        new = Moved(pipeliner.inside).stmt(new)
    if pipeliner.versions:
        new = Allocations(new, pipeliner.placed).stmt(new)
    found = dict(pipeliner.versions), dict(pipeliner.slots), pipeliner.persistent, pipeliner.cluster
    return new, PipelineReport(tuple(pipeliner.reports), *found)


class _Pipeliner(StmtRewriter):
    def __init__(
        self, body: Stmt, can_copy: CanCopy, safe_values: frozenset[str], threads: int,
        is_async: Callable[[OpCall, int], bool], can_overlap: CanOverlap, persistent_hooks: PersistentHooks | None,
    ) -> None:  # fmt: skip
        self.analysis = Analysis(body)
        self.persistent_hooks = persistent_hooks
        self.persistent: PersistentGrid | None = None
        self.clustering: Clustering | None = None
        self.cluster = (1, 1, 1)
        #: The loops over blocks, by axis.
        self.grid: dict[int, Stmt] = {}
        #: Why the blocks do not stay.
        self.not_persistent = ""
        self.is_async, self.can_overlap = is_async, can_overlap
        self.can_copy, self.safe_values, self.threads = can_copy, safe_values, threads
        self.name = FreshNames(str(v.name) for v in distinct(collect(body, tirx.Var)))
        self.reports: list[LoopReport] = []
        self.versions: dict[Any, Any] = {}
        self.slots: dict[Any, LayoutMap] = {}
        self.placed: dict[Any, list[Any]] = {}
        self.allocated = {a.buffer: a for a in collect(body, tirx.AllocBuffer)}
        #: By buffer the variable of the loop that its allocation has moved into.
        self.inside: dict[Any, Any] = {}
        self.depth = 0
        self.inside_parallel = False
        self.in_role = False
        #: Whether earlier statements may still use shared memory, or write the source of a copy.
        self.busy = False

    def visit_For(self, s: Stmt) -> Stmt:
        kind = role(s)
        if kind == "grid":
            self.grid[int(annotation(s, AXIS))] = s
        if kind == "grid" and self.persistent_hooks is not None and not self.not_persistent:
            shared = self.with_persistent_blocks(s, self.persistent_hooks)
            copied = self.with_producer(s, self.persistent_hooks) if isinstance(shared, str) else shared
            if not isinstance(copied, str):
                return copied
            self.not_persistent = f"{shared}; {copied}"
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
        outer = self.threads, self.in_role
        if is_shared(s):
            self.threads, self.in_role = role_of(s).count, True
        new = super().visit_AttrStmt(s)
        self.threads, self.in_role = outer
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
        """Return the loop, pipelined or unchanged, and record the outcome."""
        name, where = str(loop.loop_var.name), nodes.where_of(loop)
        reason = self.refusal(loop)
        choice = Prefetched((), (), {})
        if not reason:
            choice = choose(self.analysis, original, loop, self.can_copy, self.safe_values)
            if any(f.get(COMPLETION) == REGISTERS for f in choice.facts.values()):
                return self.staged(original, loop, choice)
            reason = "" if choice.chosen else "no copy from global to shared memory can be prefetched"
        if reason:
            self.reports.append(LoopReport(name, where, kept=choice.kept, reason=reason, notes=choice.notes))
            return loop
        copied = [c.buffer for c in choice.chosen]
        product, remarks = self.product(loop, copied, choice)
        multicast = None
        if isinstance(product, Product):
            call = OpCall.decode(top_level(loop.body)[product.position])
            choice, multicast, why = self.multicast(original, loop, choice, call)
            remarks = (*remarks, *why)
        plan = self.plan(loop, choice, product, multicast)
        if self.not_persistent and (product is not None or remarks):
            remarks = (*remarks, LoopNote(name, f"no producer warp: {self.not_persistent}"))
        self.record(plan, choice, remarks)
        write = write_loop if plan.overlap is None else write_overlapping
        return write(plan, Around(self.busy, nested=self.depth > 0))

    def record(self, plan: LoopPlan, choice: Prefetched, remarks: Sequence[LoopNote]) -> None:
        """Record the buffers of a pipelined loop, and the notes about it."""
        for buffer, ring in plan.rings.items():
            if ring in self.versions:
                continue  # loops share it
            self.versions[ring] = buffer
            self.placed.setdefault(buffer, []).append(ring)
        self.slots.update(plan.slots)
        name, where, schedule = str(plan.loop.loop_var.name), nodes.where_of(plan.loop), plan.schedule
        names, notes = tuple(str(b.name) for b in plan.rings), (*choice.notes, *remarks)
        self.reports.append(
            LoopReport(name, where, schedule.stages, names, choice.kept, schedule=schedule, notes=notes)
        )

    def multicast(
        self, original: Stmt, loop: Stmt, choice: Prefetched, call: OpCall,
        grid: GridLoops | None = None, persistent: int | None = None,
    ) -> tuple[Prefetched, ChosenCluster | None, list[LoopNote]]:  # fmt: skip
        """Return the copies of a loop, the chosen cluster for multicast, and notes.

        Parameters
        ----------
        call
            Its asynchronous product.
        """
        if self.clustering is None:
            return choice, None, []
        if self.in_role or self.depth:
            text = "no multicast: the loop is in a role or nested in a pipelined loop"
            return choice, None, [LoopNote(str(loop.loop_var.name), text, no_pairs=True)]
        analysis = MulticastAnalysis(self.clustering, self.analysis, self.can_copy, self.threads)
        found = analysis.of(self.grid if grid is None else grid.axes, original, choice, call, persistent)
        self.cluster = found.cluster if found.chosen is not None else self.cluster
        note = LoopNote(str(loop.loop_var.name), found.note, no_pairs=found.chosen is None)
        chosen = found.chosen
        if chosen is not None and not self.only_products_read(loop, choice):
            chosen = replace(chosen, each="thread")
        return found.choice, chosen, [note]

    def with_persistent_blocks(self, s: Stmt, persistent_hooks: PersistentHooks) -> Stmt | str:
        """Return the loop over persistent blocks, or the rejection reason."""
        grid = grid_of(s)
        if isinstance(grid, str):
            return grid
        loops = role_loops(s, grid, self.analysis, self.role_loop)
        if isinstance(loops, str):
            return loops
        if any(isinstance(x.product, OverlapPlan) for x in loops):
            return "iterations of its loop overlap"
        tiles, first = prod(grid.extents.values()), loops[0]
        shape = shape_of(s, loops, self.threads, tiles)
        persistent = persistent_hooks.choose(replace(shape, subtiles=len(epilogue_of(grid)), once=grid.once))
        repeated = slice_of(grid, [(x.loop, x.choice.chosen, x.binds) for x in loops])
        reason = not_repeated(s, grid, repeated, self.analysis, persistent_hooks.thread)
        if isinstance(persistent, Reject) or reason:
            return persistent.reason if isinstance(persistent, Reject) else reason
        if persistent.mma_threads:
            reason = mma_warp_reason(grid, first.product, first.copied, first.binds)
        if reason:
            return reason
        if not all(x.only_products_read for x in loops):
            persistent = replace(persistent, arrivals="thread")
        texts = ["the epilogue of a tile overlaps the main loop of the next one"] if persistent.late_epilogue else []
        found: tuple[Prefetched, ChosenCluster | None, list[LoopNote]] = first.choice, None, []
        if grid.once:
            found = self.multicast(
                first.loop, first.loop, first.choice, OpCall.decode(first.first), grid, persistent.blocks
            )
            loops = [replace(first, choice=found[0])]
        _, multicast, why = found
        persistent = persistent.in_clusters(multicast)
        self.persistent, plans = persistent, list[LoopPlan]()
        texts.insert(0, f"{persistent.blocks} persistent blocks process {tiles} tiles")
        for x in loops:
            shared = next((p for p, y in zip(plans, loops, strict=False) if y.shares_slots(x)), None)
            product = None if persistent.immediate else x.product
            plan = self.plan(x.loop, x.choice, product, multicast, shared)
            free = self.name(f"{x.loop.loop_var.name}_free") if shared is None else shared.schedule.barriers[-1].name
            free = free if multicast is None else plan.schedule.barriers[-1].name
            make = with_mma_warp if persistent.mma_threads else with_producer_role
            plan = replace(plan, schedule=make(plan.schedule, self.threads, persistent, free))
            self.record(
                plan, x.choice, [*x.notes, *(LoopNote(str(x.loop.loop_var.name), text) for text in texts), *why]
            )
            plans.append(plan)
        if persistent.mma_threads and isinstance(first.product, Product):
            return self.with_mma_warp(plans[0], grid, repeated, persistent, persistent_hooks, first.product)
        return write_persistent(plans, grid, repeated, persistent, persistent_hooks, self.threads)

    def with_mma_warp(
        self, plan: LoopPlan, grid: GridLoops, repeated: RoleSlice, persistent: PersistentGrid,
        hooks: PersistentHooks, product: Product,
    ) -> Stmt:  # fmt: skip
        """Return the loop over persistent blocks with an MMA warp."""
        ready, free = self.name("sums_ready"), self.name("sums_free")
        tiles = accumulator_schedule(product.accumulator, self.threads, persistent, ready, free)
        where, held = nodes.where_of(plan.loop), (product.accumulator.name,)
        self.reports.append(LoopReport("tiles", where, persistent.buffers, held, schedule=tiles))
        return write_mma_warp(plan, grid, repeated, persistent, hooks, self.threads, tiles)

    def with_producer(self, s: Stmt, persistent_hooks: PersistentHooks) -> Stmt | str:
        """Return the grid with producer warps in its blocks, or the rejection reason."""
        grid = grid_of(s, fixed=False)
        if isinstance(grid, str):
            return grid
        loops = role_loops(s, grid, self.analysis, self.role_loop)
        if isinstance(loops, str) or len(loops) > 1:
            return loops if isinstance(loops, str) else "its block has several pipelined loops"
        first = loops[0]
        loop, choice = first.loop, first.choice
        persistent = persistent_hooks.choose(shape_of(s, loops, self.threads, None))
        repeated = slice_of(grid, [(loop, choice.chosen, first.binds)])
        reason = not_repeated(s, grid, repeated, self.analysis, persistent_hooks.thread)
        if isinstance(persistent, Reject) or reason:
            return persistent.reason if isinstance(persistent, Reject) else reason
        if grid.repeats and isinstance(first.product, OverlapPlan):
            return "a loop around it repeats a loop whose iterations overlap"
        persistent = persistent if first.only_products_read else replace(persistent, arrivals="thread")
        plan = with_producer_warp(self.plan(loop, choice, first.product), self.threads, persistent, self.name)
        name = str(loop.loop_var.name)
        notes = [*first.notes, LoopNote(name, "a producer warp issues its copies")]
        if self.clustering is not None:
            text = "no multicast: the blocks are not persistent"
            notes.append(LoopNote(name, text, no_pairs=True))
        self.record(plan, choice, notes)
        self.persistent = persistent
        return write_producer_warp(plan, grid, repeated, persistent, persistent_hooks.thread, self.threads)

    def role_loop(self, loop: Stmt) -> RoleLoop | str:
        """Return a pipelined loop for a producer, or the reason against it."""
        choice = choose(self.analysis, loop, loop, self.can_copy, self.safe_values)
        every = [x for x in products_of(loop.body) if self.is_async(OpCall.decode(x), self.threads)]
        reason = self.refusal(loop) or ("" if every else "its loop has no asynchronous product")
        if reason:
            return reason
        product, notes = self.product(loop, [c.buffer for c in choice.chosen], choice)
        only, binds = self.only_products_read(loop, choice), self.analysis.recomputed(loop, choice.chosen)
        return RoleLoop(loop, choice, every[0], binds, product, only, notes)

    def only_products_read(self, loop: Stmt, choice: Prefetched) -> bool:
        """Whether only instructions of whole warps read slots, so that one thread releases them."""
        body = top_level(loop.body)
        own = [i for i, s in enumerate(body) if is_op(s) and products_of(s)]
        own = [i for i in own if self.is_async(OpCall.decode(body[i]), self.threads)]
        return are_products_own(self.analysis, body, own, [c.buffer for c in choice.chosen])

    def product(
        self, loop: Stmt, copied: list[Any], choice: Prefetched
    ) -> tuple[Product | OverlapPlan | None, tuple[LoopNote, ...]]:
        """Return the asynchronous product or overlap of a loop, else notes on the obstacle."""

        def is_async(call: OpCall) -> bool:
            return self.is_async(call, self.threads)

        every = products_of(loop.body)
        if len(every) < 2 or not any(is_async(OpCall.decode(s)) for s in every):
            return async_product(self.analysis, loop, copied, is_async)
        found, reason = overlap_of(self.analysis, loop, copied, is_async)
        if found is not None:
            found, reason = self.overlap(found, loop, choice)
        if found is not None:
            return found, ()
        call = OpCall.decode(every[0])
        text = f"no overlap of its products between iterations: {reason}"
        notes = (LoopNote(call.args[accumulator_of(call)].name, text),)
        within = within_iterations(self.analysis, loop, copied, is_async)
        if within is None or isinstance(self.can_overlap(self.candidates(within, loop, choice)), Reject):
            return None, notes
        return within, notes

    def overlap(self, found: OverlapPlan, loop: Stmt, choice: Prefetched) -> tuple[OverlapPlan | None, str]:
        """Return the overlap of iterations, with ping-pong if chosen, or ``None`` and the reason."""
        body, copied, stages = top_level(loop.body), [c.buffer for c in choice.chosen], stages_of(loop)
        late, soon = found.rings(body, copied)
        if self.depth:
            return None, "the loop is nested in a pipelined loop"
        if late & soon and stages < 3:
            return None, f"{min(str(b.name) for b in late & soon)} would need a third slot"
        candidates = self.candidates(found, loop, choice)
        answer = self.can_overlap(candidates)
        if isinstance(answer, Reject):
            return None, answer.reason
        return replace(found, group_threads=int(answer.facts.get(PING_PONG, 0)) if candidates.alone else 0), ""

    def candidates(self, found: OverlapPlan, loop: Stmt, choice: Prefetched) -> Candidates:
        """Return the facts of products that can overlap, for the target's decision."""
        body, copied, stages = top_level(loop.body), [c.buffer for c in choice.chosen], stages_of(loop)
        calls = [OpCall.decode(body[i]) for i in sorted(found.products)]
        kinds = {choice.facts.get(c.buffer, {}).get(COMPLETION) for c in choice.chosen}
        alone = kinds == {TRANSACTIONS} and not self.in_role and found.are_products_own(body, copied)
        read = {v.buffer for call in calls for v in call.args if isinstance(v, View) and v.scope == "shared"}
        shared = sum(bytes_of(b) * (stages if any(b.same_as(c) for c in copied) else 1) for b in read)
        return Candidates(calls, self.threads, bool(found.tails) and alone, shared, bool(found.tails))

    def refusal(self, loop: Stmt) -> str:
        """Return the reason why a loop is not a candidate."""
        return not_pipelined(loop) or ("it is nested in a data-parallel loop" if self.inside_parallel else "")

    def plan(
        self,
        loop: Stmt,
        choice: Prefetched,
        product: Product | OverlapPlan | None,
        multicast: ChosenCluster | None = None,
        shared: LoopPlan | None = None,
    ) -> LoopPlan:
        """Return the plan of a loop, with the slots of another one if given."""
        binds = self.analysis.recomputed(loop, choice.chosen)
        rings = (
            shared.rings
            if shared is not None
            else {
                c.buffer: self.ring(
                    c.buffer,
                    nodes.shape_of(c.call.args[1].buffer),
                    stages_of(loop),
                    int(choice.facts.get(c.buffer, {}).get(ALIGN, 0)),
                )
                for c in choice.chosen
            }
        )
        name = self.name if shared is None else lambda wanted: shared.schedule.barriers[0].name
        plan = plan_loop(loop, choice, binds, rings, self.threads, name, product, multicast)
        if self.clustering is not None:
            plan = replace(plan, thread=self.clustering.thread)
        return plan

    def staged(self, original: Stmt, loop: Stmt, choice: Prefetched) -> Stmt:
        """Return the loop with copies through registers, or unchanged, and record the outcome."""
        reasons = {c.position: not_staged(c, self.threads) for c in choice.chosen}
        groups = groups_of(loop, [c for c in choice.chosen if not reasons[c.position]], self.threads)
        through = tuple(str(c.buffer.name) for g in groups for c in g.copies)
        kept = choice.kept + tuple(
            (str(c.buffer.name), reasons[c.position] or "its tiles take too many registers")
            for c in choice.chosen
            if str(c.buffer.name) not in through
        )
        reason = "" if groups else "no copy from global to shared memory can be prefetched"
        self.reports.append(
            LoopReport(str(loop.loop_var.name), nodes.where_of(loop), kept=kept, reason=reason, through=through)
        )
        if not groups:
            return loop
        own = {}
        for buffer in (c.buffer for g in groups for c in g.copies):
            if self.analysis.only_in(buffer, [original]):
                own[buffer], self.inside[buffer] = self.allocated[buffer], loop.loop_var
        return write_staged(loop, groups, self.analysis, own, self.name)

    def ring(self, buffer: BufferVar, shape: Sequence[Any], stages: int, align: int) -> BufferVar:
        name, kind = self.name(f"{buffer.name}_stages"), nodes.element_type(buffer)
        facts = {"data_alignment": align} if align else {}
        return tirx.decl_buffer([stages, *shape], kind, name, scope="shared", layout=None, **facts)


def _is_clear(s: Stmt) -> bool:
    """Whether a statement only fills a fragment."""
    return is_op(s) and nodes.is_tile_call(s.value, "fill") and View.of(s.value.args[0]).scope == "local.fragment"
