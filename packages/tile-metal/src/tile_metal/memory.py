"""Drops the padding of rows when threadgroup memory is short.

These layouts only affect speed: a kernel that would not fit with them does without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.stage_limit import shared_bytes
from tile_metal.ops.plan import PADDED

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.layout.base import LayoutMap


def drop_padding(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Drop the padding that this backend requested if the shared-memory budget is exceeded.

    Buffers that share bytes are counted each: the arena is planned later.
    """
    placement = plan.placement.placement
    layouts = placement.layouts
    buffers = [a.buffer for a in collect(plan.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
    if sum(_held(b, layouts.get(b)) for b in buffers) <= ctx.capabilities.shared_bytes:
        return plan
    dense = {b: layout for b, layout in layouts.items() if getattr(layout, "note", "") != PADDED}
    return plan.replace(placement=replace(plan.placement, placement=replace(placement, layouts=dense)))


def _held(buffer: BufferVar, layout: LayoutMap | None) -> int:
    if layout is None:
        return shared_bytes(buffer)
    return int(layout.span) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8
