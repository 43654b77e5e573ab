"""Metadata of sparse products with rows along K: conflict-free shared-memory layouts.

A warp reads eight elements of each of four rows at once.

Rows of a power of two of bytes put the four into the same banks of shared memory: four accesses instead of one, in the
memory that bounds sparse products on instructions of warpgroups. A bulk copy of such a tile permutes the chunks of its
rows, although it has fewer rows than the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.ir.attributes import TRANSPOSE_E
from tile_core.ir.visit import map_statements
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import ACROSS

if TYPE_CHECKING:
    from tile_core.simt.kernel_plan import KernelPlan


def permute_metadata(plan: KernelPlan, products: Sequence[SimtCall]) -> KernelPlan:
    """Mark copies of such metadata as read across rows.

    Parameters
    ----------
    products
        Products of the program on wgmma instructions.
    """
    tiles = {x.args[1].buffer for x in products if x.name == "gemm_sp" and bool(x.attrs[TRANSPOSE_E])}

    def across(s: Stmt) -> Stmt:
        call = OpCall.decode(s) if is_op(s) else None
        copies = call is not None and call.name == "copy" and call.args[1].buffer in tiles
        return with_attributes(s, {ACROSS: 1}) if copies else s

    return plan.replace(body=map_statements(plan.body, across)) if tiles else plan
