"""Moves of accumulator subtiles between tensor memory and registers: one row per thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.layout import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.gemm_tensor import added
from tile_cuda.ops.tensor_plan import LANES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tile_core.context import Context

#: Ops that `tile_cuda.accumulators.subtiling` makes: operands are a part of the accumulator, and a fragment of its
#: shape.
READ, WRITE = "read_sums", "write_sums"


class ReadAccumulator(SimtVariant):
    """A move from tensor memory to registers."""

    name = "cuda.tcgen05.ld"
    op = READ
    legality = Legality()

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept all: whoever makes such an op has looked."""
        return Accept()

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return a row for each thread."""
        rows, columns = call.args[1].extents
        digits = ((Digit(LANES, 1, "thread"),), (Digit(columns, 1, "register"),))
        return {1: FragmentLayout((rows, columns), digits, LANES)}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the instructions for one thread, and the wait for them."""
        given, view, piece = added(call), call.args[0], call.args[1]
        assert given is not None
        *buffer, row, column = view.mins
        *_, height, width = map(int, nodes.shape_of(view.buffer))
        rows = tirx.floordiv(nodes.int_const(0) + row, nodes.int_const(LANES)) * nodes.int_const(width)
        rows = rows + buffer[0] * nodes.int_const(height // LANES * width) if buffer else rows
        own, new, thread = call.placement.arrays.get(piece.buffer), None, call.block.number
        if own is None:
            # Other code needs the subtile in shared memory.
            own, new = nodes.alloc([piece.extents[1]], piece.dtype, "sums", "local")
        there = (given.left if self.op == READ else given.entered)(own, thread, rows + column)
        if new is None:
            return nodes.seq(there)
        at = nodes.fresh("column")
        if self.op == READ:
            each = nodes.store(piece.buffer, nodes.load(own, [at]), [thread, at])
        else:
            each = nodes.store(own, nodes.load(piece.buffer, [thread, at]), [at])
        here = nodes.for_loop(at, piece.extents[1], each, "unroll")
        return nodes.seq([new, *([*there, here] if self.op == READ else [here, *there])])


class WriteAccumulator(ReadAccumulator):
    """A move from registers to tensor memory."""

    name = "cuda.tcgen05.st"
    op = WRITE
