"""The CUDA passes: the core's for threads, then scalar rewriting and the text."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.emit.facts import KernelText
from tile_core.ir import nodes
from tile_core.passes import wrapping
from tile_core.passes.conversions import total_conversions
from tile_core.passes.divisions import total_divisions
from tile_core.passes.legalize_floats import legalize_floats
from tile_core.passes.spine import Pass, Plan, Spine
from tile_core.passes.widen_floats import widen_floats
from tile_core.simt.alignment import Aligned
from tile_core.simt.promises import assume
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_cuda.conversions import FP8, PLAIN, TRUNCATIONS
from tile_cuda.ops.copy_async import can_copy
from tile_cuda.target import FP8_MMA
from tile_cuda.text import emit_plan

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.target import Target

#: Types that are loaded, stored and converted by instructions, and computed with in float32.
_HALF = frozenset({"float16", "bfloat16"})
#: Types that need no conversion to integers of the core's own.
_NATIVE = frozenset(n for n, d in DTYPES.items() if not d.is_narrow and d.bits >= 8) | {"bool"}


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    del target
    passes = simt_spine(spine, SimtHooks(can_copy=can_copy))

    def text(plan: Plan, ctx: Context) -> Plan:
        found = emit_plan(plan, ctx)
        if plan.notes["aligned"] != Aligned() and promises(found):
            found = KernelText(found.text, found.facts, general=functools.cache(lambda: again(plan, ctx)))
        return plan.note("lowered", found).note("source", found.text)

    def again(plan: Plan, ctx: Context) -> KernelText:
        start = Plan(plan.program, plan.program.func.body, plan.variants)
        made = whole.run(start.note("params", tuple(plan.program.func.params)).note("aligned", Aligned()), ctx)
        lowered: KernelText = made.notes["lowered"]
        return lowered

    whole = passes.before("check", Pass("promises", _promise, "first: what the launch will check")).then(
        Pass("conversions", _conversions, "while floats have their own types, whose ranges are known"),
        Pass("divisions", _divisions, "before passes that hide arithmetic"),
        Pass("wrap", _wrap, "before passes that add integer arithmetic of their own, which does not overflow"),
        Pass("floats", _floats, "the text has instructions for conversions, not for arithmetic of narrow types"),
        Pass("text", text, "the end: what a builder builds and the emulator runs"),
    )
    return whole


def promises(text: KernelText) -> bool:
    """Whether a text takes more for granted than that elements are where their types need them."""
    facts = text.facts
    sizes = {p.name: max(8, DTYPES[p.dtype].bits) // 8 for p in facts.params if p.kind == "pointer"}
    return bool(facts.divides) or any(p.align > sizes[p.name] for p in facts.params if p.kind == "pointer")


def _promise(plan: Plan, ctx: Context) -> Plan:
    """Take for granted what arrays and sizes usually fulfil, unless this is the text for those that do not."""
    del ctx
    plan = plan.note("hidden", tuple(plan.program.symbols))
    return plan if "aligned" in plan.notes else plan.note("aligned", assume(plan.program.func.params))


def _conversions(plan: Plan, ctx: Context) -> Plan:
    del ctx
    return plan.replace(body=total_conversions(plan.body, TRUNCATIONS))


def _divisions(plan: Plan, ctx: Context) -> Plan:
    del ctx
    return plan.replace(body=total_divisions(plan.body))


def _wrap(plan: Plan, ctx: Context) -> Plan:
    del ctx
    return plan.replace(body=wrapping.hide(plan.body, plan.notes["params"]))


def _floats(plan: Plan, ctx: Context) -> Plan:
    conversions = FP8 if ctx.capabilities.fact(FP8_MMA) else PLAIN
    func = tirx.PrimFunc(list(plan.notes["params"]), widen_floats(plan.body, _HALF))
    func = legalize_floats(func, _NATIVE, conversions)
    return plan.replace(body=func.body).note("params", tuple(func.params))


_ = nodes
