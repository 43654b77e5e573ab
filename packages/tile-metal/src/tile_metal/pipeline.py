"""The Metal passes: the core's passes with limits on threadgroup memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.emit.tail import TextTarget, with_text
from tile_core.ir.attributes import COMPLETION
from tile_core.lowering.variant import Accept
from tile_core.passes.spine import Pass, Spine
from tile_core.simt.pipelining.plan import REGISTERS
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_metal.conversions import CONVERSIONS, PACKED, TRUNCATIONS
from tile_metal.memory import drop_padding
from tile_metal.ops.gemm import reads_rows
from tile_metal.rasterization import order_threadgroups
from tile_metal.target import TENSOR_OPS
from tile_metal.text import emit_plan

if TYPE_CHECKING:
    from tile_core.target import Target

_TEXT = TextTarget(emit_plan, TRUNCATIONS, rounds_integers=True, conversions=CONVERSIONS, packed=PACKED)
#: There are no asynchronous copies: one is a load and a store of each thread, which compute between them.
_THROUGH_REGISTERS = Accept(facts={COMPLETION: REGISTERS})


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    tensors = bool(target.capabilities.fact(TENSOR_OPS))
    passes = simt_spine(
        spine,
        SimtHooks(
            can_copy=lambda call, ctx, aligned: _THROUGH_REGISTERS,
            reads_directly=reads_rows if tensors else None,
        ),
    )
    why = "before loops over grids change; by the products of tiles"
    passes = passes.before("pipeline", Pass("order", order_threadgroups, why))
    passes = passes.before("lower", Pass("padding", drop_padding, "layouts are known but not used yet"))
    return with_text(passes, _TEXT)
