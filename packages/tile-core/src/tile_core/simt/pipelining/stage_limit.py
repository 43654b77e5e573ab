"""Limit the stages of pipelined loops whose buffers would not fit into shared memory.

``num_stages`` only affects speed. A target with little shared memory puts this pass before ``pipeline``; one without it
refuses such a program and names the nearest number of stages.
"""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, replace_for, role
from tile_core.ops.base import View
from tile_core.passes.spine import Pass, Plan

if TYPE_CHECKING:
    from tile_core.context import Context


def limit_stages() -> Pass:
    """Return the pass that lowers the stages of pipelined loops until their buffers fit."""
    return Pass("stages", _limit, "before buffers get a slot per stage")


def shared_bytes(buffer: BufferVar) -> int:
    """Return a shared buffer's bytes in row-major order; 0 if its extents are not constants."""
    shape = nodes.shape_of(buffer)
    constant = all(isinstance(n, int) for n in shape)
    return prod(shape) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8 if constant else 0


def pipelined_bytes(body: Stmt) -> int:
    """Return the bytes of shared buffers, with the slots of pipelined loops."""
    allocated = {a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"}
    rewriter = _Stages({b: shared_bytes(b) for b in allocated}, sys.maxsize)
    rewriter.stmt(body)
    return sum(rewriter.sizes.values())


def _limit(plan: Plan, ctx: Context) -> Plan:
    allocated = {a.buffer for a in collect(plan.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"}
    rewriter = _Stages({b: shared_bytes(b) for b in allocated}, ctx.capabilities.shared_bytes)
    return plan.replace(body=rewriter.stmt(plan.body))


class _Stages(StmtRewriter):
    def __init__(self, sizes: dict[Any, int], limit: int) -> None:
        self.sizes, self.limit = sizes, limit

    def visit_For(self, s: Stmt) -> Stmt:
        s = super().visit_For(s)
        stages = annotation(s, attributes.NUM_STAGES, 0) if role(s) == "pipelined" else 0
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
        return replace_for(s, s.body, annotations={**dict(s.annotations), attributes.NUM_STAGES: nodes.int_const(fits)})

    def filled(self, body: Stmt) -> list[Any]:
        """Return the shared buffers that copies from device memory fill."""
        found = {}
        for s in collect(body, tirx.Evaluate):
            if nodes.is_tile_call(s.value, "copy"):
                source, target = (View.of(a) for a in s.value.args[:2])
                if source.scope == "global" and target.buffer in self.sizes:
                    found[target.buffer] = True
        return list(found)
