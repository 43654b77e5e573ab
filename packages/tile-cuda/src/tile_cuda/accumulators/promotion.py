"""Promotion of 8-bit float accumulators to float32 at intervals along K (level ``"standard"`` of numerics).

`wgmma` keeps 14 bits of an accumulator of 8-bit floats. Each instruction rounds to them, which loses most where all
terms have one sign. Over 128 of K little is lost; threads add such partial accumulators in float32, which costs time.
A product that covers at most 128 of K and begins with zeros needs no promotion: the program adds its result itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.numerics.levels import FAST, PARTIAL_SUM
from tile_core.numerics.regions import level_of_call
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.ops.effects import effects
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.whole_tiles import filled_with_zeros
from tile_cuda.attributes import PROMOTE
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.analysis.point import Point
    from tile_core.compat.types import BufferVar, Stmt
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan

_PRODUCTS = ("gemm", "gemm_sp")


def promote_accumulators(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Mark the products of 8-bit floats whose partial accumulators are added in float32."""
    if not ctx.capabilities.fact(WGMMA) or not any(_loses(s, ctx) for s in products_of(plan.body)):
        return plan
    flow = Flow(plan.body, effects)
    new = _Zeros(flow).found
    marked = {p: with_attributes(p.stmt, {PROMOTE: PARTIAL_SUM}) for p in flow.points if _loses(p.stmt, ctx)}
    marked = {p: s for p, s in marked.items() if not new[p] or _along(OpCall.decode(s)) > PARTIAL_SUM}
    return plan.replace(body=flow.replaced(dict(marked)))


class _Zeros:
    """Finds the products whose accumulators hold zeros before them, on each path."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.found: dict[Point, bool] = {}
        #: Views and their buffers: each may write the elements of the other.
        self.viewed = {*flow.roots, *flow.roots.values()}
        self.behind(flow.top, frozenset())

    def behind(self, points: Sequence[Point], zeros: frozenset[BufferVar]) -> frozenset[BufferVar]:
        """Return the tiles with zeros behind statements, given those before."""
        for p in points:
            zeros = self.behind_one(p, zeros)
        return zeros

    def behind_one(self, p: Point, zeros: frozenset[BufferVar]) -> frozenset[BufferVar]:
        """Return the tiles with zeros behind a statement, given those before."""
        filled = filled_with_zeros(p.stmt)
        if filled is not None:
            return zeros | {filled} - self.viewed
        if p.kind in ("for", "while"):
            # Before an iteration is the iteration before, or what stands before the loop. Tiles only ever leave.
            zeros &= self.behind(p.parts[0], zeros)
            return zeros & self.behind(p.parts[0], zeros)
        if p.parts:
            sides = [self.behind(part, zeros) for part in p.parts]
            return frozenset.intersection(*sides, *([zeros] if p.kind == "if" and len(sides) == 1 else []))
        if products_of(p.stmt):
            call = OpCall.decode(p.stmt)
            clear = call.args[accumulator_of(call) + 1]
            self.found[p] = nodes.as_int(clear) in (1, True) or call.args[accumulator_of(call)].buffer in zeros
        return zeros - {a.buffer for a in self.flow.accesses_at(p) if a.write}


def _loses(s: Stmt, ctx: Context) -> bool:
    """Whether a statement is a product whose instructions round partial accumulators too much."""
    if not is_op(s) or not any(nodes.is_tile_call(s.value, name) for name in _PRODUCTS):
        return False
    call = OpCall.decode(s)
    kind = DTYPES[call.args[0].dtype]
    return kind.is_float and kind.bits == 8 and level_of_call(call.attrs, ctx.options) != FAST


def _along(call: OpCall) -> int:
    """Return the extent along K of a product."""
    b, turned = call.args[accumulator_of(call) - 1], bool(call.attrs[attributes.TRANSPOSE_B])
    return b.extents[b.matrix_dims()[1 if turned else 0]]
