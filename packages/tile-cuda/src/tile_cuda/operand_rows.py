"""Rows of tiles that bulk copies fill and instructions of warpgroups read: neither may be longer than the other's.

A bulk copy permutes the chunks of rows of 128 bytes where it can. An instruction whose columns begin or end within such
a row cannot read it: those of two warpgroups that share 192 columns of 16 bits begin at 96, in the middle of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.boxes import LINE, MOST_ROW
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.passes.spine import Plan


def bound_rows(plan: Plan, products: Sequence[SimtCall]) -> Plan:
    """Tell copies into operands of products how long the rows are that their instructions read, where that is short.

    Parameters
    ----------
    products
        Those of the program that run on instructions of warpgroups.
    """
    most: dict[BufferVar, int] = {}
    for call in products:
        found = WarpgroupPlan.of(call, call.name == "gemm_sp")
        for role in (0, 1) if found is not None else ():
            assert found is not None
            if found.shared(role):
                buffer = found.view(role).buffer
                most[buffer] = min(most.get(buffer, LINE), found.swizzle(role) or LINE)
    short = {buffer: row for buffer, row in most.items() if row < LINE}
    return plan.replace(body=_BoundRows(short).stmt(plan.body)) if short else plan


class _BoundRows(StmtRewriter):
    def __init__(self, rows: dict[BufferVar, int]) -> None:
        self.rows = rows

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        call = OpCall.decode(s) if is_op(s) else None
        if call is None or call.name != "copy":
            return s
        row = self.rows.get(call.args[1].buffer)
        return s if row is None else with_attributes(s, {MOST_ROW: row})
