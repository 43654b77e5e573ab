"""Shared buffers become one-dimensional: every access goes to the address given by the buffer's layout.

A buffer without a layout is row-major. A view shares the bytes of its buffer, so both are row-major.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import InternalError
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, replace_for, substitute
from tile_core.layout.expressions import ExprOps
from tile_core.simt.variant import Block

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap


def apply_shared_layouts(body: Stmt, layouts: Mapping[BufferVar, LayoutMap], block: Block | None = None) -> Stmt:
    """Return the body with one-dimensional shared buffers.

    Parameters
    ----------
    body
        The per-thread program.
    layouts
        Layouts of shared buffers over their whole shapes, by buffer.
    block
        The block's threads: index arithmetic is simplified by what is known about a thread's number.

    Raises
    ------
    InternalError
        If a layout is given for a buffer that has a view, or a shared buffer has no constant shape.
    """
    plans = _plans(body, layouts)
    if not plans:
        return body
    return _ApplyToShared(plans, block).stmt(body)


class Folding(ExprOps):
    """Fold index arithmetic during construction, with swizzle bits kept apart from the index.

    An XOR only applies to the digit of the index that it can change: ``row * 64 + (chunk ^ row % 8) * 8``. Terms added
    to the other digits then are constant offsets of the address.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def simplify(self, index: Expr) -> Expr:
        """Simplify an index unless floats occur in it: the rules do not hold for them."""
        floats = [c for c in collect(index, tirx.Cast) if nodes.dtype_of(c.value).startswith(("float", "bfloat"))]
        return index if floats else self.analyzer.simplify(index)

    def floordiv(self, a: Expr, b: int) -> Expr:
        """See ``Ops.floordiv``."""
        return self.simplify(tirx.floordiv(a, b))

    def mod(self, a: Expr, b: int) -> Expr:
        """See ``Ops.mod``."""
        return self.simplify(tirx.floormod(a, b))

    def add(self, a: Expr, b: Expr) -> Expr:
        """See ``Ops.add``."""
        return self.simplify(a + b)

    def mul(self, a: Expr, b: int) -> Expr:
        """See ``Ops.mul``."""
        return self.simplify(a * b)

    def shift_left(self, a: Expr, b: int) -> Expr:
        """See ``Ops.shift_left``."""
        return self.mul(a, 1 << b)

    def shift_right(self, a: Expr, b: int) -> Expr:
        """See ``Ops.shift_right``."""
        return self.floordiv(a, 1 << b)

    def bitand(self, a: Expr, b: int) -> Expr:
        """See ``Ops.bitand``: the bits of a mask without gaps are a digit."""
        low = b & -b
        if not b or (b + low) & b:
            return super().bitand(a, b)
        return self.mul(self.mod(self.floordiv(a, low), (b + low) // low), low)

    def xor(self, a: Expr, b: Expr) -> Expr:
        """See ``Ops.xor``: of the digit of ``a`` that ``b`` can change."""
        b = self.simplify(nodes.int_const(0, nodes.dtype_of(a)) + b)
        if nodes.as_int(b) == 0:
            return a
        low, high = self.window(b)
        if not high:
            return super().xor(a, b)
        digit, other = self.mod(self.floordiv(a, low), high // low), self.floordiv(b, low)
        rest = self.simplify(tirx.floordiv(a, high) * high + tirx.floormod(a, low))
        changed = other if nodes.as_int(digit) == 0 else tirx.bitwise_xor(digit, other)
        return rest + changed * low if low > 1 else rest + changed

    def window(self, b: Expr) -> tuple[int, int]:
        """Return powers of two that bound ``b``, or zeros.

        ``b`` is a multiple of the first and below the second.
        """
        constant = nodes.as_int(b)
        if isinstance(constant, int):
            return (constant & -constant, 1 << constant.bit_length()) if constant > 0 else (0, 0)
        bound = self.analyzer.const_int_bound(b)
        if bound.min_value < 0 or bound.max_value >= 1 << 31:
            return 0, 0
        modulus = self.analyzer.modular_set(b)
        coefficient, base = int(modulus.coeff), int(modulus.base)
        known = coefficient | base if base else coefficient
        return max(known & -known, 1), 1 << int(bound.max_value).bit_length()


class _FlatBuffer:
    """A shared buffer, its one-dimensional form, and the map from index to address."""

    def __init__(
        self, buffer: BufferVar, layout: LayoutMap | None, packed: bool, base: BufferVar | None = None
    ) -> None:
        self.layout = layout
        self.shape = nodes.shape_of(buffer)
        if not all(isinstance(n, int) for n in self.shape):
            raise InternalError(stage="shared layouts", detail=f"{buffer.name} has the shape {self.shape}")
        self.pitches = list(self.shape)
        if packed and self.pitches:
            # Rows of a buffer with two elements per byte begin at whole bytes.
            self.pitches[-1] += self.pitches[-1] % 2
        size = prod(self.pitches) if layout is None else layout.span
        data = None if base is None else tirx.buffer_data(base)
        self.flat = tirx.decl_buffer(
            [max(size, 1)], nodes.element_type(buffer), buffer.name, data=data, scope="shared", layout=None,
            data_alignment=buffer.ty.data_alignment,
        )  # fmt: skip
        self.done = layout is None and len(self.shape) == 1 and self.pitches == self.shape

    def offset(self, indices: list[Expr], ops: Folding) -> Expr:
        if self.layout is not None:
            return ops.simplify(nodes.int_const(0) + self.layout.apply(*indices, ops=ops)["memory"])
        total: Expr = nodes.int_const(0)
        for index, extent in zip(indices, self.pitches, strict=True):
            total = total * extent + index
        return ops.simplify(total)


def _plans(body: Stmt, layouts: Mapping[BufferVar, LayoutMap]) -> dict[BufferVar, _FlatBuffer]:
    allocs = [a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
    views = [(v.buffer, base_of(v)) for v in collect(body, tirx.DeclBuffer)]
    packed = packed_buffers(body)
    plans: dict[BufferVar, _FlatBuffer] = {}
    for buffer in allocs:
        layout = layouts.get(buffer)
        if layout is not None and any(base is not None and base.same_as(buffer) for _, base in views):
            raise InternalError(stage="shared layouts", detail=f"a layout for {buffer.name}, which has a view")
        if layout is not None and tuple(layout.shape) != tuple(nodes.shape_of(buffer)):
            raise InternalError(stage="shared layouts", detail=f"a layout of shape {layout.shape} for {buffer.name}")
        plans[buffer] = _FlatBuffer(buffer, layout, buffer in packed)
    for view, base in views:
        if base in plans:
            if view in layouts:
                raise InternalError(stage="shared layouts", detail=f"a layout for the view {view.name}")
            plans[view] = _FlatBuffer(view, None, view in packed, plans[base].flat)
    return plans


def base_of(view: Stmt) -> BufferVar:
    """Return the buffer that a ``DeclBuffer`` aliases; ``None`` for a view of a pointer."""
    return next((v for v in collect(view.data, tirx.Var) if tirx.is_buffer_var(v)), None)


def packed_buffers(body: Stmt) -> set[BufferVar]:
    """Return the buffers of sub-byte elements whose bytes a view reinterprets as another type.

    These hold two elements per byte, as global memory does; other scratch uses one byte per element.
    """
    views = [(v.buffer, base_of(v)) for v in collect(body, tirx.DeclBuffer)]
    small = {b for pair in views for b in pair if b is not None and DTYPES[nodes.element_type(b)].bits < 8}
    packed: set[BufferVar] = set()
    size = -1
    while size != len(packed):
        size = len(packed)
        for a, b in [*views, *((b, a) for a, b in views)]:
            if a in small and b is not None and (b in packed or b not in small):
                packed.add(a)
    return packed


class _ApplyToShared(StmtRewriter):
    """Rewrites the accesses; facts about variables follow the scopes."""

    def __init__(self, plans: Mapping[BufferVar, _FlatBuffer], block: Block | None) -> None:
        self.plans = plans
        self.flat = {buffer: plan.flat for buffer, plan in plans.items()}
        self.analyzer = Analyzer()
        self.ops = Folding(self.analyzer)
        self.thread = None if block is None else block.thread
        if block is not None and block.thread is not None:
            self.analyzer.bind(block.thread, ir.Range.from_min_extent(0, block.count))

    def expr(self, e: Expr) -> Expr:
        if type(e) in (tirx.IntImm, tirx.FloatImm):
            return e
        return substitute(map_expr(e, self.load, ir.TensorLoad), self.flat)

    def load(self, e: Expr) -> Expr:
        plan = self.plans.get(e.source)
        return e if plan is None else nodes.load(plan.flat, [self.at(plan, e.indices)], e.span)

    def at(self, plan: _FlatBuffer, indices: Sequence[Expr]) -> Expr:
        return plan.offset(structural.items(indices), self.ops)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        plan = self.plans.get(s.buffer)
        if plan is None:
            return new
        return tirx.BufferStore(plan.flat, new.value, [self.at(plan, new.indices)], new.span)

    def visit_For(self, s: Stmt) -> Stmt:
        start, extent = self.expr(s.min), self.expr(s.extent)
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(start, extent), True)
        body = self.stmt(s.body)
        if start.same_as(s.min) and extent.same_as(s.extent) and body.same_as(s.body):
            return s
        return replace_for(s, body, start=start, extent=extent)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = self.expr(s.condition)
        if not _is_pure(condition):
            return super().visit_IfThenElse(s)
        with self.analyzer.constraint_scope(condition):
            then = self.stmt(s.then_case)
        other = s.else_case
        if other is not None:
            with self.analyzer.constraint_scope(tirx.Not(condition)):
                other = self.stmt(other)
        return tirx.IfThenElse(condition, then, other, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        new = super().visit_Bind(s)
        is_index = nodes.dtype_of(new.value).startswith("int")
        if is_index and (self.thread is None or not s.var.same_as(self.thread)):
            # Its range only: given the value, the simplifier would substitute it.
            self.analyzer.bounded(s.var, new.value)
        return new

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.flat.get(s.buffer)
        if new is None:
            return s
        notes = {attributes.SHAPE: nodes.shape_of(s.buffer), **dict(s.annotations or {})}
        return tirx.AllocBuffer(new, notes, s.span)

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        new = self.flat.get(s.buffer)
        return s if new is None else tirx.DeclBuffer(new, data=substitute(s.data, self.flat), span=s.span)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        new = super().visit_AttrStmt(s)
        node = renamed_buffers(s.node, self.flat)
        return new if node is s.node else tirx.AttrStmt(node, s.attr_key, new.value, new.body, s.span)


def renamed_buffers(node: Any, mapping: Mapping[BufferVar, BufferVar]) -> Any:
    """Return an attribute's list of buffers with some of them replaced; anything else unchanged."""
    if isinstance(node, tirx.Var):
        return mapping.get(node, node)
    if type(node).__name__ != "Array" or not any(isinstance(x, tirx.Var) and x in mapping for x in node):
        return node
    return [mapping.get(x, x) if isinstance(x, tirx.Var) else x for x in node]


def _is_pure(e: Expr) -> bool:
    return not collect(e, (ir.TensorLoad, ir.Call))
