"""``cuda.wgmma.exchanged``: products whose B is in registers, which wgmma takes of A only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.ir.attributes import EXCHANGED
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.gemm_wgmma import WarpgroupGemm
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.context import Context


class ExchangedGemm(WarpgroupGemm):
    """The transposed C as the product of B transposed, in registers, and A transposed.

    A row of an instruction is a column of C, so that a C of few rows fills the instruction too.
    """

    name = "cuda.wgmma.exchanged"
    priority = 19

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept what ``cuda.wgmma`` accepts with its parts exchanged."""
        if Problem.of(call).b.scope != "local.fragment":
            return Reject("B is not a fragment")
        return super().accepts(_exchanged(call), ctx)

    def of(self, call: SimtCall) -> WarpgroupPlan | Reject:
        """Return the plan of the exchanged product."""
        return self.plan(_exchanged(call))

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the fragments of the instruction, and the layouts of its descriptors."""
        return super().layouts(_exchanged(call), ctx)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the product for one thread."""
        return super().lower(_exchanged(call), ctx)


def _exchanged(call: SimtCall) -> SimtCall:
    return replace(call, attrs={**call.attrs, EXCHANGED: 1})
