"""Variants along the contiguous dimension of a tile, with lanes of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.cpu.isa import Isa
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant
from tile_core.ops.reduce import accumulator

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ops.base import View


class LaneRows(Variant):
    """Ops along rows of two vectors and more; other dimensions vectorise across their lines already."""

    priority = 10

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept rows of at least two vectors."""
        src, dst = call.args
        if ctx.options is not None and ctx.options.generic:
            return Reject("the option generic requires plain loops")
        if int(call.attrs[attributes.DIM]) != len(src.extents) - 1:
            return Reject("the dimension is not the contiguous one")
        if (src.dtype, dst.dtype) not in self.legality.dtypes:
            results = {row[1] for row in self.legality.dtypes}
            return Reject(f"{src.dtype if dst.dtype in results else dst.dtype} has no vector form")
        lanes = self.lanes(src, dst)
        if src.extents[-1] < 2 * lanes:
            return Reject(f"rows of {src.extents[-1]} elements are shorter than two vectors of {lanes}")
        return Accept(note=f"{lanes} lanes")

    def lanes(self, src: View, dst: View) -> int:
        """Return the elements per vector."""
        widest = max(DTYPES[d].bits for d in (src.dtype, accumulator(dst.dtype)))
        return max(2, self.isa.vector_bits // widest)
