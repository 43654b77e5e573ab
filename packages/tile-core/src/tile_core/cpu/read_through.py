"""Products of a few rows that read B from global memory, without a copy.

``T.copy(B[k0, n0], tile); T.gemm(a, tile, c)`` with few rows in ``a`` uses each element of the tile a few times.
Writing it to scratch first costs as much as the product. If nothing else uses the tile, the product reads the tensor
directly where the whole region is in bounds; at the edge the copy fills the tile as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.ops.base import COUNTED, OpCall, View, is_op
from tile_core.ops.effects import effects

#: Attribute of a product whose B is an in-bounds region of a tensor.
INSIDE = "inside"


def read_through(body: Stmt, layouts: Collection[str] = ()) -> Stmt:
    """Return the program with products that read their B in place.

    Parameters
    ----------
    body
        A program.
    layouts
        Names of buffers with a layout of their own, which are left alone.
    """
    if not any(is_op(s) and str(s.value.op.name) == "tile.gemm" for s in collect(body, tirx.Evaluate)):
        return body
    uses = Counter(collect(body, tirx.Var))
    viewed = {v for d in collect(body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
    return _ReadThrough(uses, viewed, layouts).stmt(body)


class _ReadThrough(StmtRewriter):
    def __init__(self, uses: Counter[Var], viewed: set[Var], layouts: Collection[str]) -> None:
        self.uses = uses
        self.viewed = viewed
        self.layouts = layouts
        self.analyzer = Analyzer()

    def visit_For(self, s: Stmt) -> Stmt:
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        return super().visit_For(s)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        whole = super().visit_SeqStmt(s)
        steps: list[Stmt] = list(whole.seq)
        for at, copy in enumerate(steps):
            product = self.product_of(copy, steps[at + 1 :])
            if product is not None:
                steps[at], steps[at + 1 + product] = None, self.merged(copy, steps[at + 1 + product])
        return nodes.seq(steps) if None in steps else whole

    def product_of(self, copy: Stmt, after: list[Stmt]) -> int | None:
        """Return the product after a copy that alone uses its tile, as a statement's position."""
        if not is_op(copy) or str(copy.value.op.name) != "tile.copy":
            return None
        call = OpCall.decode(copy)
        if "variant" in call.attrs or len(call.args) > COUNTED[call.name]:  # a copy that is to stay one
            return None
        src, tile = call.args
        if not self.fits(src, tile):
            return None
        for at, s in enumerate(after):
            if s is None:
                continue
            if _multiplies_few_rows(s, tile):
                return at
            if _may_write(s, src.buffer):
                return None
        return None

    def fits(self, src: View, tile: View) -> bool:
        """Whether vectors can read the region, and the tile holds nothing else."""
        if src.scope != "global" or tile.scope not in ("shared", "local.fragment") or src.dtype != tile.dtype:
            return False
        if {src.buffer, tile.buffer} & self.viewed or {src.name, tile.name} & set(self.layouts):
            return False
        if self.uses[tile.buffer] != 3:  # its allocation, the copy and the product
            return False
        whole = all(nodes.as_int(m) == 0 for m in tile.mins) and list(tile.extents) == nodes.shape_of(tile.buffer)
        strides = list(src.buffer.ty.strides or [])
        rows = src.extents[:-2] + tile.extents[:-2]
        return (
            whole
            and len(src.extents) >= 2
            and len(tile.extents) >= 2
            and src.extents[-2:] == tile.extents[-2:]
            and all(e == 1 for e in rows)
            and (not strides or nodes.as_int(strides[-1]) == 1)
            and not DTYPES[src.dtype].is_packed
            and not any(collect(m, (ir.TensorLoad, ir.Call)) for m in src.mins if not isinstance(m, int))
        )

    def merged(self, copy: Stmt, product: Stmt) -> Stmt:
        """Return the product that reads the tensor, and the copy and product for the edge."""
        src, _ = OpCall.decode(copy).args
        call = product.value
        direct = nodes.tile_call(
            "gemm",
            [call.args[0], copy.value.args[0], *list(call.args)[2:]],
            {**{str(k): v for k, v in dict(call.attrs).items()}, INSIDE: True},
        )
        fast = tirx.Evaluate(direct, product.span)
        bounds = [b for d in range(len(src.extents)) for b in self.open_bounds(src, d)]
        if not bounds:
            return fast
        return tirx.IfThenElse(tirx.all(*bounds), fast, nodes.seq([copy, product]), product.span)

    def open_bounds(self, src: View, d: int) -> list[Expr]:
        """Return the unproven ones of ``0 <= min`` and ``min + extent <= shape``."""
        low, size = src.mins[d], src.buffer.shape[d]
        low = nodes.int_const(low) if isinstance(low, int) else low
        if nodes.dtype_of(low) != nodes.dtype_of(size):
            low, size = nodes.cast(low, "int64"), nodes.cast(size, "int64")
        # Not ``low + extent <= size``, whose sum overflows 32 bits if a runtime number is far out of bounds.
        zero = nodes.int_const(0, nodes.dtype_of(low))
        return [c for c in (tirx.GE(low, zero), tirx.LE(low, size - src.extents[d])) if not self.analyzer.can_prove(c)]


def _multiplies_few_rows(s: Stmt, tile: View) -> bool:
    if not is_op(s) or str(s.value.op.name) != "tile.gemm":
        return False
    call = OpCall.decode(s)
    a, b, c = call.args[:3]
    alone = b.buffer.same_as(tile.buffer) and not a.buffer.same_as(tile.buffer)
    rows = c.matrix_dims() == (len(c.extents) - 2, len(c.extents) - 1) and c.extents[-2] <= FEW_ROWS
    return alone and rows and b.extents == tile.extents and "variant" not in call.attrs


def _may_write(s: Stmt, buffer: BufferVar) -> bool:
    """Whether a statement may change a tensor, or is opaque to this pass."""
    if is_op(s):
        known = str(s.value.op.name) in ("tile.copy", "tile.fill", "tile.gemm", "tile.reduce", "tile.transpose")
        return not known or any(v.buffer.same_as(buffer) for v in effects(s)[1])
    if isinstance(s, tirx.Bind):
        return bool(collect(s.value, ir.Call))
    return not isinstance(s, tirx.AllocBuffer)
