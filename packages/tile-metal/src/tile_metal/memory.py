"""Programs that ask for more threadgroup memory than there is, in ways that do not change what they compute.

``num_stages`` and layouts are matters of speed. Where the buffers of a pipelined loop with a slot per stage would not
fit, there are fewer stages; where rows that lie further apart would not fit, they do not.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, replace_for, role
from tile_core.ops.base import View
from tile_core.passes.spine import Plan
from tile_core.simt.notes import PLACES
from tile_metal.ops.plan import PADDED

if TYPE_CHECKING:
    from tile_core.context import Context


def limit_stages(plan: Plan, ctx: Context) -> Plan:
    """Lower the number of stages of pipelined loops until their buffers fit."""
    allocated = {a.buffer for a in collect(plan.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"}
    rewriter = _Stages({b: _bytes(b) for b in allocated}, ctx.capabilities.shared_bytes)
    return plan.replace(body=rewriter.stmt(plan.body))


def drop_padding(plan: Plan, ctx: Context) -> Plan:
    """Take back the layouts that this backend asked for if all buffers together would not fit with them.

    Buffers that share bytes are counted each: the arena is planned later.
    """
    layouts = plan[PLACES].places.layouts
    buffers = [a.buffer for a in collect(plan.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
    if sum(_held(b, layouts.get(b)) for b in buffers) > ctx.capabilities.shared_bytes:
        for buffer in [b for b, layout in layouts.items() if getattr(layout, "note", "") == PADDED]:
            del layouts[buffer]
    return plan


class _Stages(StmtRewriter):
    def __init__(self, sizes: dict[Any, int], limit: int) -> None:
        self.sizes, self.limit = sizes, limit

    def visit_For(self, s: Any) -> Any:
        s = super().visit_For(s)
        stages = annotation(s, nodes.STAGES, 0) if role(s) == "pipelined" else 0
        if stages < 2:
            return s
        filled = self.filled(s.body)
        each = sum(self.sizes[b] for b in filled)
        rest = sum(self.sizes.values()) - each
        fits = max(1, (self.limit - rest) // each) if each else stages
        if fits >= stages:
            self.sizes |= {b: self.sizes[b] * stages for b in filled}
            return s
        self.sizes |= {b: self.sizes[b] * fits for b in filled}
        return replace_for(s, s.body, annotations={**dict(s.annotations), nodes.STAGES: nodes.int_const(fits)})

    def filled(self, body: Any) -> list[Any]:
        """Return the shared buffers that copies from device memory fill."""
        found = {}
        for s in collect(body, tirx.Evaluate):
            if nodes.is_tile_call(s.value, "copy"):
                source, target = (View.of(a) for a in s.value.args[:2])
                if source.scope == "global" and target.buffer in self.sizes:
                    found[target.buffer] = True
        return list(found)


def _bytes(buffer: Any) -> int:
    """Return the bytes of a shared buffer."""
    shape = nodes.shape_of(buffer)
    return prod(shape) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8 if _constant(shape) else 0


def _held(buffer: Any, layout: Any) -> int:
    if layout is None:
        return _bytes(buffer)
    return int(layout.span) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8


def _constant(shape: list[Any]) -> bool:
    return all(isinstance(n, int) for n in shape)
