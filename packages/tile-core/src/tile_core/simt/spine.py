"""The passes of a target with threads, as one list: from a tile program to a per-thread program.

A backend inserts its own passes and appends its tail (scalar rewriting, emission). It leaves the note ``ALIGNED``: the
assumed alignment of addresses. The passes leave the notes of ``simt/notes.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_core.analysis.ranges import sizes_of
from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.lowering import PointerUnsupported
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.ir.warp import WARP
from tile_core.lowering.variant import Accept, Reject
from tile_core.passes.apply_layouts import apply_layouts
from tile_core.passes.drop_unused import drop_unused
from tile_core.passes.guard import guard
from tile_core.passes.lower_break import lower_break
from tile_core.passes.private_ops import private_ops
from tile_core.passes.spine import Pass, Plan, Spine
from tile_core.passes.wrap_known import wrap_known
from tile_core.simt.barriers.insertion import place_barriers
from tile_core.simt.barriers.redundant_barriers import drop_redundant_barriers
from tile_core.simt.code_size import bounded
from tile_core.simt.launch.grid import block_of, launch
from tile_core.simt.launch.strength_reduction import reduce_strength
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.arena import plan_arena
from tile_core.simt.memory.launch_assumptions import relied
from tile_core.simt.memory.shared_layouts import apply_shared_layouts
from tile_core.simt.memory.vectorize import vectorize
from tile_core.simt.notes import (
    ALIGNED,
    ARENA,
    BARRIERS,
    BLOCK,
    CODE_SIZE,
    DEMOTED,
    GRID,
    PIPELINE,
    PLACES,
    RELIED,
    SELECTED,
)
from tile_core.simt.ops.reducer import may_be_partial
from tile_core.simt.pipelining.software_pipeline import plan_pipeline
from tile_core.simt.placement.layout_inference import Inferred, infer
from tile_core.simt.placement.requested_layouts import not_kept, requested_fragments, requested_layouts
from tile_core.simt.placement.rescope import rescope
from tile_core.simt.placement.tile_uses import number_nests
from tile_core.simt.placement.variant_selection import Selected, select_ops
from tile_core.simt.threads.distribute import distribute
from tile_core.simt.threads.lower_selected import lower_selected
from tile_core.simt.threads.operand_prefetch import prefetch_operands
from tile_core.simt.threads.warp_calls import lower_warp_calls

if TYPE_CHECKING:
    from tile_core.context import Context

#: Rounds of inference; each but the last moves at least one fragment to shared memory.
_ROUNDS = 1000


@dataclass(frozen=True)
class SimtHooks:
    """Decisions that a backend makes within the passes.

    Attributes
    ----------
    can_copy
        Whether a copy (an ``OpCall``) can run ahead, given what a launch promises: ``Accept`` or ``Reject``. By default
        all can: an iteration begins its loads before it computes, and needs one barrier, not two.
    """

    can_copy: Callable[[Any, Context, Aligned], Accept | Reject] = lambda call, ctx, aligned: Accept()


def simt_spine(spine: Spine, hooks: SimtHooks) -> Spine:
    """Return the core's checks followed by the passes for threads."""
    checks = Spine(tuple(p for p in spine.passes if p.name not in ("lower_ops", "private_ops")))
    return checks.then(
        Pass("jumps", _jumps, "first: everything after it sees loops that run to their end"),
        Pass("wrap_known", _wrap_known, "before guards and proofs, which take overflow of indices for impossible"),
        Pass("pipeline", _pipeline(hooks), "on tile ops: whole copies are moved between iterations"),
        Pass("place", _place, "variants, then where tiles live; again when a fragment has to move to shared memory"),
        Pass("lower", _lower, "variants know all places now", "loops"),
        Pass("prefetch", _prefetch, "on whole ops, while their parts are marked"),
        Pass("distribute", _distribute, "nests become loops over registers, fragments arrays of them"),
        Pass("warps", _warps, "before barriers: what lanes exchange is no memory"),
        Pass("parameters", _parameters, "before vectors: neighbours of an annotated tensor may lie apart"),
        Pass("vectorize", _vectorize, "while accesses still have logical indices"),
        Pass("layouts", _layouts, "shared buffers become one-dimensional"),
        Pass("arena", _arena, "before barriers, which look at bytes that buffers share"),
        Pass("barriers", _barriers, "after everything that touches memory"),
        Pass("launch", _launch, "late: guards and proofs wanted the grid's extents"),
        Pass("strength", _strength, "after all proofs: a remainder is bounded, a variable is not"),
        Pass("budget", _budget, "after passes that find things by their loops, before what depends on a target"),
        Pass("unused", _unused, "last: what is bound here is read by code that passes wrote before"),
    )


def _jumps(plan: Plan, ctx: Context) -> Plan:
    for param in plan.program.params:
        if param.kind == "pointer":
            facts = {"kernel": plan.program.name, "name": param.name, "target": ctx.target.text}
            raise PointerUnsupported(**facts, where=plan.program.where)
    block = block_of(plan.body, nodes.fresh("tid"))
    return plan.replace(body=lower_break(plan.body), defined=(block.thread,)).note(BLOCK, block)


def _wrap_known(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=wrap_known(plan.body, sizes_of(plan.params)))


def _pipeline(hooks: SimtHooks) -> Callable[[Plan, Context], Plan]:
    def run(plan: Plan, ctx: Context) -> Plan:
        aligned, annotated = plan[ALIGNED], frozenset(map(str, plan.program.layouts))

        def can_copy(call: Any) -> Any:
            if call.args[0].name in annotated:
                return Reject("the layout of its source is annotated")
            return hooks.can_copy(call, ctx, aligned)

        body, report = plan_pipeline(plan.body, can_copy, plan.program.attrs.get("safe_values"))
        return plan.replace(body=body).note(PIPELINE, report)

    return run


def _place(plan: Plan, ctx: Context) -> Plan:
    body, moved = _shared_reducers(plan)
    for _ in range(_ROUNDS):
        selected, guarded, inferred = _round(body, plan, ctx)
        if not inferred.demoted:
            break
        moved |= {str(b.name): reason for b, reason in inferred.demoted.items()}
        body, _ = rescope(body, inferred.demoted)
    safe = dict(plan.program.attrs.get("safe_values") or {})
    buffers = [*plan.params, *(a.buffer for a in collect(body, tirx.AllocBuffer))]
    inferred.places.safe_values.update({b: safe[str(b.name)] for b in buffers if str(b.name) in safe})
    for buffer, layout in inferred.places.fragments.items():
        inferred.places.arrays[buffer] = tirx.decl_buffer(
            [layout.registers], nodes.element_type(buffer), buffer.name, scope="local", layout=None
        )
    plan = plan.replace(defined=(*plan.defined, *inferred.places.arrays.values()))
    plan = plan.note(PLACES, inferred).note(SELECTED, selected).note(DEMOTED, moved)
    return plan.replace(body=guarded, choices=selected.choices)


def _shared_reducers(plan: Plan) -> tuple[Any, dict[str, str]]:
    """Move the reducers that must have one copy for the whole block to shared memory."""
    found = {}
    for alloc in collect(plan.body, tirx.AllocBuffer):
        reducer = plan.program.reducers.get(str(alloc.buffer.name))
        if reducer is not None and not may_be_partial(plan.body, alloc.buffer, str(reducer["op"])):
            found[alloc.buffer] = "it is used in other ways than updates between an assignment and its end"
    body, _ = rescope(plan.body, found)
    return body, {str(b.name): reason for b, reason in found.items()}


def _round(body: Stmt, plan: Plan, ctx: Context) -> tuple[Selected, Any, Inferred]:
    block = plan[BLOCK]
    safe_values = frozenset(map(str, plan.program.attrs.get("safe_values") or ()))
    selected = select_ops(body, ctx, plan.variants, block, safe_values)
    guarded = guard(private_ops(selected.body), plan.program.attrs.get("safe_values"), plan.program.symbols.values())
    guarded = number_nests(guarded)
    reducers = {str(name): str(made["op"]) for name, made in plan.program.reducers.items()}
    layouts = requested_layouts(guarded, plan.program.layouts, plan[PIPELINE].versions)
    fragments = requested_fragments(guarded, plan.program.layouts, block, ctx)
    inferred = infer(guarded, selected.selections, block, ctx, layouts, reducers, fragments)
    for buffer, reason in inferred.demoted.items():
        if buffer in fragments:
            raise not_kept(buffer, reason, ctx)
    return selected, guarded, inferred


def _lower(plan: Plan, ctx: Context) -> Plan:
    inferred, selected = plan[PLACES], plan[SELECTED]
    block = plan[BLOCK]
    sizes = sizes_of(plan.params)
    return plan.replace(body=lower_selected(plan.body, selected.selections, block, inferred.places, ctx, sizes))


def _prefetch(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=prefetch_operands(plan.body))


def _distribute(plan: Plan, ctx: Context) -> Plan:
    width = ctx.capabilities.execution_width or WARP
    inferred = plan[PLACES]
    names = uses_threads(plan.program.func.body)
    body = distribute(plan.body, plan[BLOCK], inferred.places, inferred.nests, names, width)
    return plan.replace(body=body)


def _warps(plan: Plan, ctx: Context) -> Plan:
    width = ctx.capabilities.execution_width
    return plan if width is None else plan.replace(body=lower_warp_calls(plan.body, plan[BLOCK], width))


def _parameters(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=apply_layouts(plan.body, plan.params, plan.program.layouts))


def _vectorize(plan: Plan, ctx: Context) -> Plan:
    layouts = plan[PLACES].places.layouts
    body = vectorize(plan.body, ctx.capabilities, plan[ALIGNED], layouts)
    return plan.replace(body=body).note(RELIED, relied(body, plan[ALIGNED]))


def _layouts(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=apply_shared_layouts(plan.body, plan[PLACES].places.layouts, plan[BLOCK]))


def _arena(plan: Plan, ctx: Context) -> Plan:
    body, found = plan_arena(plan.body, ctx.capabilities.shared_bytes)
    return plan.replace(body=body).note(ARENA, found)


def _barriers(plan: Plan, ctx: Context) -> Plan:
    body, report = place_barriers(plan.body, plan[BLOCK])
    return plan.replace(body=drop_redundant_barriers(body)).note(BARRIERS, report)


def _launch(plan: Plan, ctx: Context) -> Plan:
    body, grid = launch(plan.body, plan[BLOCK], plan.program.attrs.get("swizzle"))
    return plan.replace(body=body).note(GRID, grid)


def _strength(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=reduce_strength(plan.body))


def _budget(plan: Plan, ctx: Context) -> Plan:
    body, written = bounded(plan.body, ctx.capabilities.code_operations)
    return plan.replace(body=body).note(CODE_SIZE, written)


def _unused(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=drop_unused(plan.body))
