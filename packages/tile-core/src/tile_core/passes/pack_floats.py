"""Compute two adjacent 16-bit floats, in a word of 32 bits, by one instruction.

Loops over adjacent elements of arrays in registers are rewritten to two elements per iteration. The pass follows
``widen_floats``: an operation of float32 whose operands come from a 16-bit type and whose result is rounded to that
type is one operation of that type. Float32 has more than twice its digits, so that rounding twice is rounding once,
also of subnormal numbers::

    for v in 0 … 7: y[v] = bfloat16(float32(x[v]) + float32(z[v]))
    for q in 0 … 3: y_pairs[q] = add_bf16x2(x_pairs[q], z_pairs[q])

Other arithmetic of float32 is done for each of the two elements, and two results are rounded by one instruction. A
product and a sum are fused where the level of numerics permits it.
"""

from __future__ import annotations

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, distinct, loads_of
from tile_core.passes.packed_instructions import PackedFloats
from tile_core.passes.packed_integers import FLOAT4, NIBBLES, with_integers_inline
from tile_core.passes.packed_loop import PackedLoop

__all__ = ["PackedFloats", "pack_floats"]


def pack_floats(body: Stmt, packed: PackedFloats, fuses: bool) -> Stmt:
    """Return the statement with packed arithmetic in loops over adjacent elements.

    Parameters
    ----------
    body
        A program of one thread whose 16-bit floats are computed with in float32.
    packed
        The instructions of the target.
    fuses
        Whether a product and a sum may be rounded once.

    Returns
    -------
    Stmt
        ``body`` itself if no loop computes with 16-bit floats, or converts to them.
    """
    rewriter = _PackLoops(body, packed, fuses)
    new = rewriter.stmt(body) if rewriter.candidates else body
    if new.same_as(body):
        return body
    used = {x.source for x in collect(new, ir.TensorLoad)}.union(x.buffer for x in collect(new, tirx.BufferStore))
    return _DeclareViews({array: view for array, view in rewriter.views.items() if view in used}).stmt(new)


class _PackLoops(StmtRewriter):
    def __init__(self, body: Stmt, packed: PackedFloats, fuses: bool) -> None:
        self.packed, self.fuses, self.analyzer = packed, fuses, Analyzer()
        self.aliased = {v for s in collect(body, tirx.DeclBuffer) for v in collect(s.data, tirx.Var)}
        allocations = collect(body, tirx.AllocBuffer)
        self.private = {s.buffer for s in allocations if nodes.scope_of(s.buffer).startswith("local")} - self.aliased
        # Operands of instructions: in their registers until these complete, which words of two elements would hide.
        addresses = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "address")]
        operands = distinct([x.source for c in addresses for x in loads_of(c)])
        pairs = {*packed.join, *packed.decode, *packed.encode, *NIBBLES, FLOAT4}
        self.candidates = {
            s.buffer
            for s in allocations
            if s.buffer in self.private
            and s.buffer not in operands
            and nodes.element_type(s.buffer) in pairs
            and len(s.buffer.shape) == 1
            and isinstance(nodes.as_int(s.buffer.shape[0]), int)
            and int(s.buffer.shape[0]) % 2 == 0
            and attributes.UPDATED not in (s.annotations or {})
        }
        self.views: dict[BufferVar, BufferVar] = {}

    def is_private(self, buffer: BufferVar) -> bool:
        """Whether only its own name accesses the memory of an array in registers."""
        return buffer in self.private

    def view(self, buffer: BufferVar) -> BufferVar | None:
        """Return the view of an array whose elements are pairs; ``None`` if it has none."""
        if buffer not in self.candidates:
            return None
        if buffer not in self.views:
            kind = f"uint{2 * DTYPES[nodes.element_type(buffer)].bits}"
            self.views[buffer] = tirx.decl_buffer(
                [int(buffer.shape[0]) // 2], kind, f"{buffer.name}_pairs", data=tirx.buffer_data(buffer),
                scope=buffer.scope(), layout=None,
            )  # fmt: skip
        return self.views[buffer]

    def visit_For(self, s: Stmt) -> Stmt:
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        extent = nodes.as_int(s.extent)
        plain = s.kind in (tirx.ForKind.SERIAL, tirx.ForKind.UNROLLED) and s.step is None and nodes.as_int(s.min) == 0
        if plain and isinstance(extent, int) and extent >= 2 and extent % 2 == 0:
            new = PackedLoop(self, with_integers_inline(s)).rewritten()
            if new is not None:
                return new
        return super().visit_For(s)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.analyzer.bounded(s.var, s.value)
        return s


class _DeclareViews(StmtRewriter):
    def __init__(self, views: dict[BufferVar, BufferVar]) -> None:
        self.views = views

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        view = self.views.get(s.buffer)
        return s if view is None else nodes.seq([s, tirx.DeclBuffer(view, data=tirx.buffer_data(s.buffer))])
