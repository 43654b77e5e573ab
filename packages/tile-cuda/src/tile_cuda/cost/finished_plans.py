"""The estimate of a kernel's finished plan, with the instructions and stages that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.lowering.tilings import TilingEstimate
from tile_core.lowering.variant import Reject
from tile_core.tiling.workload import workload_of
from tile_cuda.cost.slow_tiles import compiled, loop_of
from tile_cuda.cost.tilings import CudaTilings, is_chain
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context


class CudaModel(CudaTilings):
    """Tile shapes, their estimates, and estimates of finished plans."""

    def estimate_plan(self, plan: Any, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a kernel's finished plan."""
        workload = workload_of(plan.program, {})
        if workload is None:
            return Reject("it has no matrix product")
        if plan.program.symbols:
            return Reject("its dimensions are not constants")
        if loop_of(plan) is None or not (len(workload.products) == 1 or is_chain(workload)):
            return Reject("its products are not one, or two chained ones, in one loop whose trip count is known")
        made = compiled(workload, plan, ctx) if ctx.capabilities.fact(WGMMA) else None
        return self.estimate(workload, ctx) if made is None else TilingEstimate(made.time, made.bound)
