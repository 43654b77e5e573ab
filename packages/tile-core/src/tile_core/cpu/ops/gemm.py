"""``cpu.gemm.packed``: products of scratch tiles through the register-blocked micro-kernel."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.attributes import INSIDE
from tile_core.cpu.dots import DOTS, Products, dot_of, tiles_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import micro_dots
from tile_core.cpu.micro_gemm import micro_gemm
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.cpu.micro_tiles import micro_tiles
from tile_core.cpu.tile2d import Tile2D
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.lowering.legality import Asked, Atom, Extent, Legality
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant
from tile_core.numerics.levels import FAST
from tile_core.numerics.regions import level_of_call
from tile_core.ops.base import View
from tile_core.ops.gemm_scaled import ELEMENTS
from tile_core.passes.guard import guarded

if TYPE_CHECKING:
    from tile_core.context import Context


#: Where tiles are; those in global memory need guards.
HELD = ("shared", "fragment")
#: Element types of operands and of results that dot products may have.
NARROW = tuple(sorted({*ELEMENTS, *(t for dot in DOTS for t in dot.types[:2])}))
ACCUMULATORS = ("float32", "bfloat16", "float16", "int32", "uint32")


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
        through = [views.pop(role).name for role in str(call.attrs.get(INSIDE, ""))]
        reason = refusal(ctx, views)
        if reason:
            return Reject(reason)
        note = f"{self.isa.name}, {self.isa.vector_bits}-bit vectors"
        if through:
            verb = "is" if len(through) == 1 else "are"
            note = f"{note}, {' and '.join(through)} {verb} read in place, without a copy"
        return Accept(note=note)

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the micro-kernel's loops."""
        a, b, c, clear = call.args
        trans_a, trans_b = bool(call.attrs[attributes.TRANSPOSE_A]), bool(call.attrs[attributes.TRANSPOSE_B])
        m, n, k = sizes(call)
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        product = micro_gemm(
            decoded(tile2d(a, trans_a)), decoded(tile2d(b, trans_b)), tile2d(c, False), m, n, k,
            isa=self.isa, clear=clear,
            stored_rows=_rows_around(b) if INSIDE in call.attrs else None,
        )  # fmt: skip
        return guarded(product) if INSIDE in call.attrs else product


class DotGemm(PackedGemm):
    """The same for narrow elements, by the dot-product instructions of the processor."""

    name = "cpu.gemm.dot"
    priority = 20
    instructions = "dot-product instruction"

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa)
        types = itertools.product(NARROW, NARROW, ACCUMULATORS)
        self.legality = Legality(
            operands=("A", "B", "C"),
            dtypes=frozenset(row for row in types if self.choose(isa, *row) is not None),
            atoms=(Atom({"M": Extent(1, FEW_ROWS + 1), "N": Extent(1, isa.lanes(32)), "K": 1}),),
        )

    @staticmethod
    def choose(isa: Isa, a: str, b: str, c: str, *, flush: bool = False) -> Products | None:
        """Return the instruction for three types of elements."""
        return dot_of(isa, a, b, c, flush=flush)

    @staticmethod
    def kernel(*args: Any, **options: Any) -> Stmt:
        """Return the product of three matrices."""
        return micro_dots(*args, **options)

    def asked(self, call: DecodedCall, ctx: Context) -> Asked:
        """State the sizes and types of the product."""
        m, n, k = sizes(call)
        views = dict(zip("ABC", call.args[:3], strict=True))
        return Asked(sizes={"M": m, "N": n, "K": k}, dtypes={role: v.dtype for role, v in views.items()})

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept products of types with an instruction, of operands that the packed kernel takes."""
        if not self.legality.dtypes:
            return Reject(f"{self.isa.mcpu} has no {self.instructions}")
        reasons = self.legality.check(self.asked(call, ctx), self.name)
        answer = Reject("; ".join(reasons)) if reasons else super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        products = self.choose(self.isa, *(v.dtype for v in call.args[:3]), flush=flushes(call, ctx))
        return Accept(note=f"{'' if products is None else products.note}, {answer.note}")

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the micro-kernel's loops."""
        a, b, c, clear = call.args
        trans_a, trans_b = bool(call.attrs[attributes.TRANSPOSE_A]), bool(call.attrs[attributes.TRANSPOSE_B])
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        product = self.kernel(
            decoded(tile2d(a, trans_a)), decoded(tile2d(b, trans_b)), tile2d(c, False), *sizes(call),
            isa=self.isa, clear=clear, flush=flushes(call, ctx),
        )  # fmt: skip
        return guarded(product) if INSIDE in call.attrs else product


class TileGemm(DotGemm):
    """The same by instructions that multiply tiles of both operands."""

    name = "cpu.gemm.tiles"
    priority = 30
    instructions = "tile instruction that this process may use"

    @staticmethod
    def choose(isa: Isa, a: str, b: str, c: str, *, flush: bool = False) -> Products | None:
        """Return the instruction for three types of elements."""
        return tiles_of(isa, a, b, c, flush=flush)

    @staticmethod
    def kernel(*args: Any, **options: Any) -> Stmt:
        """Return the product of three matrices."""
        return micro_tiles(*args, **options)


def flushes(call: DecodedCall, ctx: Context) -> bool:
    """Return whether a product may take subnormal numbers as zeros."""
    return level_of_call(call.attrs, ctx.options) == FAST


def sizes(call: DecodedCall) -> tuple[int, int, int]:
    """Return M, N and K of a product."""
    a, _, c = call.args[:3]
    m, n = c.extents[-2:]
    return m, n, a.extents[a.matrix_dims()[0 if bool(call.attrs[attributes.TRANSPOSE_A]) else 1]]


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
    """Return a matrix with columns in the last dimension as the micro-kernels take it."""
    mins, rows = view.mins, view.matrix_dims()[0]
    return Tile2D(
        view.buffer, mins[:rows], mins[rows], mins[-1], transposed, view.dtype, between=mins[rows + 1 : -1]
    )  # fmt: skip


def decoded(tile: Tile2D) -> Tile2D:
    """Read narrow floats as ``float32``."""
    if not DTYPES[tile.dtype].is_narrow:
        return tile
    return replace(tile, load=lambda i, j: tirx.Cast("float32", tirx.BufferLoad(tile.buffer, tile.at(i, j))))


def _rows_around(view: View) -> Expr | None:
    """Return the number of rows of a view's buffer if each continues beyond the view."""
    rows, columns = view.matrix_dims()
    whole = columns == rows + 1 and nodes.as_int(view.buffer.shape[columns]) == view.extents[columns]
    return None if whole else view.buffer.shape[rows]


def _inside(view: View) -> bool:
    shape = nodes.shape_of(view.buffer)
    return all(
        isinstance(low, int) and low >= 0 and low + e <= s
        for low, e, s in zip(view.mins[-2:], view.extents[-2:], shape[-2:], strict=True)
    )
