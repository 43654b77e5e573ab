"""Promotion of 8-bit float accumulators to float32 at intervals along K (option ``promote``).

`wgmma` keeps 14 bits of an accumulator of 8-bit floats. Each instruction rounds to them, which loses most where all
terms have one sign. Over 128 of K little is lost; threads add such partial accumulators in float32, which costs time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_cuda.ops.warpgroup_plan import PROMOTE
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.compat.types import Stmt
    from tile_core.context import Context
    from tile_core.passes.spine import Plan


def promote_accumulators(plan: Plan, ctx: Context) -> Plan:
    """Mark the products of 8-bit floats whose accumulators the option ``promote`` applies to."""
    if not ctx.options.promote or not ctx.capabilities.fact(WGMMA):
        return plan
    return plan.replace(body=_MarkPromoted(ctx.options.promote).stmt(plan.body))


class _MarkPromoted(StmtRewriter):
    def __init__(self, along: int) -> None:
        self.along = along

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not any(nodes.is_tile_call(s.value, name) for name in ("gemm", "gemm_sp")):
            return s
        kind = DTYPES[OpCall.decode(s).args[0].dtype]
        return with_attributes(s, {PROMOTE: self.along}) if kind.is_float and kind.bits == 8 else s
