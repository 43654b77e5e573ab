"""The last passes of targets with texts: from the per-thread program to ``KernelText``.

A text may make assumptions that most calls satisfy: addresses aligned to vectors, sizes divisible by vectors. Such a
kernel has a second, *general* text, made when the first call needs it, and where it can assume less in several steps, a
third one. Assumptions on which demanded instructions rely stay in all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.abi.kernel_text import KernelText
from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.errors.lowering import VariantRefused
from tile_core.ir import nodes
from tile_core.numerics.levels import STRICT, level_of
from tile_core.passes import scalars
from tile_core.passes.join_branches import join_branches
from tile_core.passes.legalize_floats import Conversions, legalize_floats
from tile_core.passes.legalize_math import legalize_math
from tile_core.passes.pack_floats import PackedFloats, pack_floats
from tile_core.passes.share import share
from tile_core.passes.spine import Pass, Plan, Spine
from tile_core.passes.widen_floats import widen_floats
from tile_core.records import dataclass
from tile_core.simt.barrier_proof.check import check_emitted
from tile_core.simt.barrier_proof.instructions import AsyncInstructions
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.launch_assumptions import demanded, given_symbols, levels

if TYPE_CHECKING:
    from tile_core.context import Context

#: Types for which the core need not expand conversions to integers.
_WHOLE_BYTES = frozenset(n for n, d in DTYPES.items() if not d.is_narrow and d.bits >= 8) | {"bool"}


@dataclass(frozen=True)
class TextTarget:
    """The tail's parameters of a target.

    Attributes
    ----------
    emit
        Prints a fully lowered plan.
    truncations
        Pairs (float type, integer type) for which the text prints ``tile.float_truncate``; the others are expanded.
    widened
        Float types that are loaded, stored and converted, and computed with in float32.
    rounds_integers
        Whether integers are converted to ``widened`` types with one rounding by the text's own conversion.
    native
        Types that texts load and store; the others become codes in integers of their size.
    conversions
        The conversions of codes that the text has; the others are expanded.
    elementary
        Whether the text has elementary functions of floats, and the larger and smaller of two, with the language's
        results; otherwise they are expanded to arithmetic of float32.
    packed
        Instructions that compute with two 16-bit floats.
    instructions
        Asynchronous instructions, for the proof of the barriers in emitted kernels.
    """

    emit: Callable[[KernelPlan, Context], KernelText]
    truncations: frozenset[tuple[str, str]] = frozenset()
    widened: frozenset[str] = frozenset({"float16", "bfloat16"})
    rounds_integers: bool = False
    native: frozenset[str] = _WHOLE_BYTES
    conversions: Conversions | None = None
    elementary: bool = True
    packed: PackedFloats | None = None
    instructions: AsyncInstructions = AsyncInstructions()


def with_text(passes: Spine, target: TextTarget) -> Spine:
    """Return passes for threads (``simt_spine``) followed by those that make the text.

    The plan then has ``lowered``, a ``KernelText``, and ``source``, its text.

    Parameters
    ----------
    passes
        The passes up to the per-thread program.
    target
        The target's parameters.
    """

    # Errors in the backend's printer are attributed to the backend: the pass has its name.
    @functools.wraps(target.emit)
    def text(plan: KernelPlan, ctx: Context) -> KernelPlan:
        found = target.emit(_with_given_symbols(plan), ctx)
        if plan.aligned != Aligned() and _promises(found):
            func = plan.program.func
            tried = levels(func.params)
            weaker = (*tried[1:], Aligned(), demanded(func.body, tried[-1]))
            found = replace(found, general=functools.cache(functools.partial(again, plan, found, ctx, weaker)))
        return plan.replace(lowered=found, source=found.text)

    def again(plan: KernelPlan, first: KernelText, ctx: Context, weaker: Sequence[Aligned]) -> KernelText | None:
        """Return the text of the first assumption that changes it.

        Its own general text has the assumptions after it.
        """
        for n, fewer in enumerate(weaker):
            if fewer == plan.aligned:
                continue
            # As written: whether its blocks are clusters depends on what copies may assume.
            plain = KernelPlan.extending(Plan.of(plan.written or plan.program, plan.variants), aligned=fewer)
            try:
                made: KernelText = whole.run(plain, ctx).lowered
            except VariantRefused:
                continue  # the program demands an instruction that relies on what is not assumed
            if made.facts == first.facts:
                continue
            rest = functools.partial(again, plan, made, ctx, weaker[n + 1 :])
            return replace(made, general=functools.cache(rest) if weaker[n + 1 :] and fewer != Aligned() else None)
        return None

    whole = passes.then(
        Pass("scalars", _scalars(target), "the text converts narrow types; what all passes repeat is computed once"),
        Pass("proof", _proof(target), "on the kernel that is printed"),
        Pass("text", text, "the end: what a runtime compiles and the emulator runs"),
    )
    return whole


def _promises(text: KernelText) -> bool:
    """Whether a text assumes more than the natural alignment of elements."""
    facts = text.facts
    sizes = {p.name: max(8, DTYPES[p.dtype].bits) // 8 for p in facts.params if p.kind == "pointer"}
    return bool(facts.divides) or any(p.align > sizes[p.name] for p in facts.params if p.kind == "pointer")


def _with_given_symbols(plan: KernelPlan) -> KernelPlan:
    """Return the plan with symbols that are parameters, too, bound to these."""
    symbols = plan.program.symbols
    binds = [
        tirx.Bind(symbols[name], nodes.cast(var, nodes.dtype_of(symbols[name])))
        for name, var in given_symbols(plan.params, symbols).items()
    ]
    return plan.replace(body=nodes.seq([*binds, plan.body])) if binds else plan


def _proof(target: TextTarget) -> Callable[[KernelPlan, Context], KernelPlan]:
    def run(plan: KernelPlan, ctx: Context) -> KernelPlan:
        return plan.replace(uncovered=check_emitted(plan, target.instructions))

    return run


def _scalars(target: TextTarget) -> Callable[[KernelPlan, Context], KernelPlan]:
    def run(plan: KernelPlan, ctx: Context) -> KernelPlan:
        body = scalars.defined(plan, target.truncations, extremes=not target.elementary, flushed=True)
        body = widen_floats(body, target.widened, rounds_integers=target.rounds_integers)
        if target.packed is not None:
            body = pack_floats(body, target.packed, fuses=ctx.options.numerics != STRICT)
        func = tirx.PrimFunc(list(plan.params), body)
        func = legalize_floats(func, target.native, target.conversions)
        body = func.body
        if not target.elementary:  # expressions are of float32 now
            body = legalize_math(tirx.PrimFunc(list(func.params), body), rounded={}, level=level_of(ctx.options)).body
        return plan.replace(body=join_branches(share(body)), params=tuple(func.params))

    return run
