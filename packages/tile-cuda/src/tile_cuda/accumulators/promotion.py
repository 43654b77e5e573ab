"""Promotion of 8-bit float accumulators to float32 at intervals along K (level ``"standard"`` of numerics).

`wgmma` keeps 14 bits of an accumulator of 8-bit floats. Each instruction rounds to them, which loses most where all
terms have one sign. Over 128 of K little is lost; threads add such partial accumulators in float32, which costs time.
A product that covers at most 128 of K and begins with zeros needs no promotion: the program adds its result itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.numerics.levels import FAST, PARTIAL_SUM
from tile_core.numerics.regions import level_of_call
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.ops.effects import effects
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_cuda.accumulators.initialization import filled_with_zeros
from tile_cuda.ops.warpgroup_plan import PROMOTE
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.compat.types import BufferVar, Stmt
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_PRODUCTS = ("gemm", "gemm_sp")


def promote_accumulators(plan: Plan, ctx: Context) -> Plan:
    """Mark the products of 8-bit floats whose partial accumulators are added in float32."""
    if not ctx.capabilities.fact(WGMMA):
        return plan
    views = collect(plan.body, tirx.DeclBuffer)
    viewed = {x for d in views for x in (d.buffer, *collect(d.data, tirx.Var))}
    return plan.replace(body=_MarkPromoted(viewed, ctx.options).stmt(plan.body))


class _MarkPromoted(StmtRewriter):
    """Marks products, with the sequences and loops around each one."""

    def __init__(self, viewed: set[BufferVar], options: object) -> None:
        self.options = options
        #: Views and their buffers: each may write the elements of the other.
        self.viewed = viewed
        #: Whether the statements are a loop's body, and they; otherwise they stand before the product in a sequence.
        self.around: list[tuple[bool, Sequence[Stmt]]] = []

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        parts, new = list(s.seq), []
        for at, part in enumerate(parts):
            self.around.append((False, parts[:at]))
            new.append(self.stmt(part))
            self.around.pop()
        return nodes.seq(new)

    def visit_For(self, s: Stmt) -> Stmt:
        return self.loop(s, super().visit_For)

    def visit_While(self, s: Stmt) -> Stmt:
        return self.loop(s, super().visit_While)

    def loop(self, s: Stmt, visit: Callable[[Stmt], Stmt]) -> Stmt:
        # Before an iteration stand the statements of the iteration before, or those before the loop: both must agree.
        self.around.append((True, _parts(s.body)))
        new = visit(s)
        self.around.pop()
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not any(nodes.is_tile_call(s.value, name) for name in _PRODUCTS):
            return s
        call = OpCall.decode(s)
        kind = DTYPES[call.args[0].dtype]
        if (
            level_of_call(call.attrs, self.options) == FAST
            or not (kind.is_float and kind.bits == 8)
            or (_along(call) <= PARTIAL_SUM and self.begins_with_zeros(call))
        ):
            return s
        return with_attributes(s, {PROMOTE: PARTIAL_SUM})

    def begins_with_zeros(self, call: OpCall) -> bool:
        """Whether the accumulator holds zeros before the product, on each path."""
        at = accumulator_of(call)
        if nodes.as_int(call.args[at + 1]) in (1, True):
            return True
        buffer = call.args[at].buffer
        if buffer in self.viewed:
            return False
        for is_loop, parts in reversed(self.around):
            found = _last(parts, buffer)
            if found is False or (found and not is_loop):
                return bool(found)
        return False


def _along(call: OpCall) -> int:
    """Return the extent along K of a product."""
    b, turned = call.args[accumulator_of(call) - 1], bool(call.attrs["transpose_B"])
    return b.extents[b.matrix_dims()[1 if turned else 0]]


def _last(parts: Sequence[Stmt], buffer: BufferVar) -> bool | None:
    """Return whether the last write of a buffer stores zeros everywhere; ``None`` without a write."""
    for part in reversed(parts):
        filled = filled_with_zeros(part)
        if filled is not None and filled.same_as(buffer):
            return True
        if isinstance(part, tirx.SeqStmt):
            found = _last(list(part.seq), buffer)
            if found is not None:
                return found
        elif _writes(part, buffer):
            return False
    return None


def _writes(s: Stmt, buffer: BufferVar) -> bool:
    stored = any(x.buffer.same_as(buffer) for x in collect(s, tirx.BufferStore))
    called = (x for x in collect(s, (tirx.Evaluate, tirx.Bind)) if nodes.is_tile_call(x.value))
    return stored or any(v.buffer.same_as(buffer) for x in called for v in effects(x)[1])


def _parts(body: Stmt) -> list[Stmt]:
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
