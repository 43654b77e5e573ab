"""``cuda.mma.sp``: products with a 2:4 sparse A on the sparse matrix instructions of a warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.layout import LayoutMap
from tile_core.simt.ops.products.operand import Lane
from tile_cuda.ops.gemm_mma import MmaVariant
from tile_cuda.ops.metadata import MmaMetadata, swizzled
from tile_cuda.ops.plan import MmaPlan
from tile_cuda.ops.product import MmaProduct

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall


class MmaGemmSp(MmaVariant):
    """Sparse `mma.sp` products of any tile size, with metadata in shared memory."""

    name = "cuda.mma.sp"
    op = "gemm_sp"
    priority = 10
    sparse = True

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Add the swizzle of metadata with rows along K, for reads of four rows."""
        found = dict(super().layouts(call, ctx))
        view = call.args[1]
        if call.attrs[attributes.TRANSPOSE_E] and view.buffer not in call.placement.layouts:
            layout = swizzled(tuple(nodes.shape_of(view.buffer)), DTYPES[view.dtype].bits)
            if layout is not None:
                found[1] = layout
        return found

    def statement(self, plan: MmaPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""

        def metadata(lane: Lane, first: Var) -> MmaMetadata:
            view, turned = call.args[1], bool(call.attrs[attributes.TRANSPOSE_E])
            return MmaMetadata(plan, view, turned, lane, first, call.ranges, call.placement.layouts.get(view.buffer))

        return MmaProduct(plan, call, metadata).statement()
