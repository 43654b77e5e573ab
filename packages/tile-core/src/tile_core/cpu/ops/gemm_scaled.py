"""``cpu.gemm_scaled.packed``: block-scaled products of scratch tiles by the kernels of ``T.gemm``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.dots import TILES, Products, dot_of, tiles_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import micro_dots
from tile_core.cpu.micro_gemm import micro_gemm
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.cpu.micro_scaled import ScaledOperand, ScaledProduct
from tile_core.cpu.micro_tiles import micro_tiles
from tile_core.cpu.ops.gemm import HELD, refusal, tile2d
from tile_core.ir import nodes
from tile_core.ir.attributes import BLOCK, TRANSPOSE_A, TRANSPOSE_B, TYPES
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant
from tile_core.ops.base import View
from tile_core.ops.gemm_scaled import element, is_packed
from tile_core.passes.guard import guarded

if TYPE_CHECKING:
    from tile_core.context import Context

_ROLES = ("A", "A_scale", "B", "B_scale", "C")
_BF16 = ("bfloat16", "bfloat16", "float32")
_POWERS = "float8_e8m0fnu"


class PackedGemmScaled(Variant):
    """Matrices in the last two dimensions of scratch tiles, of every format and size."""

    name = "cpu.gemm_scaled.packed"
    op = "gemm_scaled"
    priority = 10
    legality = Legality(scopes=dict.fromkeys("ABC", HELD))

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept scratch tiles, as for ``cpu.gemm.packed``."""
        reason = refusal(ctx, dict(zip(_ROLES, call.args[:5], strict=True)))
        if reason:
            return Reject(reason)
        found = self.products(call)
        return Accept(note=f"{self.isa.name} in float32" if found is None else f"{found.note}, bfloat16 elements")

    def products(self, call: DecodedCall) -> Products | None:
        """Return the instruction for the elements as bfloat16; ``None`` if float32 is multiplied."""
        m, n = call.args[4].extents[-2:]
        if m <= FEW_ROWS or n < self.isa.lanes(32):
            return None
        return tiles_of(self.isa, *_BF16, flush=True) or dot_of(self.isa, *_BF16, flush=True)

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the loops of the micro-kernel."""
        a, a_scale, b, b_scale, c, clear = call.args[:6]
        turned = bool(call.attrs[TRANSPOSE_A]), not bool(call.attrs[TRANSPOSE_B])
        formats = str(call.attrs[TYPES][0]), str(call.attrs[TYPES][2])
        k = a.extents[-2 if turned[0] else -1] * (2 if is_packed(a.dtype, formats[0]) and not turned[0] else 1)
        found = self.products(call)
        left, right = (
            _operand(x, s, flip, d) for x, s, flip, d in zip((a, b), (a_scale, b_scale), turned, formats, strict=True)
        )
        m, n = c.extents[-2:]
        product = ScaledProduct(
            left, right, tile2d(c, False), m, n, k, int(call.attrs[BLOCK]), self.isa, _kernel(found), found is not None
        )
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        # Tiles are whole: vectors of indices need no guards, which they could not have.
        return guarded(product.by_blocks(clear) if a_scale.dtype == _POWERS else product.whole(clear))


def _kernel(products: Products | None) -> Callable[..., Stmt]:
    """Return the product of two panels; of narrow floats none can be subnormal."""
    if products is None:
        return micro_gemm
    return functools.partial(micro_tiles if products.dot in TILES else micro_dots, flush=True)


def _operand(x: View, scales: View, turned: bool, dtype: str) -> ScaledOperand:
    """Return an operand whose elements and scales are read as ``float32``."""
    tile, factors = tile2d(x, turned), tile2d(scales, turned)

    def read(i: Expr, k: Expr) -> Expr:
        return element(x, turned, dtype, *(nodes.int_const(v) if isinstance(v, int) else v for v in (i, k)))

    def scale(i: Expr, at: Expr) -> Expr:
        return tirx.Cast("float32", tirx.BufferLoad(factors.buffer, factors.at(i, at)))

    return ScaledOperand(replace(tile, dtype="bfloat16", load=read), replace(factors, load=scale))
