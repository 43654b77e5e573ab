"""Waits for products in flight: PTX ISA, "wgmma.wait_group", or a barrier for ``tcgen05``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import NAME, WAITS, Attrs
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.pipelining.async_products import PENDING, WAIT_USES
from tile_core.simt.pipelining.register_buffering import retired
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.gemm_tensor import added
from tile_cuda.ops.gemm_wgmma import PRODUCTS, keep
from tile_cuda.ptx.tensor import AFTER
from tile_cuda.ptx.wgmma import wait_name

if TYPE_CHECKING:
    from tile_core.context import Context


class _Wait(SimtVariant):
    """A wait, which passes if the products ran on other instructions."""

    op = WAIT_USES
    legality = Legality()

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept all."""
        return Accept()


class WarpgroupWait(_Wait):
    """A wait of the warpgroups that have issued products."""

    name = "cuda.wgmma.wait"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the wait, behind which the compiler leaves all accesses of the accumulator."""
        pending = int(nodes.as_int(call.attrs[PENDING]))
        arrays = [call.placement.arrays.get(a.buffer) for a in call.args if isinstance(a, View)]
        ended: Attrs = {} if pending else {WAITS: PRODUCTS}
        wait = nodes.tile_call("instruction", [], {NAME: wait_name(pending), **ended})
        kept = [s for a in arrays if a is not None for s in keep(a, nodes.shape_of(a)[0])]
        read = [retired(pending)] if call.placement.in_flight else []
        return nodes.seq([tirx.Evaluate(wait, call.span), *kept, *read])


class TensorWait(_Wait):
    """A wait of all threads for products with accumulators in tensor memory."""

    name = "cuda.tcgen05.wait"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the wait."""
        given, pending = added(call), int(nodes.as_int(call.attrs[PENDING]))
        if given is None:
            return nodes.seq([])
        ended: Attrs = {} if pending else {WAITS: PRODUCTS}
        after = tirx.Evaluate(nodes.tile_call("instruction", [], {NAME: AFTER, **ended}))
        return nodes.seq([given.wait(1 + pending), after])
