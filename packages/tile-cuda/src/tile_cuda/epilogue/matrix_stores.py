"""Copies from accumulators to shared memory that use ``stmatrix`` (option ``stmatrix``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_cuda.epilogue.staged import results_of
from tile_cuda.ops.copy_matrix import MATRICES
from tile_cuda.target import STMATRIX

if TYPE_CHECKING:
    from tile_core.compat.types import BufferVar, Stmt
    from tile_core.context import Context
    from tile_core.passes.spine import Plan


def store_matrices(plan: Plan, ctx: Context, products: Sequence[BufferVar]) -> Plan:
    """Mark the copies from accumulators to shared memory that may use ``stmatrix``.

    Parameters
    ----------
    products
        Accumulator fragments of wgmma products; those of other products are found here.
    """
    if ctx.options.stmatrix != "always" or not ctx.capabilities.fact(STMATRIX):
        return plan
    accumulators = results_of(plan.body, products, every=True).accumulators
    return plan.replace(body=_MarkStores(accumulators).stmt(plan.body)) if accumulators else plan


class _MarkStores(StmtRewriter):
    def __init__(self, accumulators: Sequence[BufferVar]) -> None:
        self.accumulators = accumulators

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
            return s
        src, dst = OpCall.decode(s).args[:2]
        mine = any(src.buffer.same_as(b) for b in self.accumulators) and dst.scope == "shared"
        return with_attributes(s, {MATRICES: 1}) if mine and DTYPES[dst.dtype].bits == 16 else s
