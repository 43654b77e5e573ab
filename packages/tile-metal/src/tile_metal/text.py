"""From a finished plan to the text of its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir, tirx
from tile_core.dtypes import DTYPES
from tile_core.emit.facts import KernelText, SharedArray
from tile_core.ir import nodes
from tile_core.ir.access import accesses
from tile_core.ir.visit import collect
from tile_core.ops.effects import effects
from tile_metal.emit import TextOptions, emit_kernel
from tile_metal.emit.atomics import is_small
from tile_metal.emit.kernel import Launch

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_WORD = 4


def emit_plan(plan: Plan, ctx: Context) -> KernelText:
    """Return the text of a plan whose passes have all run."""
    program, options = plan.program, ctx.options
    access = accesses(program.func.body, effects)
    relied, arena = plan.notes["relied"], plan.notes["arena"]
    hidden = tuple(program.symbols[name] for name in plan.notes["hidden"])
    kinds = {str(v.name): _access(v, access.get(str(v.name), "read")) for v in program.func.params}
    launch = Launch(
        grid=plan.notes["grid"].extents,
        block=plan.notes["block"].extents,
        access=kinds,
        shared_bytes=-(-arena.bytes // 16) * 16,
        shared=tuple(SharedArray(a.name, a.offset, a.bytes, a.dtype) for a in arena.arrays),
        align=_addresses(plan, {str(b.name): size for b, size in relied.addresses.items()}),
        divides={str(v.name): by for v, by in relied.divisors.items()},
        aliased=frozenset(p.name for p in program.params if p.kind == "pointer"),
        device_barriers=_orders_device(plan, kinds),
        attributes=options.attributes(),
        where=program.where,
    )
    params = (*plan.notes["params"], *hidden)
    how = TextOptions(fast_math=options.fast_math, line_info=options.line_info)
    return emit_kernel(program.name, params, plan.body, launch, how)


def _access(param: Any, found: str) -> str:
    """Return what is done with a parameter; to store one of two elements of a byte reads the other."""
    packed = tirx.is_buffer_var(param) and DTYPES[nodes.element_type(param)].is_packed
    return "readwrite" if packed and found == "write" else found


def _addresses(plan: Plan, relied: dict[str, int]) -> dict[str, int]:
    """Return the alignments that the text takes for granted: also those of words of which atomics update a part."""
    for call in collect(plan.body, ir.Call):
        if nodes.is_tile_call(call, "instruction") and is_small(str(call.attrs["name"])):
            buffer = call.args[0].args[0].source
            if nodes.scope_of(buffer) == "global":
                relied[str(buffer.name)] = max(_WORD, relied.get(str(buffer.name), 0))
    return relied


def _orders_device(plan: Plan, kinds: dict[str, str]) -> bool:
    """Whether a barrier has to order accesses of device memory.

    One that was placed says which accesses it orders; one that the user placed may stand for any.
    """
    written = {name for name, kind in kinds.items() if kind != "read"}
    if any(b.earlier in written or b.later in written for b in plan.notes["barriers"]):
        return True
    own = any(nodes.is_tile_call(c, "sync_threads") for c in collect(plan.program.func.body, ir.Call))
    return own and bool(written)
