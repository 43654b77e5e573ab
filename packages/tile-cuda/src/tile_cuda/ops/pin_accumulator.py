"""``T.alloc_tmem``: accumulators with columns of tensor memory, or the rejection reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import PLACED, REFUSED
from tile_cuda.ops.accumulator_marks import must_stay
from tile_cuda.vocabulary.products import PIN_ACCUMULATOR, TENSOR_ACCUMULATOR

if TYPE_CHECKING:
    from tile_core.context import Context


class PinAccumulator(SimtVariant):
    """The demand, which `tile_cuda.accumulators.tensor_memory` has met or not."""

    name = TENSOR_ACCUMULATOR
    op = PIN_ACCUMULATOR
    legality = Legality()

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept accumulators with their own columns."""
        if PLACED in call.attrs:
            return Accept(note=str(call.attrs[PLACED]))
        how = 'T.tcgen05_gemm and its siblings do, and others with the option tcgen05="always"'
        none = f"no tcgen05 product accumulates into {call.args[0].name}: {how}"
        return Reject(str(call.attrs.get(REFUSED, none)))

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return a mark: products that found another way in the end leave its demand unmet."""
        own = call.placement.arrays.get(call.args[0].buffer)
        return nodes.seq([]) if own is None else must_stay(own, call.where)
