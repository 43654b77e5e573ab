"""The passes of a target with threads: from tile program to per-thread program.

A backend inserts its own passes and appends its tail (scalar rewriting, emission). The decisions of the passes
are fields of ``KernelPlan`` (``simt/kernel_plan.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.ranges import sizes_of
from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.lowering import PointerUnsupported
from tile_core.ir import nodes
from tile_core.ir.attributes import ASKED_LAYOUT, CLUSTER, COMPLETION, RASTERIZATION, SAFE_VALUES
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import collect
from tile_core.ir.warp import WARP
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.passes.apply_layouts import apply_layouts
from tile_core.passes.drop_unused import drop_unused
from tile_core.passes.guard import guard
from tile_core.passes.lower_break import lower_break
from tile_core.passes.private_ops import private_ops
from tile_core.passes.spine import Pass, Plan, Spine, resolve_levels
from tile_core.passes.wrap_unproven import wrap_unproven
from tile_core.records import dataclass
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.barriers.managed_fences import fence_managed
from tile_core.simt.barriers.program_barriers import enter_barriers
from tile_core.simt.barriers.redundant_barriers import drop_redundant_barriers
from tile_core.simt.cluster_ranks import require_clusters
from tile_core.simt.cluster_split import split_over_cluster
from tile_core.simt.code_size import bounded
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.grid import block_of, check_grid, launch
from tile_core.simt.launch.known_tests import drop_known_tests
from tile_core.simt.launch.longest_first import LongestFirst
from tile_core.simt.launch.strength_reduction import reduce_strength
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.arena import plan_arena
from tile_core.simt.memory.bank_conflicts import spread_over_banks
from tile_core.simt.memory.launch_assumptions import assume, given_symbols, promised, relied
from tile_core.simt.memory.packed_tiles import pack_tiles, renamed_addresses
from tile_core.simt.memory.private_arrays import private_arrays
from tile_core.simt.memory.register_pressure import register_pressure
from tile_core.simt.memory.rematerialization import constant_tensors, rematerialize
from tile_core.simt.memory.shared_layouts import apply_shared_layouts
from tile_core.simt.memory.speculation import Known
from tile_core.simt.memory.vectorize import vectorize
from tile_core.simt.ops.reducer import may_be_partial
from tile_core.simt.pipelining.loop_note import with_notes
from tile_core.simt.pipelining.multicast import ChosenCluster, Clustering, Shared
from tile_core.simt.pipelining.operands import Operand, read_operands_directly
from tile_core.simt.pipelining.persistent import PersistentGrid, PersistentHooks
from tile_core.simt.pipelining.ping_pong import require_no_shared_barrier
from tile_core.simt.pipelining.plan import IMMEDIATE, CanCopy
from tile_core.simt.pipelining.register_buffering import double_buffer_registers
from tile_core.simt.pipelining.software_pipeline import plan_pipeline
from tile_core.simt.placement.converted_operands import convert_operands
from tile_core.simt.placement.layout_inference import Inferred, infer
from tile_core.simt.placement.register_limit import OTHERS, RegisterLimit, most_registers
from tile_core.simt.placement.register_operands import operands_in_registers
from tile_core.simt.placement.requested_layouts import not_kept, requested_fragments, requested_layouts
from tile_core.simt.placement.rescope import rescope
from tile_core.simt.placement.staged_tiles import (
    StagedTile,
    kept_names,
    not_staged,
    notes_of,
    stage_tiles,
)
from tile_core.simt.placement.tile_uses import number_nests
from tile_core.simt.placement.variant_selection import Selected, Withdrawals, select_ops
from tile_core.simt.role_threads import enter_roles
from tile_core.simt.threads.distribute import distribute
from tile_core.simt.threads.interior import split_interior
from tile_core.simt.threads.load_prefetch import MOST_PREFETCHED, prefetch_loads
from tile_core.simt.threads.lower_selected import lower_selected
from tile_core.simt.threads.operand_prefetch import prefetch_operands
from tile_core.simt.threads.warp_calls import lower_warp_calls

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ops.base import OpCall

#: Rounds of inference; each but the last moves at least one fragment to shared memory.
_ROUNDS = 1000


_IMMEDIATE = Accept(facts={COMPLETION: IMMEDIATE})


@dataclass(frozen=True)
class SimtHooks:
    """Decisions that a backend makes within the passes.

    Attributes
    ----------
    can_copy
        Whether a copy (an ``OpCall``) can be prefetched, given the assumptions of a launch: ``Accept`` or ``Reject``.
        The fact ``pipelining.plan.COMPLETION`` is the completion mechanism. ``LAYOUT`` and ``ALIGN`` are requirements
        on its buffer. The call's attribute ``ASKED_LAYOUT`` is the layout that the user requested. By default all
        copies can be prefetched and are synchronous: an iteration begins its loads before it computes, and needs one
        barrier, not two.
    can_gather
        The same for a gather of rows, whose operands are the source, the tile and the row numbers. By default none can.
    reads_directly
        Whether a product of a block of ``n`` threads reads an ``Operand`` of ``pipelining/operands.py`` as fast from
        global memory, given the assumptions of a launch: a pipelined loop then does not copy it. False by default.
    is_async
        Whether a product (an ``OpCall``) of ``n`` threads has asynchronous instructions. The target then has a variant
        of the op ``wait_uses`` that waits for them (``pipelining/async_products.py``). False by default.
    can_overlap
        Whether the iterations of a loop of several such products (``Candidates`` of ``pipelining/overlap.py``) should
        overlap, and whether groups of threads use ping-pong. By default all overlap, without ping-pong.
    cluster
        The cluster whose blocks multicast tiles of a loop, given a ``pipelining.multicast.Shared`` and a context. By
        default each block loads its own tiles.
    split
        How many blocks of a cluster share the iterations of a product's loop (`tile_core.simt.cluster_split`),
        given the program, the trip count, and ``ctx=``. By default each block executes all of them.
    share
        Whether persistent blocks with a producer warp process a grid (``pipelining/persistent.py``), given a ``Shape``
        and ``ctx=``. By default they do not.
    """

    can_copy: Callable[[Any, Context, Aligned], Accept | Reject] = lambda call, ctx, aligned: _IMMEDIATE
    can_gather: Callable[[Any, Context, Aligned], Accept | Reject | bool] = lambda call, ctx, aligned: False
    reads_directly: Callable[[Operand, int, Context, Aligned], bool] | None = None
    is_async: Callable[[Any, Context, int], bool] = lambda call, ctx, threads: False
    can_overlap: Callable[[Any, Context], Accept | Reject] = lambda candidates, ctx: Accept()
    split: Callable[..., int | Reject] | None = None
    share: Callable[..., PersistentGrid | Reject] | None = None
    cluster: Callable[[Shared, Context], ChosenCluster | Reject] | None = None


def simt_spine(spine: Spine, hooks: SimtHooks) -> Spine:
    """Return the core's checks followed by the passes for threads."""
    checks = Spine(tuple(p for p in spine.passes if p.name == "check"), spine.attributes)
    return checks.then(
        Pass(
            "threads",
            _threads(hooks),
            "before guards and proofs, which rely on plain arithmetic and loops without jumps",
        ),
        Pass("pipeline", _pipeline(hooks), "on tile ops: whole copies are moved between iterations"),
        Pass("place", _select, "variants, then tiles; again when a fragment has to move to shared memory", "selected"),
        Pass("lower", _lower, "variants know all places now", "loops"),
        Pass("distribute", _distribute, "nests become loops over registers, fragments arrays of them", "threads"),
        Pass("warps", _warps, "before barriers, on registers: lanes exchange registers, not memory"),
        Pass("vectorize", _vectorize, "while accesses still have logical indices, each side of a split loop by itself"),
        Pass("layouts", _layouts, "after vectors, whose widths decide which threads access memory at once"),
        Pass("arena", _arena, "before barriers, which look at bytes that buffers share"),
        Pass("barriers", _barriers, "after everything that touches memory"),
        Pass("launch", _launch, "after all proofs, which need the grid's extents", "kernel"),
        Pass("budget", _budget, "when all arrays of a thread are there, before what depends on a target"),
    )


def _threads(hooks: SimtHooks) -> Callable[[KernelPlan, Context], KernelPlan]:
    """Name the block's threads; remove jumps, levels that change nothing, and arithmetic that may overflow."""

    def run(plan: Plan, ctx: Context) -> KernelPlan:
        for param in plan.program.params:
            if param.kind == "pointer":
                facts = {"kernel": plan.program.name, "name": param.name, "target": ctx.target.text}
                raise PointerUnsupported(**facts, where=plan.program.where)
        plan, block = resolve_levels(_promised(plan), ctx), block_of(plan.body, nodes.fresh("tid"))
        plan = plan.replace(
            body=wrap_unproven(lower_break(plan.body), plan.params), defined=(block.thread,), block=block,
            order=plan.program.attrs.get(RASTERIZATION) or {}, loop_notes={},
        )  # fmt: skip
        require_clusters(plan.program, ctx)
        plan = split_over_cluster(plan, ctx, hooks.split and functools.partial(hooks.split, ctx=ctx))
        # After wrapping, which has no ranges of a thread's number.
        body = enter_barriers(enter_roles(plan.body, block, ctx), plan.ordered, ctx)
        return _tiles(plan.replace(body=body), ctx, hooks)

    return run


def _tiles(plan: KernelPlan, ctx: Context, hooks: SimtHooks) -> KernelPlan:
    """Stage the tiles that threads convert where the target prefetches their copies, and convert operands."""
    refused, reasons, kept = dict[int, StagedTile](), dict[int, str](), kept_names(plan.program)
    while True:
        body, staged = stage_tiles(plan.body, kept, refused) if ctx.capabilities.async_copies else (plan.body, [])
        notes = with_notes(plan.loop_notes, notes_of(staged, refused, reasons))
        new = _converted(plan.replace(body=body, loop_notes=notes), ctx)
        can_copy, most = _can_copy(new, ctx, hooks), ctx.capabilities.shared_bytes
        found = not_staged(new.body, new.params, staged, can_copy, most)
        if not found:
            return new
        refused, reasons = refused | {x.number: x for x in staged if x.number in found}, reasons | found


def _converted(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Make tiles of 4-bit elements bytes, computed operands fragments, and others the instruction's type."""
    kept = kept_names(plan.program)
    body = operands_in_registers(plan.body, plan.variants, plan.block, ctx, kept)
    body = convert_operands(body, plan.variants, plan.block, ctx, kept)
    body, buffers = pack_tiles(body, plan.params, kept)
    params = tuple(buffers.get(p, p) for p in plan.params) if buffers else plan.params
    return plan.replace(body=body, params=params, aligned=renamed_addresses(plan.aligned, buffers))


def _promised(plan: Plan) -> KernelPlan:
    """Assume the program's guarantees, and the usual alignment unless this is the general text."""
    given, func = given_symbols(plan.params, plan.program.symbols), plan.program.func
    hidden = tuple(name for name in plan.program.symbols if name not in given)
    checked = plan.aligned if isinstance(plan, KernelPlan) else assume(func.params)
    return KernelPlan.extending(plan, hidden=hidden, aligned=replace(checked, promised=promised(func.body)))


def _pipeline(hooks: SimtHooks) -> Callable[[KernelPlan, Context], KernelPlan]:
    def run(plan: KernelPlan, ctx: Context) -> KernelPlan:
        aligned, annotated = plan.aligned, frozenset(map(str, plan.program.layouts))

        safe_values = plan.program.attrs.get(SAFE_VALUES)
        threads = plan.block.count
        kept = annotated | frozenset(map(str, safe_values or ()))
        body, reads = plan.body, hooks.reads_directly
        if reads is not None:
            body = read_operands_directly(body, lambda operand: reads(operand, threads, ctx, aligned), kept)
        persistent_hooks, panels = None, {} if isinstance(plan.order, LongestFirst) else plan.order
        # The layout of a fragment refers to all threads of the block, so the block gets no further ones.
        placed = any(str(a.buffer.name) in annotated for a in _fragments(body))
        alone = cluster_of(plan.program.attrs) == (1, 1, 1) and not uses_threads(body)
        if hooks.share is not None and alone and not placed:
            share = functools.partial(hooks.share, ctx=ctx)
            persistent_hooks = PersistentHooks(share, plan.block.thread, panels)
        body, report = plan_pipeline(
            body, _can_copy(plan, ctx, hooks), safe_values, threads,
            lambda call, count: hooks.is_async(call, ctx, count), lambda candidates: hooks.can_overlap(candidates, ctx),
            persistent_hooks, _clustering(plan, ctx, hooks),
        )  # fmt: skip
        plan = plan.replace(body=body, pipeline=report.with_notes(plan.loop_notes))
        if prod(report.cluster) > 1:
            attrs = {**plan.program.attrs, CLUSTER: report.cluster}
            # Blocks of a cluster are neighbours in the grid.
            plan = plan.replace(program=replace(plan.program, attrs=attrs), written=plan.program, order=panels)
        if report.persistent is None:
            return plan
        block = replace(plan.block, extents=(threads + report.persistent.extra_threads, 1, 1))
        # Persistent blocks apply the rasterization order to their tiles themselves.
        return plan.replace(block=block, order={} if report.persistent.blocks else plan.order)

    return run


def _can_copy(plan: KernelPlan, ctx: Context, hooks: SimtHooks) -> CanCopy:
    """Return the target's decision about copies of a program in pipelined loops."""

    def can_copy(call: OpCall) -> Accept | Reject | bool:
        if str(call.args[0].name) in plan.program.layouts:
            return Reject("the layout of its source is annotated")
        asked = plan.program.layouts.get(call.args[1].name)
        given = call if asked is None else replace(call, attrs={**call.attrs, ASKED_LAYOUT: asked})
        return (hooks.can_gather if call.name == "gather" else hooks.can_copy)(given, ctx, plan.aligned)

    return can_copy


def _fragments(body: Stmt) -> list[Any]:
    """Return the allocations of fragments."""
    return [a for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "local.fragment"]


def _clustering(plan: KernelPlan, ctx: Context, hooks: SimtHooks) -> Clustering | None:
    """Return the cluster analysis of a program; none if it specifies its own clusters."""
    most = ctx.capabilities.max_cluster
    if hooks.cluster is None or most < 2 or CLUSTER in plan.program.attrs:
        return None
    choose = hooks.cluster
    return Clustering(lambda shared: choose(shared, ctx), plan.block.thread, most)


def _select(plan: KernelPlan, ctx: Context) -> KernelPlan:
    return _placed(plan.replace(unplaced=plan.body), ctx, {})


def _placed(
    plan: KernelPlan, ctx: Context, withdrawn: Withdrawals, shared: Mapping[str, str] | None = None
) -> KernelPlan:
    """Place fragments; those of ``shared``, each with the reason, are moved to shared memory."""
    body, moved = _shared_reducers(plan)
    asked = shared or {}
    chosen = {a.buffer: asked[str(a.buffer.name)] for a in _fragments(body) if str(a.buffer.name) in asked}
    moved |= {str(b.name): reason for b, reason in chosen.items()}
    body, _ = rescope(body, chosen)
    for _ in range(_ROUNDS):
        selected, guarded, inferred = _round(body, plan, ctx, withdrawn)
        if not inferred.demoted:
            break
        moved |= {str(b.name): reason for b, reason in inferred.demoted.items()}
        body, _ = rescope(body, inferred.demoted)
    safe = dict(plan.program.attrs.get(SAFE_VALUES) or {})
    buffers = [*plan.params, *(a.buffer for a in collect(body, tirx.AllocBuffer))]
    placement = replace(
        inferred.placement,
        safe_values={b: safe[str(b.name)] for b in buffers if str(b.name) in safe},
        arrays={
            b: tirx.decl_buffer([layout.registers], nodes.element_type(b), b.name, scope="local", layout=None)
            for b, layout in inferred.placement.fragments.items()
        },
    )
    return plan.replace(
        body=guarded, choices=selected.choices, defined=(*plan.defined, *placement.arrays.values()),
        placement=replace(inferred, placement=placement), selected=selected, demoted=moved,
    )  # fmt: skip


def _shared_reducers(plan: KernelPlan) -> tuple[Stmt, dict[str, str]]:
    """Move the reducers that must have one copy for the whole block to shared memory."""
    found = {}
    for alloc in collect(plan.body, tirx.AllocBuffer):
        reducer = plan.program.reducers.get(str(alloc.buffer.name))
        if reducer is not None and not may_be_partial(plan.body, alloc.buffer, str(reducer["op"])):
            found[alloc.buffer] = "it is used in other ways than updates between an assignment and its end"
    body, _ = rescope(plan.body, found)
    return body, {str(b.name): reason for b, reason in found.items()}


def _round(body: Stmt, plan: KernelPlan, ctx: Context, withdrawn: Withdrawals) -> tuple[Selected, Stmt, Inferred]:
    block, names = plan.block, uses_threads(plan.program.func.body)
    safe_values = frozenset(map(str, plan.program.attrs.get(SAFE_VALUES) or ()))
    selected = select_ops(body, ctx, plan.variants, block, safe_values, withdrawn, names_threads=names)
    mine = private_ops(selected.body, names)
    guarded = number_nests(guard(mine, plan.program.attrs.get(SAFE_VALUES), plan.program.symbols.values()))
    reducers = {str(name): str(made["op"]) for name, made in plan.program.reducers.items()}
    layouts = requested_layouts(guarded, plan.program.layouts, plan.pipeline.versions, plan.pipeline.slots)
    fragments = requested_fragments(guarded, plan.program.layouts, block, ctx)
    tiles = layouts, reducers, fragments
    inferred = infer(guarded, selected.selections, block, ctx, plan.aligned, *tiles, names_threads=names)
    for buffer, reason in inferred.demoted.items():
        if buffer in fragments:
            raise not_kept(buffer, reason, ctx)
    return selected, guarded, inferred


def _lower(plan: KernelPlan, ctx: Context, shared: Mapping[str, str] | None = None) -> KernelPlan:
    """Lower tile ops; fragments of ``shared`` remain there for every choice of variants."""
    sizes, withdrawn = sizes_of(plan.params), dict[int, dict[str, str]]()
    names = uses_threads(plan.program.func.body)
    while True:
        selected, placement = plan.selected, replace(plan.placement.placement, in_flight={})
        try:
            chosen = selected.selections
            body = lower_selected(plan.body, chosen, plan.block, placement, ctx, sizes, names_threads=names)
            inferred = replace(plan.placement, placement=placement)
            return plan.replace(body=prefetch_operands(body), placement=inferred)
        except Withdrawn as gone:
            # Its requirements on other operands' storage may be different without it.
            name = selected.selections[gone.number].variant.name
            withdrawn.setdefault(selected.position(gone.number), {})[name] = gone.reason
            plan = _placed(plan.replace(body=plan.unplaced), ctx, withdrawn, shared)


def _distribute(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Distribute nests over threads; begin anew if a fragment moves to shared memory."""
    plan, limit, kept = _recomputed(_distributed(plan, ctx), ctx)
    if limit is None:
        return plan
    array = limit.shareable(ctx.capabilities.shared_bytes, plan.body)
    if array is None:
        note = limit.performance_note(kept)
        return plan if note is None else plan.replace(slow=(*plan.slow, note))
    moved = {**plan.demoted, str(limit.fragments[array].name): limit.reason(array)}
    again = _placed(plan.replace(body=plan.unplaced), ctx, {}, moved)
    return _distribute(_lower(again, ctx, moved), ctx)


def _recomputed(plan: KernelPlan, ctx: Context) -> tuple[KernelPlan, RegisterLimit | None, dict[Any, str]]:
    """Recompute fragments beyond a thread's registers; return reasons why others are kept."""
    most, arrays = most_registers(plan.unplaced, plan.block.count, ctx), plan.placement.placement.arrays
    plan, kept = plan.replace(recomputed={}), dict[Any, str]()
    if most is None:
        return plan, None, kept

    def limit(body: Stmt) -> RegisterLimit:
        fragments = {array: fragment for fragment, array in arrays.items()}
        return RegisterLimit(most, plan.block.count, register_pressure(body), fragments, plan.unplaced)

    before = limit(plan.body)
    if before.is_near:
        chosen = before.large()
        body, kept = rematerialize(plan.body, chosen, constant_tensors(plan.body, plan.params))
        reasons = {str(a.name): before.reason(a) for a in chosen if a not in kept}
        if reasons:
            return plan.replace(body=body, recomputed=reasons), limit(body), kept
    return plan, before, kept


def _distributed(plan: KernelPlan, ctx: Context) -> KernelPlan:
    width = ctx.capabilities.execution_width or WARP
    inferred = plan.placement
    names = uses_threads(plan.program.func.body)
    body, slow = distribute(plan.body, plan.block, inferred.placement, inferred.nests, names, width)
    notes = dict.fromkeys(loop.performance_note(plan.block.count) for loop in slow)
    return plan.replace(body=body, slow=(*plan.slow, *notes))


def _warps(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Write loops with registers in flight twice, and exchanges between lanes."""
    width, reductions = ctx.capabilities.execution_width, ctx.capabilities.group_reductions
    body = double_buffer_registers(plan.body, plan.placement.placement.in_flight)
    return plan.replace(body=body if width is None else lower_warp_calls(body, plan.block, width, reductions))


def _vectorize(plan: KernelPlan, ctx: Context) -> KernelPlan:
    # Neighbours of an annotated tensor may lie apart; accesses are wide where no element has a condition.
    body = split_interior(apply_layouts(plan.body, plan.params, plan.program.layouts))
    layouts = plan.placement.placement.layouts
    block = plan.block
    known = Known({block.thread: block.count}, (*sizes_of(plan.params), *plan.program.symbols.values()))
    body, needed = vectorize(body, ctx.capabilities, plan.aligned, layouts, known)
    # After vectors, whose loads it leaves; before barriers, which it moves loads across.
    return _with_prefetched_loads(plan.replace(body=body, relied=needed), ctx)


def _with_prefetched_loads(plan: KernelPlan, ctx: Context) -> KernelPlan:
    block, most = plan.block, most_registers(plan.unplaced, plan.block.count, ctx)
    if most is None or most - register_pressure(plan.body).registers < 2 * MOST_PREFETCHED + OTHERS:
        return plan
    constant = constant_tensors(plan.body, plan.params)
    body = prefetch_loads(plan.body, constant, block.thread, block.count, plan.aligned)
    return plan.replace(body=body, relied=plan.relied.joined(relied(body, plan.aligned)))


def _layouts(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Make shared buffers one-dimensional."""
    placement, banks = plan.placement.placement, ctx.capabilities.shared_banks
    if banks:
        rings = {str(buffer.name) for buffer in plan.pipeline.versions}
        spread = spread_over_banks(plan.body, plan.block, placement.layouts, banks, rings)
        placement = replace(placement, layouts={**placement.layouts, **spread})
    body = apply_shared_layouts(plan.body, placement.layouts, plan.block)
    return plan.replace(body=body, placement=replace(plan.placement, placement=placement))


def _arena(plan: KernelPlan, ctx: Context) -> KernelPlan:
    body, found = plan_arena(plan.body, ctx.capabilities.shared_bytes)
    return plan.replace(body=body, arena=found)


def _barriers(plan: KernelPlan, ctx: Context) -> KernelPlan:
    body, report = insert_barriers(plan.body, plan.block)
    require_no_shared_barrier(body, [x.schedule for x in plan.pipeline.loops if x.schedule is not None])
    return plan.replace(body=fence_managed(drop_redundant_barriers(body)), barriers=report)


def _launch(plan: KernelPlan, ctx: Context) -> KernelPlan:
    body, grid = launch(plan.body, plan.block, plan.order, cluster_of(plan.program.attrs))
    check_grid(grid, plan.program, ctx.target)
    body = drop_known_tests(body, plan.block.extents, grid.extents, sizes_of(plan.params))
    return plan.replace(body=reduce_strength(body), grid=grid)


def _budget(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Limit the code's size, remove unused bindings, and describe a thread's arrays."""
    body, written = bounded(plan.body, ctx.capabilities.code_operations)
    body = drop_unused(body)
    found = private_arrays(body, ctx.capabilities, plan.placement.placement.arrays)
    slow = found.performance_note(plan.block.count, ctx.capabilities.shared_bytes)
    notes = plan.slow if slow is None else (*plan.slow, slow)
    return plan.replace(body=body, slow=notes, code_size=written, arrays=found)
