"""Operands of products whose copies to shared memory convert them to the instruction's type.

Several warps read an element of a shared operand, and each converts it if the instruction does not take its type, such
as a code of 8 bits. Where only copies of global memory write a tile, and only products read it, the copy converts, once
and by vectors::

    copy(A[m, k], x)    x: float8        copy(A[m, k], x)    x: float16
    gemm(x, y, c)                   ->   gemm(x, y, c)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.stage_limit import shared_bytes
from tile_core.simt.placement.register_operands import PRODUCT_DEMANDS, OperandUses, plan_of
from tile_core.simt.placement.variant_selection import call_of
from tile_core.simt.variant import Block, SimtCall

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.lowering.variant import Variant

__all__ = ["convert_operands"]

#: Positions of A and B among the operands of products.
_OPERANDS = {"gemm": (0, 1), "gemm_scaled": (0, 2)}
#: Attributes of a copy that demand an instruction or a rounding, or that it is asynchronous.
_DEMANDS = frozenset({"variant", attributes.ASYNC, attributes.ROUND})


def convert_operands(body: Stmt, variants: Sequence[Variant], block: Block, ctx: Context, kept: frozenset[str]) -> Stmt:
    """Return a program whose copies convert operands where a plan keeps another type, see ``ProductPlan.staged``.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    variants
        Of the target.
    block
        The block's threads.
    kept
        Names of buffers with a layout, or with values outside of their own.
    """
    uses = _CopiedOperands(block, kept)
    uses.stmt(body)
    converted = _Converted(uses)
    for buffer in uses.copied():
        dtype = _staged(buffer, uses, variants, ctx)
        if dtype is not None and dtype != uses.types[buffer]:
            converted.add(buffer, dtype)
    size = sum(shared_bytes(converted.buffers.get(b, b)) for b in uses.every)
    return converted.stmt(body) if converted.buffers and size <= ctx.capabilities.shared_bytes else body


class _CopiedOperands(OperandUses):
    """Collects the copies and products of shared buffers.

    A view of a whole buffer as another type of the same size counts as the buffer: copies move codes.
    """

    def __init__(self, block: Block, kept: frozenset[str]) -> None:
        super().__init__(block)
        self.kept, self.copies, self.every = kept, dict[BufferVar, list[View]](), list[BufferVar]()
        self.types: dict[BufferVar, str] = {}
        self.base: dict[BufferVar, BufferVar] = {}

    def copied(self) -> list[BufferVar]:
        """Return the buffers that only copies write, and only products read."""
        used = {self.base.get(b, b) for b in self.others | self.stored.keys()}
        return [b for b in self.allocated if b in self.products and b in self.copies and b not in used]

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        if nodes.scope_of(s.buffer) == "shared":
            self.every.append(s.buffer)
            self.types[s.buffer] = nodes.element_type(s.buffer)
        return super().visit_AllocBuffer(s)

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        of, view = collect(s.data, tirx.Var), s.buffer
        like = len(of) == 1 and of[0] in self.types and nodes.shape_of(of[0]) == nodes.shape_of(view)
        if not like or of[0] in self.base.values() or nodes.as_int(view.ty.elem_offset) != 0:
            return super().visit_DeclBuffer(s)
        kinds = nodes.element_type(of[0]), nodes.element_type(view)
        if DTYPES[kinds[0]].bits != DTYPES[kinds[1]].bits or len(view.strides):
            return super().visit_DeclBuffer(s)
        self.base[view], self.types[of[0]] = of[0], kinds[1]
        return s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s):
            return s
        call = call_of(s, self.block)
        for position, view in enumerate(call.args):
            if not isinstance(view, View):
                continue
            base = self.base.get(view.buffer, view.buffer)
            if position in _OPERANDS.get(call.name, ()) and not PRODUCT_DEMANDS & call.attrs.keys():
                self.products.setdefault(base, []).append(call)
            elif position == 1 and base is view.buffer and self.is_load(call):
                self.copies.setdefault(base, []).append(call.args[0])
            else:
                self.others.add(base)
        return s

    def is_load(self, call: SimtCall) -> bool:
        """Whether a call copies elements of global memory as they are."""
        if call.name != "copy" or _DEMANDS & call.attrs.keys() or not all(isinstance(a, View) for a in call.args):
            return False
        src, dst = call.args
        return src.scope == "global" and src.dtype == dst.dtype and not self.kept & {src.name, dst.name}


def _staged(buffer: BufferVar, uses: _CopiedOperands, variants: Sequence[Variant], ctx: Context) -> str | None:
    """Return the type that all products prefer for a buffer, or ``None``."""
    found: set[str | None] = set()
    for call in uses.products[buffer]:
        selected = plan_of(call, variants, ctx)
        if selected is None:
            return None
        plan = selected[1]
        for position in _OPERANDS[call.name]:
            a = call.args[position]
            if isinstance(a, View) and buffer.same_as(uses.base.get(a.buffer, a.buffer)):
                found.add(plan.staged(plan.problem.positions.index(position)))
    return found.pop() if len(found) == 1 else None


class _Converted(StmtRewriter):
    def __init__(self, uses: _CopiedOperands) -> None:
        self.uses, self.buffers = uses, dict[BufferVar, BufferVar]()
        #: By source and destination of a copy the source with the destination's type.
        self.sources: dict[tuple[BufferVar, BufferVar], BufferVar] = {}

    def add(self, buffer: BufferVar, dtype: str) -> None:
        """Convert a buffer and its view to a type."""
        new = tirx.decl_buffer(list(buffer.shape), dtype, buffer.name, scope="shared", layout=None)
        same = [buffer, *(view for view, base in self.uses.base.items() if base.same_as(buffer))]
        self.buffers |= dict.fromkeys(same, new)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.buffers.get(s.buffer)
        if new is None:
            return s
        views, kind = list[Stmt](), self.uses.types[s.buffer]
        for src in dict.fromkeys(v.buffer for v in self.uses.copies[s.buffer]):
            if nodes.element_type(src) != kind:
                view = self.sources[src, s.buffer] = _typed_view(src, kind)
                views.append(tirx.DeclBuffer(view, data=tirx.buffer_data(src)))
        return nodes.seq([tirx.AllocBuffer(new, dict(s.annotations or {}), s.span), *views])

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.buffers else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        used = set(collect(s, tirx.Var)).intersection(self.buffers) if is_op(s) else set()
        if not used:
            return s

        def region(r: ir.TensorRegion) -> ir.TensorRegion:
            new = mapping.get(r.source)
            return r if new is None else tirx.BufferRegion(new, list(r.region))

        mapping = dict(self.buffers)
        if nodes.is_tile_call(s.value, "copy"):
            mapping |= {src: new for (src, dst), new in self.sources.items() if dst in used}
        changed = tvm_ffi.structural_map(substitute(s, dict(mapping)), (ir.TensorRegion, region))
        call, attrs = changed.value, dict(changed.value.attrs.items())
        if attributes.TYPES in attrs:
            types = [str(t) for t in attrs[attributes.TYPES]]
            for position, a in enumerate(OpCall.decode(s).args):
                if isinstance(a, View) and a.buffer in self.buffers:
                    types[position] = nodes.element_type(self.buffers[a.buffer])
            attrs[attributes.TYPES] = types
        return tirx.Evaluate(ir.Call(call.op, list(call.args), attrs=attrs, ret_ty=call.ty, span=call.span), s.span)


def _typed_view(buffer: BufferVar, dtype: str) -> BufferVar:
    """Return a view of a whole buffer as another type of the same size."""
    return tirx.decl_buffer(
        list(buffer.shape), dtype, f"{buffer.name}_codes", tirx.buffer_data(buffer), list(buffer.strides) or None,
        scope=buffer.scope(), layout=None,
    )  # fmt: skip
