"""Replace each tile op by the statement of its selected variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter
from tile_core.lowering.dispatch import Selection, select
from tile_core.lowering.variant import Variant
from tile_core.numerics.levels import STRICT
from tile_core.numerics.regions import level_of_call
from tile_core.ops.base import OpCall, accumulates_floats, is_op
from tile_core.ops.registry import OPS
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.context import Context


class MeaningVariant(Variant):
    """The op's reference semantics as a variant: slow, but correct."""

    fallback = True
    in_order = True
    priority = -1000

    def __init__(self, owner: str, op: str) -> None:
        self.op = op
        self.name = f"{owner}.{op}.loops"

    def lower(self, call: Any, ctx: Context) -> Stmt:
        """Return the op's plain loops."""
        return OPS[self.op].meaning(call)


def requires_order(call: OpCall, ctx: Context) -> bool:
    """Whether the level of numerics requires a call to accumulate floats in ascending order."""
    op = OPS.get(call.name)
    return (
        op is not None
        and op.accumulates
        and level_of_call(call.attrs, ctx.options) == STRICT
        and accumulates_floats(call)
    )


@dataclass(frozen=True)
class OpChoice:
    """The variant selected for one op, for ``explain``."""

    call: OpCall
    selection: Selection


class _LowerOps(StmtRewriter):
    def __init__(self, ctx: Context, variants: Mapping[str, Sequence[Variant]]) -> None:
        self.ctx = ctx
        self.variants = variants
        self.choices: list[OpChoice] = []

    def lower(self, call: OpCall) -> Stmt:
        forced = call.attrs.get(attributes.VARIANT)
        mine, named = self.variants.get(call.name, ()), None if forced is None else str(forced)
        selection = select(call, mine, self.ctx, named, in_order=requires_order(call, self.ctx))
        self.choices.append(OpChoice(call, selection))
        lowered = selection.lower(call, self.ctx)
        # The mark records for later passes that all threads of the block execute this together.
        return nodes.mark(attributes.OP_MARK, call.name, lowered, call.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or (OpCall.decode(s).name not in OPS and OpCall.decode(s).name not in self.variants):
            return s
        return self.lower(OpCall.decode(s))

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Lower ``prev = atomic(...)``: read the element, then do the update."""
        if not nodes.is_tile_call(s.value) or str(s.value.op.name)[5:] not in OPS:
            return s
        call = OpCall.decode(s)
        dst = call.args[0]
        previous = nodes.load(dst.buffer, dst.at([0] * len(dst.extents)))
        mine = nodes.tile_call("per_thread", [previous], ret=dst.dtype)
        return nodes.seq([tirx.Bind(s.var, mine, s.span), self.lower(call)])


def lower_ops(body: Stmt, ctx: Context, variants: Sequence[Variant]) -> tuple[Stmt, list[OpChoice]]:
    """Return the body without tile ops, and the choice for each.

    Raises
    ------
    NoVariant, VariantMissing, VariantRefused
        If no variant (or not the forced one) lowers an op; the error names the op's line and every reason.
    """
    by_op: dict[str, list[Variant]] = {}
    for variant in variants:
        by_op.setdefault(variant.op, []).append(variant)
    rewriter = _LowerOps(ctx, by_op)
    return rewriter.stmt(body), rewriter.choices
