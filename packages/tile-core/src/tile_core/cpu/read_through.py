"""Products that read operands from global memory, without a copy.

``T.copy(B[k0, n0], tile); T.gemm(a, tile, c)`` with few rows in ``a`` uses each element of the tile a few times, and
dot products pack both operands in any case, as other products do those that are transposed or converted. Writing
elements to scratch first costs as much as the product, or as the packing, and a tile of whole rows would be a copy of
the same memory. If nothing else uses the tile, the product reads the tensor directly where the whole region is in
bounds; at the edge the copy fills the tile as before. Where only the last iteration of a loop is at the edge, it
follows the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.attributes import INSIDE
from tile_core.cpu.dots import products_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.merge_steps import inside_of, merge_steps, uses
from tile_core.cpu.micro_dots_sp import fours_of, pairs_of
from tile_core.cpu.micro_gemm import few_rows
from tile_core.cpu.micro_rows import FEW_ROWS
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import TRANSPOSE_B, VARIANT
from tile_core.ir.visit import StmtRewriter, collect, replace_for, substitute
from tile_core.ops.base import COUNTED, OpCall, View, is_op
from tile_core.ops.effects import effects
from tile_core.ops.gemm import accumulator

#: Operands that a product may read in place, by the name of its op.
_OPERANDS = {"gemm": "AB", "gemm_sp": "AEB"}


def read_through(body: Stmt, layouts: Collection[str] = (), isa: Isa | None = None) -> Stmt:
    """Return the program with products that read their operands in place.

    Parameters
    ----------
    body
        A program.
    layouts
        Names of buffers with a layout of their own, which are left alone.
    isa
        The processor, for its dot products.
    """
    if not any(is_op(s) and OpCall.decode(s).name in _OPERANDS for s in collect(body, tirx.Evaluate)):
        return body
    uses = Counter(collect(body, tirx.Var))
    viewed = {v for d in collect(body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
    return merge_steps(_ReadThrough(uses, viewed, layouts, isa).stmt(body), isa)


class _ReadThrough(StmtRewriter):
    def __init__(self, uses: Counter[Var], viewed: set[Var], layouts: Collection[str], isa: Isa | None) -> None:
        self.uses = uses
        self.isa = isa
        self.viewed = viewed
        self.layouts = layouts
        self.analyzer = Analyzer()

    def visit_For(self, s: Stmt) -> Stmt:
        count = nodes.as_int(s.extent)
        new = self.loop(s, s.extent)
        if not isinstance(count, int) or count < 2 or not self.is_edge(new.body, s.loop_var):
            return new
        inner = self.loop(s, count - 1)
        if self.is_edge(inner.body, s.loop_var):
            return new
        last = substitute(s.body, {s.loop_var: s.min + nodes.int_const(count - 1, nodes.dtype_of(s.loop_var))})
        inner = replace_for(inner, inner.body, extent=nodes.int_const(count - 1, nodes.dtype_of(s.loop_var)))
        return nodes.seq([inner, last])

    def loop(self, s: Stmt, extent: Expr) -> Stmt:
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(s.min, extent), True)
        return super().visit_For(s)

    def is_edge(self, body: Stmt, var: Var) -> bool:
        """Whether a body reads operands in place if a condition on a variable holds."""
        return isinstance(body, tirx.IfThenElse) and inside_of(body.then_case) != "" and uses(body.condition, var)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        whole = super().visit_SeqStmt(s)
        steps: list[Stmt] = list(whole.seq)
        copies: dict[int, list[int]] = {}
        for at, copy in enumerate(steps):
            product = self.product_of(copy, steps[at + 1 :])
            if product is not None:
                copies.setdefault(at + 1 + product, []).append(at)
        for product, before in copies.items():
            steps[product] = self.merged([steps[at] for at in before], steps[product])
            for at in before:
                steps[at] = None
        return nodes.seq([step for step in steps if step is not None]) if copies else whole

    def product_of(self, copy: Stmt, after: list[Stmt]) -> int | None:
        """Return the product after a copy that alone uses its tile, as a statement's position."""
        if not is_op(copy) or str(copy.value.op.name) != "tile.copy":
            return None
        call = OpCall.decode(copy)
        if VARIANT in call.attrs or len(call.args) > COUNTED[call.name]:  # a copy that is to stay one
            return None
        src, tile = call.args
        if not self.fits(src, tile):
            return None
        for at, s in enumerate(after):
            if (
                _multiplies_few_rows(s, tile)
                or self.takes_words(s, tile)
                or self.takes_floats(s, src, tile)
                or self.takes_sparse(s, tile)
            ):
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
        return (
            whole
            and len(src.extents) >= 2
            and len(tile.extents) >= 2
            and _matrix(src) is not None
            and _matrix(src) == _matrix(tile)
            and (not strides or nodes.as_int(strides[-1]) == 1)
            and not DTYPES[src.dtype].is_packed
            and not any(collect(m, (ir.TensorLoad, ir.Call)) for m in src.mins if not isinstance(m, int))
        )

    def takes_words(self, s: Stmt, tile: View) -> bool:
        """Whether a statement is a product of a tile by dot products."""
        if self.isa is None or not _is_product(s):
            return False
        call = OpCall.decode(s)
        a, b, c = call.args[:3]
        alone = a.buffer.same_as(tile.buffer) != b.buffer.same_as(tile.buffer)
        operand = a if a.buffer.same_as(tile.buffer) else b
        large = c.extents[-2] > FEW_ROWS and c.extents[-1] >= self.isa.lanes(32)
        known = large and products_of(self.isa, a.dtype, b.dtype, c.dtype) is not None
        return alone and known and _is_whole(operand, tile, c) and VARIANT not in call.attrs

    def takes_floats(self, s: Stmt, src: View, tile: View) -> bool:
        """Whether a product packs a tile, or the tile repeats a tensor's memory."""
        if self.isa is None or not _is_product(s):
            return False
        call = OpCall.decode(s)
        a, b, c = call.args[:3]
        if a.buffer.same_as(b.buffer) or tile.buffer not in (a.buffer, b.buffer) or VARIANT in call.attrs:
            return False
        operand = a if a.buffer.same_as(tile.buffer) else b
        m, n = c.extents[-2:]
        if m <= FEW_ROWS or not _is_whole(operand, tile, c):
            return False
        if products_of(self.isa, a.dtype, b.dtype, c.dtype) is not None and n >= self.isa.lanes(32):
            return False
        converted = operand.dtype != accumulator(c.dtype)
        if operand is a:
            return converted
        rows, columns = src.matrix_dims()
        is_dense = columns == rows + 1 and nodes.as_int(src.buffer.shape[columns]) == src.extents[columns]
        packed = bool(call.attrs[TRANSPOSE_B]) and n > 1
        return packed or (m > few_rows(b.dtype, self.isa) if converted else is_dense)

    def takes_sparse(self, s: Stmt, tile: View) -> bool:
        """Whether a statement is a sparse product of a tile by dot products."""
        if self.isa is None or not is_op(s) or str(s.value.op.name) != "tile.gemm_sp":
            return False
        call = OpCall.decode(s)
        own = [x for x in call.args[:3] if x.buffer.same_as(tile.buffer)]
        found = pairs_of(self.isa, call) or fours_of(self.isa, call)
        known = VARIANT not in call.attrs and found is not None
        return known and len(own) == 1 and _is_whole(own[0], tile, call.args[3])

    def merged(self, copies: list[Stmt], product: Stmt) -> Stmt:
        """Return the product that reads tensors, and the copies and the product for the edge."""
        call, name = product.value, OpCall.decode(product).name
        args, roles, bounds = list(call.args), "", []
        for copy in copies:
            src, tile = OpCall.decode(copy).args
            at = next(i for i in range(len(_OPERANDS[name])) if View.of(args[i]).buffer.same_as(tile.buffer))
            args[at] = copy.value.args[0]
            roles += _OPERANDS[name][at]
            bounds += [b for d in range(len(src.extents)) for b in self.open_bounds(src, d)]
        inside = {**structural.entries(call.attrs), INSIDE: "".join(sorted(roles))}
        fast = tirx.Evaluate(nodes.tile_call(name, args, inside), product.span)
        if not bounds:
            return fast
        return tirx.IfThenElse(tirx.all(*bounds), fast, nodes.seq([*copies, product]), product.span)

    def open_bounds(self, src: View, d: int) -> list[Expr]:
        """Return the unproven ones of ``0 <= min`` and ``min + extent <= shape``."""
        low, size = src.mins[d], src.buffer.shape[d]
        low = nodes.int_const(low) if isinstance(low, int) else low
        if nodes.dtype_of(low) != nodes.dtype_of(size):
            low, size = nodes.cast(low, "int64"), nodes.cast(size, "int64")
        # Not ``low + extent <= size``, whose sum overflows 32 bits if a runtime number is far out of bounds.
        zero = nodes.int_const(0, nodes.dtype_of(low))
        return [c for c in (tirx.GE(low, zero), tirx.LE(low, size - src.extents[d])) if not self.analyzer.can_prove(c)]


def _matrix(view: View) -> tuple[int, int] | None:
    """Return the rows and columns of one matrix with adjacent columns; else ``None``."""
    rows, columns = view.matrix_dims()
    others = (e for d, e in enumerate(view.extents) if d not in (rows, columns))
    is_one = columns == len(view.extents) - 1 and all(e == 1 for e in others)
    return (view.extents[rows], view.extents[columns]) if is_one else None


def _is_product(s: Stmt) -> bool:
    return is_op(s) and str(s.value.op.name) == "tile.gemm"


def _multiplies_few_rows(s: Stmt, tile: View) -> bool:
    if not _is_product(s):
        return False
    call = OpCall.decode(s)
    a, b, c = call.args[:3]
    alone = b.buffer.same_as(tile.buffer) and not a.buffer.same_as(tile.buffer)
    return alone and c.extents[-2] <= FEW_ROWS and _is_whole(b, tile, c) and VARIANT not in call.attrs


def _is_whole(operand: View, tile: View, c: View) -> bool:
    """Whether an operand is a whole tile, and C's matrix in its last dimensions."""
    return c.matrix_dims() == (len(c.extents) - 2, len(c.extents) - 1) and operand.extents == tile.extents


def _may_write(s: Stmt, buffer: BufferVar) -> bool:
    """Whether a statement may change a tensor, or is opaque to this pass."""
    if is_op(s):
        known = str(s.value.op.name) in (
            "tile.copy",
            "tile.fill",
            "tile.gemm",
            "tile.gemm_sp",
            "tile.reduce",
            "tile.transpose",
        )
        return not known or any(v.buffer.same_as(buffer) for v in effects(s)[1])
    if collect(s, (tirx.Evaluate, tirx.While, tirx.AssertStmt, tirx.DeclBuffer)):
        return True
    if any(x.buffer.same_as(buffer) for x in collect(s, tirx.BufferStore)):
        return True
    return not all(map(_only_reads, collect(s, ir.Call)))


def _only_reads(call: Expr) -> bool:
    """Whether a call is a value, which writes nothing."""
    effect = call.op.get_attr("TCallEffectKind") if isinstance(call.op, ir.Op) else None
    return effect is not None and int(effect) <= tirx.CallEffectKind.ReadState.value
