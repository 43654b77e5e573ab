"""Operands of products that threads compute, in registers instead of shared memory.

A program that converts an operand between its copy and the product, as of quantized weights, writes it to shared
memory, from where the product reads it again. Where the instruction takes the operand from registers, each thread
computes the elements that it passes to the instruction: no store, no barrier, and no load.

A shared buffer qualifies if loops over all its elements write it, and only products of the same threads read it. Loops
that read an element of global memory for each keep it there: the order in which threads compute elements for an
instruction is not the order of memory. It remains shared if threads would compute elements more than once, if the
product would need a slower instruction, or if warps would read the other operand more often than that saves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, loads_of, role, substitute
from tile_core.lowering.dispatch import select
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.passes.lower_ops import requires_order
from tile_core.simt.ops.products.instruction import OperandKind
from tile_core.simt.ops.products.plan import ProductPlan
from tile_core.simt.ops.products.variant import MatrixVariant
from tile_core.simt.placement.variant_selection import call_of
from tile_core.simt.role_threads import block_in, is_shared
from tile_core.simt.variant import Block, SimtCall

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.lowering.variant import Variant

__all__ = ["operands_in_registers"]

#: Registers of a thread, of 32 bits, that an operand may take.
_MOST = 64
PRODUCT_DEMANDS = frozenset({"variant", attributes.COMPLETES})
"""Attributes of a product that demand an instruction, or a barrier that it completes."""
#: Elements along a dimension that share one, such as a scale, at least.
_GROUP = 8


def operands_in_registers(
    body: Stmt, variants: Sequence[Variant], block: Block, ctx: Context, kept: frozenset[str]
) -> Stmt:
    """Return a program whose computed operands of products are fragments where that is faster.

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
    uses = OperandUses(block)
    uses.stmt(body)
    chosen = [b for b in uses.computed() if str(b.name) not in kept and _is_better(b, uses.products[b], variants, ctx)]
    return _InRegisters({b: _fragment(b) for b in chosen}).stmt(body) if chosen else body


class OperandUses(StmtRewriter):
    """Collects the stores and products of shared buffers."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.products: dict[BufferVar, list[SimtCall]] = {}
        self.allocated: list[BufferVar] = []
        self.stored: dict[BufferVar, Block] = {}
        self.others: set[BufferVar] = set()
        self.nest: list[Stmt] = []

    def computed(self) -> list[BufferVar]:
        """Return the buffers that loops over all elements write, and products read."""
        found = [b for b in self.allocated if b in self.products and b in self.stored and b not in self.others]
        return [b for b in found if all(_same_threads(c.block, self.stored[b]) for c in self.products[b])]

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        if nodes.scope_of(s.buffer) == "shared" and all(isinstance(n, int) for n in nodes.shape_of(s.buffer)):
            self.allocated.append(s.buffer)
        return s

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        self.others.update(collect(s.data, tirx.Var))
        return s

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer, self.block = self.block, block_in(s, self.block) if is_shared(s) else self.block
        new = super().visit_AttrStmt(s)
        self.block = outer
        return new

    def visit_For(self, s: Stmt) -> Stmt:
        parallel = role(s) == "parallel"
        outer, self.nest = self.nest, [*self.nest, s] if parallel else []
        new = super().visit_For(s)
        self.nest = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer, self.nest = self.nest, []
        new = super().visit_IfThenElse(s)
        self.nest = outer
        return new

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        covers = len(self.nest) == len(s.indices) and all(map(_covers, self.nest, s.indices, nodes.shape_of(s.buffer)))
        if covers and not any(_is_dense(load, self.nest) for load in loads_of(s.value)):
            if not _same_threads(self.stored.setdefault(s.buffer, self.block), self.block):
                self.others.add(s.buffer)
        else:
            self.others.add(s.buffer)
        return super().visit_BufferStore(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        call = call_of(s, self.block) if is_op(s) else None
        views = [a for a in call.args if isinstance(a, View)] if call is not None else []
        operands = (
            views[:2] if call is not None and call.name == "gemm" and not PRODUCT_DEMANDS & call.attrs.keys() else []
        )
        for view in views:
            whole = list(view.extents) == nodes.shape_of(view.buffer)
            if call is not None and view in operands and whole and views.count(view) == 1:
                self.products.setdefault(view.buffer, []).append(call)
            else:
                self.others.add(view.buffer)
        return super().visit_Evaluate(s)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.is_tile_call(s.value):
            self.others.update(a.buffer for a in OpCall.decode(s).args if isinstance(a, View))
        return super().visit_Bind(s)

    def expr(self, e: Any) -> Any:
        self.others.update(load.source for load in loads_of(e))
        return e


def _same_threads(a: Block, b: Block) -> bool:
    return (a.first, a.begins, a.count) == (b.first, b.begins, b.count)


def _covers(loop: Stmt, index: Any, extent: Any) -> bool:
    """Whether a loop visits each index of a dimension once."""
    same = isinstance(index, tirx.Var) and index.same_as(loop.loop_var)
    return same and nodes.as_int(loop.min) == 0 and nodes.as_int(loop.extent) == extent


def _is_dense(load: Expr, nest: Sequence[Stmt]) -> bool:
    """Whether iterations of all loops of a nest load different elements of global memory."""
    if nodes.scope_of(load.source) != "global":
        return False
    found: set[Any] = set()
    for index in load.indices:
        groups = [d.a for d in collect(index, tirx.FloorDiv) if isinstance(d.b, tirx.IntImm) and int(d.b) >= _GROUP]
        hidden = {v for a in groups for v in collect(a, tirx.Var)}
        found |= set(collect(index, tirx.Var)) - hidden
    return all(loop.loop_var in found for loop in nest)


def _is_better(buffer: BufferVar, calls: Sequence[SimtCall], variants: Sequence[Variant], ctx: Context) -> bool:
    """Whether all products of an operand are better off if it is in registers."""
    return all(_is_better_for(buffer, call, variants, ctx) for call in calls)


def _is_better_for(buffer: BufferVar, call: SimtCall, variants: Sequence[Variant], ctx: Context) -> bool:
    held = View(_fragment(buffer), *_region(buffer))
    args = tuple(held if isinstance(a, View) and a.buffer.same_as(buffer) else a for a in call.args)
    shared, registers = (plan_of(c, variants, ctx) for c in (call, replace(call, args=args)))
    if shared is None or registers is None:
        return False
    if registers[0].group != shared[0].group and registers[0].priority < shared[0].priority:
        return False
    before, after = shared[1], registers[1]
    position = next(i for i, a in enumerate(args) if a is held)
    operand = after.problem.positions.index(position)
    if after.instruction.operands[operand].kind is not OperandKind.REGISTERS:
        return False
    fragment = after.fragment(operand)
    if fragment.replica or fragment.registers * DTYPES[nodes.element_type(buffer)].bits > 32 * _MOST:
        return False
    other = next(a for i, a in enumerate(call.args[:2]) if i != position)
    saved = _bytes(buffer) * (1 + _readers(before, position))
    return _bytes(other.buffer) * (_readers(after, 1 - position) - _readers(before, 1 - position)) <= saved


def plan_of(call: SimtCall, variants: Sequence[Variant], ctx: Context) -> tuple[MatrixVariant, ProductPlan] | None:
    """Return the variant for a product and its plan; ``None`` without matrix instructions."""
    try:
        variant = select(call, variants, ctx, None, in_order=requires_order(call, ctx)).variant
    except TileError:
        return None
    if not isinstance(variant, MatrixVariant):
        return None
    plan = variant.of(call)
    return None if isinstance(plan, Reject) else (variant, plan)


def _readers(plan: ProductPlan, position: int) -> int:
    """Return how many groups of threads read each element of an operand from shared memory."""
    operand = plan.problem.positions.index(position)
    if plan.instruction.operands[operand].kind is OperandKind.DESCRIPTOR:
        return 1
    return plan.split.warps_n if operand == 0 else plan.split.warps_m


def _region(buffer: BufferVar) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(int(n) for n in nodes.shape_of(buffer))
    return (0,) * len(shape), shape


def _bytes(buffer: BufferVar) -> int:
    return prod(int(n) for n in nodes.shape_of(buffer)) * DTYPES[nodes.element_type(buffer)].bits // 8


def _fragment(buffer: BufferVar) -> BufferVar:
    return tirx.decl_buffer(
        list(buffer.shape), nodes.element_type(buffer), buffer.name, scope="local.fragment", layout=None
    )


class _InRegisters(StmtRewriter):
    def __init__(self, buffers: Mapping[BufferVar, BufferVar]) -> None:
        self.buffers = buffers

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.buffers.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, dict(s.annotations or {}), s.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = self.buffers.get(s.buffer)
        return s if new is None else tirx.BufferStore(new, s.value, list(s.indices), s.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not any(isinstance(a, View) and a.buffer in self.buffers for a in OpCall.decode(s).args):
            return s

        def region(r: Any) -> Any:
            new = self.buffers.get(r.source)
            return r if new is None else tirx.BufferRegion(new, list(r.region))

        return tvm_ffi.structural_map(substitute(s, dict(self.buffers)), (ir.TensorRegion, region))
