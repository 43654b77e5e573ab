"""The passes of a target with threads: from tile program to per-thread program.

A backend inserts its own passes and appends its tail (scalar rewriting, emission). It leaves the note ``ALIGNED``: the
assumed alignment of addresses. The passes leave the notes of ``simt/notes.py``.
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
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import collect
from tile_core.ir.warp import WARP
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.passes.apply_layouts import apply_layouts
from tile_core.passes.drop_unused import drop_unused
from tile_core.passes.guard import guard
from tile_core.passes.lower_break import lower_break
from tile_core.passes.private_ops import private_ops
from tile_core.passes.spine import ORDERED, Pass, Plan, Spine, resolve_levels
from tile_core.passes.wrap_unproven import wrap_unproven
from tile_core.records import dataclass
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.barriers.managed_fences import fence_managed
from tile_core.simt.barriers.program_barriers import enter_barriers
from tile_core.simt.barriers.redundant_barriers import drop_redundant_barriers
from tile_core.simt.cluster_ranks import require_clusters
from tile_core.simt.code_size import bounded
from tile_core.simt.launch.grid import block_of, check_grid, launch
from tile_core.simt.launch.known_tests import drop_known_tests
from tile_core.simt.launch.strength_reduction import reduce_strength
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.arena import plan_arena
from tile_core.simt.memory.bank_conflicts import spread_over_banks
from tile_core.simt.memory.launch_assumptions import assume, given_symbols, promised
from tile_core.simt.memory.packed_tiles import pack_tiles, renamed_addresses
from tile_core.simt.memory.private_arrays import private_arrays
from tile_core.simt.memory.register_pressure import register_pressure
from tile_core.simt.memory.rematerialization import constant_tensors, rematerialize
from tile_core.simt.memory.shared_layouts import apply_shared_layouts
from tile_core.simt.memory.speculation import Known
from tile_core.simt.memory.vectorize import vectorize
from tile_core.simt.notes import (
    ALIGNED,
    ARENA,
    ARRAYS,
    BARRIERS,
    BLOCK,
    CODE_SIZE,
    DEMOTED,
    GRID,
    ORDER,
    PIPELINE,
    PLACEMENT,
    RECOMPUTED,
    RELIED,
    SELECTED,
    UNPLACED,
)
from tile_core.simt.ops.reducer import may_be_partial
from tile_core.simt.pipelining.multicast import ChosenCluster, Clustering, Shared
from tile_core.simt.pipelining.operands import Operand, read_operands_directly
from tile_core.simt.pipelining.persistent import PersistentGrid, PersistentHooks
from tile_core.simt.pipelining.ping_pong import require_no_shared_barrier
from tile_core.simt.pipelining.plan import ASKED_LAYOUT, COMPLETION, IMMEDIATE
from tile_core.simt.pipelining.register_buffering import double_buffer_registers
from tile_core.simt.pipelining.software_pipeline import plan_pipeline
from tile_core.simt.placement.layout_inference import Inferred, infer
from tile_core.simt.placement.register_limit import OTHERS, RegisterLimit, most_registers
from tile_core.simt.placement.register_operands import operands_in_registers
from tile_core.simt.placement.requested_layouts import not_kept, requested_fragments, requested_layouts
from tile_core.simt.placement.rescope import rescope
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
    share
        Whether persistent blocks with a producer warp process a grid (``pipelining/persistent.py``), given a ``Shape``
        and ``ctx=``. By default they do not.
    """

    can_copy: Callable[[Any, Context, Aligned], Accept | Reject] = lambda call, ctx, aligned: _IMMEDIATE
    reads_directly: Callable[[Operand, int, Context, Aligned], bool] | None = None
    is_async: Callable[[Any, Context, int], bool] = lambda call, ctx, threads: False
    can_overlap: Callable[[Any, Context], Accept | Reject] = lambda candidates, ctx: Accept()
    share: Callable[..., PersistentGrid | Reject] | None = None
    cluster: Callable[[Shared, Context], ChosenCluster | Reject] | None = None


def simt_spine(spine: Spine, hooks: SimtHooks) -> Spine:
    """Return the core's checks followed by the passes for threads."""
    checks = Spine(tuple(p for p in spine.passes if p.name == "check"))
    return checks.then(
        Pass("threads", _threads, "before guards and proofs, which rely on plain arithmetic and loops without jumps"),
        Pass("pipeline", _pipeline(hooks), "on tile ops: whole copies are moved between iterations"),
        Pass("place", _select, "variants, then where tiles live; again when a fragment has to move to shared memory"),
        Pass("lower", _lower, "variants know all places now", "loops"),
        Pass("distribute", _distribute, "nests become loops over registers, fragments arrays of them"),
        Pass("warps", _warps, "before barriers, on registers: what lanes exchange is no memory"),
        Pass("vectorize", _vectorize, "while accesses still have logical indices, each side of a split loop by itself"),
        Pass("layouts", _layouts, "after vectors, whose widths decide which threads access memory at once"),
        Pass("arena", _arena, "before barriers, which look at bytes that buffers share"),
        Pass("barriers", _barriers, "after everything that touches memory"),
        Pass("launch", _launch, "after all proofs, which need the grid's extents"),
        Pass("budget", _budget, "when all arrays of a thread are there, before what depends on a target"),
    )


def _threads(plan: Plan, ctx: Context) -> Plan:
    """Name the block's threads; remove jumps, levels that change nothing, and arithmetic that may overflow."""
    for param in plan.program.params:
        if param.kind == "pointer":
            facts = {"kernel": plan.program.name, "name": param.name, "target": ctx.target.text}
            raise PointerUnsupported(**facts, where=plan.program.where)
    plan, block = resolve_levels(_promised(plan), ctx), block_of(plan.body, nodes.fresh("tid"))
    body = wrap_unproven(lower_break(plan.body), plan.params)
    require_clusters(plan.program, ctx)
    # After wrapping, which has no ranges of a thread's number.
    body = enter_barriers(enter_roles(body, block, ctx), plan[ORDERED], ctx)
    plan = _tiles(plan.replace(body=body, defined=(block.thread,)).note(BLOCK, block), ctx)
    return plan.note(ORDER, plan.program.attrs.get("swizzle") or {})


def _tiles(plan: Plan, ctx: Context) -> Plan:
    """Make tiles of 4-bit elements bytes, and computed operands of products fragments."""
    kept = frozenset(map(str, (*plan.program.layouts, *(plan.program.attrs.get("safe_values") or ()))))
    body = operands_in_registers(plan.body, plan.variants, plan[BLOCK], ctx, kept)
    body, buffers = pack_tiles(body, plan.params, kept)
    params = tuple(buffers.get(p, p) for p in plan.params) if buffers else plan.params
    return plan.replace(body=body, params=params).note(ALIGNED, renamed_addresses(plan[ALIGNED], buffers))


def _promised(plan: Plan) -> Plan:
    """Assume the program's guarantees, and the usual alignment unless this is the general text."""
    given, func = given_symbols(plan.params, plan.program.symbols), plan.program.func
    plan = plan.replace(hidden=tuple(name for name in plan.program.symbols if name not in given))
    checked = plan[ALIGNED] if ALIGNED in plan else assume(func.params)
    return plan.note(ALIGNED, replace(checked, promised=promised(func.body)))


def _pipeline(hooks: SimtHooks) -> Callable[[Plan, Context], Plan]:
    def run(plan: Plan, ctx: Context) -> Plan:
        aligned, annotated = plan[ALIGNED], frozenset(map(str, plan.program.layouts))

        def can_copy(call: OpCall) -> Accept | Reject:
            if call.args[0].name in annotated:
                return Reject("the layout of its source is annotated")
            asked = plan.program.layouts.get(call.args[1].name)
            given = call if asked is None else replace(call, attrs={**call.attrs, ASKED_LAYOUT: asked})
            return hooks.can_copy(given, ctx, aligned)

        safe_values = plan.program.attrs.get("safe_values")
        threads = plan[BLOCK].count
        kept = annotated | frozenset(map(str, safe_values or ()))
        body, reads = plan.body, hooks.reads_directly
        if reads is not None:
            body = read_operands_directly(body, lambda operand: reads(operand, threads, ctx, aligned), kept)
        persistent_hooks = None
        # The layout of a fragment refers to all threads of the block, so the block gets no further ones.
        placed = any(str(a.buffer.name) in annotated for a in _fragments(body))
        alone = cluster_of(plan.program.attrs) == (1, 1, 1) and not uses_threads(body)
        if hooks.share is not None and alone and not placed:
            share = functools.partial(hooks.share, ctx=ctx)
            persistent_hooks = PersistentHooks(share, plan[BLOCK].thread, plan[ORDER])
        body, report = plan_pipeline(
            body, can_copy, safe_values, threads, lambda call, count: hooks.is_async(call, ctx, count),
            lambda candidates: hooks.can_overlap(candidates, ctx), persistent_hooks, _clustering(plan, ctx, hooks),
        )  # fmt: skip
        plan = plan.replace(body=body).note(PIPELINE, report)
        if prod(report.cluster) > 1:
            attrs = {**plan.program.attrs, "cluster": report.cluster}
            plan = plan.replace(program=replace(plan.program, attrs=attrs), written=plan.program)
        if report.persistent is None:
            return plan
        block = replace(plan[BLOCK], extents=(threads + report.persistent.extra_threads, 1, 1))
        # Persistent blocks apply the rasterization order to their tiles themselves.
        return plan.note(BLOCK, block).note(ORDER, {} if report.persistent.blocks else plan[ORDER])

    return run


def _fragments(body: Stmt) -> list[Any]:
    """Return the allocations of fragments."""
    return [a for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "local.fragment"]


def _clustering(plan: Plan, ctx: Context, hooks: SimtHooks) -> Clustering | None:
    """Return the cluster analysis of a program; none if it specifies its own clusters."""
    most = ctx.capabilities.max_cluster
    if hooks.cluster is None or most < 2 or "cluster" in plan.program.attrs:
        return None
    choose = hooks.cluster
    return Clustering(lambda shared: choose(shared, ctx), plan[BLOCK].thread, most)


def _select(plan: Plan, ctx: Context) -> Plan:
    return _placed(plan.note(UNPLACED, plan.body), ctx, {})


def _placed(plan: Plan, ctx: Context, withdrawn: Withdrawals, shared: Mapping[str, str] | None = None) -> Plan:
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
    safe = dict(plan.program.attrs.get("safe_values") or {})
    buffers = [*plan.params, *(a.buffer for a in collect(body, tirx.AllocBuffer))]
    inferred.placement.safe_values.update({b: safe[str(b.name)] for b in buffers if str(b.name) in safe})
    for buffer, layout in inferred.placement.fragments.items():
        inferred.placement.arrays[buffer] = tirx.decl_buffer(
            [layout.registers], nodes.element_type(buffer), buffer.name, scope="local", layout=None
        )
    plan = plan.replace(defined=(*plan.defined, *inferred.placement.arrays.values()))
    plan = plan.note(PLACEMENT, inferred).note(SELECTED, selected).note(DEMOTED, moved)
    return plan.replace(body=guarded, choices=selected.choices)


def _shared_reducers(plan: Plan) -> tuple[Stmt, dict[str, str]]:
    """Move the reducers that must have one copy for the whole block to shared memory."""
    found = {}
    for alloc in collect(plan.body, tirx.AllocBuffer):
        reducer = plan.program.reducers.get(str(alloc.buffer.name))
        if reducer is not None and not may_be_partial(plan.body, alloc.buffer, str(reducer["op"])):
            found[alloc.buffer] = "it is used in other ways than updates between an assignment and its end"
    body, _ = rescope(plan.body, found)
    return body, {str(b.name): reason for b, reason in found.items()}


def _round(body: Stmt, plan: Plan, ctx: Context, withdrawn: Withdrawals) -> tuple[Selected, Stmt, Inferred]:
    block = plan[BLOCK]
    safe_values = frozenset(map(str, plan.program.attrs.get("safe_values") or ()))
    selected = select_ops(body, ctx, plan.variants, block, safe_values, withdrawn)
    guarded = guard(private_ops(selected.body), plan.program.attrs.get("safe_values"), plan.program.symbols.values())
    guarded = number_nests(guarded)
    reducers = {str(name): str(made["op"]) for name, made in plan.program.reducers.items()}
    layouts = requested_layouts(guarded, plan.program.layouts, plan[PIPELINE].versions, plan[PIPELINE].slots)
    fragments = requested_fragments(guarded, plan.program.layouts, block, ctx)
    inferred = infer(guarded, selected.selections, block, ctx, plan[ALIGNED], layouts, reducers, fragments)
    for buffer, reason in inferred.demoted.items():
        if buffer in fragments:
            raise not_kept(buffer, reason, ctx)
    return selected, guarded, inferred


def _lower(plan: Plan, ctx: Context) -> Plan:
    sizes, withdrawn = sizes_of(plan.params), dict[int, dict[str, str]]()
    while True:
        selected = plan[SELECTED]
        try:
            body = lower_selected(plan.body, selected.selections, plan[BLOCK], plan[PLACEMENT].placement, ctx, sizes)
            return plan.replace(body=prefetch_operands(body))
        except Withdrawn as gone:
            # Its requirements on other operands' storage may be different without it.
            name = selected.selections[gone.number].variant.name
            withdrawn.setdefault(selected.position(gone.number), {})[name] = gone.reason
            plan = _placed(plan.replace(body=plan[UNPLACED]), ctx, withdrawn)


def _distribute(plan: Plan, ctx: Context) -> Plan:
    """Distribute nests over threads; begin anew if a fragment moves to shared memory."""
    plan, limit, kept = _recomputed(_distributed(plan, ctx), ctx)
    if limit is None:
        return plan
    array = limit.shareable(ctx.capabilities.shared_bytes, plan.body)
    if array is None:
        note = limit.performance_note(kept)
        return plan if note is None else plan.replace(slow=(*plan.slow, note))
    moved = {**plan[DEMOTED], str(limit.fragments[array].name): limit.reason(array)}
    again = _placed(plan.replace(body=plan[UNPLACED]), ctx, {}, moved)
    return _distribute(_lower(again, ctx), ctx)


def _recomputed(plan: Plan, ctx: Context) -> tuple[Plan, RegisterLimit | None, dict[Any, str]]:
    """Recompute fragments beyond a thread's registers; return reasons why others are kept."""
    most, arrays = most_registers(plan[UNPLACED], plan[BLOCK].count, ctx), plan[PLACEMENT].placement.arrays
    plan, kept = plan.note(RECOMPUTED, {}), dict[Any, str]()
    if most is None:
        return plan, None, kept

    def limit(body: Stmt) -> RegisterLimit:
        fragments = {array: fragment for fragment, array in arrays.items()}
        return RegisterLimit(most, plan[BLOCK].count, register_pressure(body), fragments, plan[UNPLACED])

    before = limit(plan.body)
    if before.is_near:
        chosen = before.large()
        body, kept = rematerialize(plan.body, chosen, constant_tensors(plan.body, plan.params))
        reasons = {str(a.name): before.reason(a) for a in chosen if a not in kept}
        if reasons:
            return plan.replace(body=body).note(RECOMPUTED, reasons), limit(body), kept
    return plan, before, kept


def _distributed(plan: Plan, ctx: Context) -> Plan:
    width = ctx.capabilities.execution_width or WARP
    inferred = plan[PLACEMENT]
    names = uses_threads(plan.program.func.body)
    body, slow = distribute(plan.body, plan[BLOCK], inferred.placement, inferred.nests, names, width)
    notes = dict.fromkeys(loop.performance_note(plan[BLOCK].count) for loop in slow)
    return plan.replace(body=body, slow=(*plan.slow, *notes))


def _warps(plan: Plan, ctx: Context) -> Plan:
    """Write loops with registers in flight twice, and exchanges between lanes."""
    width, reductions = ctx.capabilities.execution_width, ctx.capabilities.group_reductions
    body = double_buffer_registers(plan.body, plan[PLACEMENT].placement.in_flight)
    return plan.replace(body=body if width is None else lower_warp_calls(body, plan[BLOCK], width, reductions))


def _vectorize(plan: Plan, ctx: Context) -> Plan:
    # Neighbours of an annotated tensor may lie apart; accesses are wide where no element has a condition.
    body = split_interior(apply_layouts(plan.body, plan.params, plan.program.layouts))
    layouts = plan[PLACEMENT].placement.layouts
    block = plan[BLOCK]
    known = Known({block.thread: block.count}, (*sizes_of(plan.params), *plan.program.symbols.values()))
    body, needed = vectorize(body, ctx.capabilities, plan[ALIGNED], layouts, known)
    # After vectors, whose loads it leaves; before barriers, which it moves loads across.
    return _with_prefetched_loads(plan.replace(body=body).note(RELIED, needed), ctx)


def _with_prefetched_loads(plan: Plan, ctx: Context) -> Plan:
    block, most = plan[BLOCK], most_registers(plan[UNPLACED], plan[BLOCK].count, ctx)
    if most is None or most - register_pressure(plan.body).registers < 2 * MOST_PREFETCHED + OTHERS:
        return plan
    constant = constant_tensors(plan.body, plan.params)
    return plan.replace(body=prefetch_loads(plan.body, constant, block.thread, block.count))


def _layouts(plan: Plan, ctx: Context) -> Plan:
    """Make shared buffers one-dimensional."""
    layouts, banks = plan[PLACEMENT].placement.layouts, ctx.capabilities.shared_banks
    if banks:
        layouts.update(spread_over_banks(plan.body, plan[BLOCK], layouts, banks))
    return plan.replace(body=apply_shared_layouts(plan.body, layouts, plan[BLOCK]))


def _arena(plan: Plan, ctx: Context) -> Plan:
    body, found = plan_arena(plan.body, ctx.capabilities.shared_bytes)
    return plan.replace(body=body).note(ARENA, found)


def _barriers(plan: Plan, ctx: Context) -> Plan:
    body, report = insert_barriers(plan.body, plan[BLOCK])
    require_no_shared_barrier(body, [x.schedule for x in plan[PIPELINE].loops if x.schedule is not None])
    return plan.replace(body=fence_managed(drop_redundant_barriers(body))).note(BARRIERS, report)


def _launch(plan: Plan, ctx: Context) -> Plan:
    body, grid = launch(plan.body, plan[BLOCK], plan[ORDER], cluster_of(plan.program.attrs))
    check_grid(grid, plan.program, ctx.target)
    body = drop_known_tests(body, plan[BLOCK].extents, grid.extents, sizes_of(plan.params))
    return plan.replace(body=reduce_strength(body)).note(GRID, grid)


def _budget(plan: Plan, ctx: Context) -> Plan:
    """Limit the code's size, remove unused bindings, and describe a thread's arrays."""
    body, written = bounded(plan.body, ctx.capabilities.code_operations)
    body = drop_unused(body)
    found = private_arrays(body, ctx.capabilities, plan[PLACEMENT].placement.arrays)
    slow = found.performance_note(plan[BLOCK].count, ctx.capabilities.shared_bytes)
    plan = plan.replace(body=body, slow=plan.slow if slow is None else (*plan.slow, slow))
    return plan.note(CODE_SIZE, written).note(ARRAYS, found)
