"""The wait for products in flight: PTX ISA, "wgmma.wait_group"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.pipelining.lasting import PENDING, WAIT_USES
from tile_core.simt.pipelining.register_sets import retired
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.gemm_wgmma import PRODUCTS, keep
from tile_cuda.ptx.wgmma import wait_name

if TYPE_CHECKING:
    from tile_core.context import Context


class WaitUses(SimtVariant):
    """A wait of the warpgroups that have issued products; if these ran on other instructions, it waits for nothing."""

    name = "cuda.wgmma.wait"
    op = WAIT_USES
    legality = Legality()

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept all."""
        return Accept()

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the wait, behind which the compiler leaves all accesses of the sums."""
        pending = int(nodes.as_int(call.attrs[PENDING]))
        arrays = [call.places.arrays.get(a.buffer) for a in call.args if isinstance(a, View)]
        ended = {} if pending else {"waits": PRODUCTS}
        wait = nodes.tile_call("instruction", [], {"name": wait_name(pending), **ended})
        kept = [s for a in arrays if a is not None for s in keep(a, nodes.shape_of(a)[0])]
        read = [retired(pending)] if call.places.in_flight else []
        return nodes.seq([tirx.Evaluate(wait, call.span), *kept, *read])
