"""From a finished plan to the source of its kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tile_core.abi.kernel_text import KernelText
from tile_core.compat.tvm import ir
from tile_core.emit.kernel import Launch, launch_of, parameters_of
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.numerics.regions import text_level
from tile_core.simt.kernel_plan import KernelPlan
from tile_metal.emit.atomics import is_small
from tile_metal.emit.poison import poison_unknown_lanes
from tile_metal.emit.printer import MslPrinter

if TYPE_CHECKING:
    from tile_core.context import Context

_WORD = 4


def emit_plan(plan: KernelPlan, ctx: Context) -> KernelText:
    """Return the text of a plan whose passes have all run.

    Raises
    ------
    NotExpressible, TooManyBuffers
        If there is no text for something in the plan, or there are too many parameters.
    """
    options = dataclasses.replace(ctx.options, numerics=text_level(ctx.options, plan.program.attrs))
    launch = launch_of(plan, options.attributes())
    # Whole words: atomic updates of small elements exchange those.
    shared = -(-launch.shared_bytes // _WORD) * _WORD
    launch = dataclasses.replace(launch, shared_bytes=shared, align=_addresses(plan, launch.align))
    barriers = _orders_device(plan, launch)
    printer = MslPrinter(
        launch,
        numerics=options.numerics,
        line_info=options.line_info,
        device_barriers=barriers,
        approximate=ctx.options.is_fast,
    )
    return printer.kernel(plan.program.name, parameters_of(plan), poison_unknown_lanes(plan.body))


def _addresses(plan: KernelPlan, relied: Mapping[str, int]) -> dict[str, int]:
    """Return the alignments that the source assumes.

    They include words of which atomics update a part.
    """
    found = dict(relied)
    for call in collect(plan.body, ir.Call):
        if nodes.is_tile_call(call, "instruction") and is_small(str(call.attrs[attributes.NAME])):
            buffer = call.args[0].args[0].source
            if nodes.scope_of(buffer) == "global":
                found[str(buffer.name)] = max(_WORD, found.get(str(buffer.name), 0))
    return found


def _orders_device(plan: KernelPlan, launch: Launch) -> bool:
    """Whether a barrier has to order accesses of device memory.

    An inserted barrier records the accesses it orders; an explicit one may order any.
    """
    written = {name for name, kind in launch.access.items() if kind != "read"}
    if any(b.source in written or b.sink in written for b in plan.barriers):
        return True
    own = any(nodes.is_tile_call(c, "sync_threads") for c in collect(plan.program.func.body, ir.Call))
    return own and bool(written)
