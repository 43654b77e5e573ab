"""``cpu.gemm.packed``: products of scratch tiles through the register-blocked micro-kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import micro_gemm
from tile_core.cpu.read_through import INSIDE
from tile_core.cpu.tile2d import Tile2D
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant
from tile_core.ops.base import View
from tile_core.passes.guard import guarded

if TYPE_CHECKING:
    from tile_core.context import Context


#: Where tiles are; those in global memory need guards.
HELD = ("shared", "fragment")


class PackedGemm(Variant):
    """Matrices in the last two dimensions of scratch tiles, of every element type and size."""

    name = "cpu.gemm.packed"
    op = "gemm"
    priority = 10
    legality = Legality(scopes=dict.fromkeys("ABC", HELD))

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept scratch tiles; global operands need guards that vector code cannot have."""
        views = dict(zip("ABC", call.args[:3], strict=True))
        through = views.pop("B") if INSIDE in call.attrs else None
        reason = refusal(ctx, views)
        if reason:
            return Reject(reason)
        note = f"{self.isa.name}, {self.isa.vector_bits}-bit vectors"
        return Accept(note=note if through is None else f"{note}, {through.name} is read in place, without a copy")

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the micro-kernel's loops."""
        a, b, c, clear = call.args
        trans_a, trans_b = bool(call.attrs["transpose_A"]), bool(call.attrs["transpose_B"])
        m, n = c.extents[-2:]
        k = a.extents[-2] if trans_a else a.extents[-1]
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        narrow = any(DTYPES[v.dtype].is_narrow for v in (a, b))
        product = micro_gemm(
            tile2d(a, trans_a), tile2d(b, trans_b), tile2d(c, False), m, n, k,
            isa=self.isa, clear=clear, decode=_decode if narrow else None,
            stored_rows=_rows_around(b) if INSIDE in call.attrs and not trans_b else None,
        )  # fmt: skip
        return guarded(product) if INSIDE in call.attrs else product


def refusal(ctx: Context, views: dict[str, View]) -> str:
    """Return why register-blocked code cannot take these operands; empty if it can."""
    if ctx.options is not None and ctx.options.generic:
        return "the option generic requires plain loops"
    for role, view in views.items():
        last = len(view.extents)
        if view.matrix_dims() != (last - 2, last - 1):
            return f"{role} has its matrix in dimensions {view.matrix_dims()}, not in the last two"
        if view.scope == "global":
            return f"{role} is in global memory; copy it to shared memory first"
        if not _inside(view):
            return f"{role} may reach beyond its buffer"
    return ""


def tile2d(view: View, transposed: bool) -> Tile2D:
    """Return a matrix operand in the form that the micro-kernels take."""
    return Tile2D(view.buffer, tuple(view.mins[:-2]), view.mins[-2], view.mins[-1], transposed, view.dtype)


def _rows_around(view: View) -> Expr | None:
    """Return the number of rows of a view's buffer if each continues beyond the view."""
    whole = nodes.as_int(view.buffer.shape[-1]) == view.extents[-1]
    return None if whole else view.buffer.shape[-2]


def _decode(value: Expr) -> Expr:
    return tirx.Cast("float32", value) if DTYPES[nodes.dtype_of(value)].is_narrow else value


def _inside(view: View) -> bool:
    shape = nodes.shape_of(view.buffer)
    return all(
        isinstance(low, int) and low >= 0 and low + e <= s
        for low, e, s in zip(view.mins[-2:], view.extents[-2:], shape[-2:], strict=True)
    )
