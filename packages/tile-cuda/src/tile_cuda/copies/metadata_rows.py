"""Metadata of sparse products with rows along K: conflict-free shared-memory layouts.

A warp reads eight elements of each of four rows at once.

Rows of a power of two of bytes put the four into the same banks of shared memory: four accesses instead of one, in the
memory that bounds sparse products on instructions of warpgroups. A bulk copy of such a tile permutes the chunks of its
rows, although it has fewer rows than the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.boxes import ACROSS

if TYPE_CHECKING:
    from tile_core.passes.spine import Plan


def permute_metadata(plan: Plan, products: Sequence[SimtCall]) -> Plan:
    """Mark copies of such metadata as read across rows.

    Parameters
    ----------
    products
        Products of the program on wgmma instructions.
    """
    tiles = {x.args[1].buffer for x in products if x.name == "gemm_sp" and bool(x.attrs["transpose_E"])}
    return plan.replace(body=_Across(tiles).stmt(plan.body)) if tiles else plan


class _Across(StmtRewriter):
    def __init__(self, tiles: set[BufferVar]) -> None:
        self.tiles = tiles

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        call = OpCall.decode(s) if is_op(s) else None
        if call is None or call.name != "copy" or call.args[1].buffer not in self.tiles:
            return s
        return with_attributes(s, {ACROSS: 1})
