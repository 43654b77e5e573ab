"""Decide and write the epilogue of products in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.analysis.flow import names_of
from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, renamed
from tile_core.layout.base import LayoutMap
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.accumulators import Accumulator
from tile_cuda.attributes import STAGED
from tile_cuda.epilogue.facts import EpilogueFacts
from tile_cuda.epilogue.operand_prefetch import OperandChoices, OperandWriter, Prefetch
from tile_cuda.epilogue.stores import Store, StoreChoices
from tile_cuda.ops.boxes import row_lengths
from tile_cuda.ops.copy_matrix import swizzled_rows

if TYPE_CHECKING:
    from tile_core.compat.types import BufferVar, Stmt
    from tile_core.context import Context
    from tile_core.lowering.variant import Reject
    from tile_core.simt.kernel_plan import KernelPlan
    from tile_core.simt.variant import SimtCall
    from tile_cuda.ops.warpgroup_plan import WarpgroupPlan


def write_epilogue(
    plan: KernelPlan, ctx: Context, products: Sequence[tuple[SimtCall, WarpgroupPlan | Reject]], stays: bool
) -> KernelPlan:
    """Choose and write the stores of results, and the loads of their other operands.

    Parameters
    ----------
    products
        Products of the program on wgmma instructions, each with its plan.
    stays
        Whether the kernel is persistent.
    """
    facts = EpilogueFacts(plan, ctx, products, stays)
    if not facts.every:
        return plan
    new, stores = StoreChoices(facts).chosen()
    written = list(new)
    found = OperandChoices(facts, any(store.subtiles for store in stores)).chosen()
    writer = OperandWriter(facts, found)
    before = {x.loop: writer.before(x) for x in found}
    for x in found:
        new |= {p: writer.nest(p, new[p] if p in new else facts.flow.rebuilt(p, new), x) for p in x.nests}
    new |= {p: _with_own_variables(new[p]) for p in written}
    for loop, loads in reversed(before.items()):  # inner loops first
        new[loop] = nodes.seq([*loads, facts.flow.rebuilt(loop, new)])
    lives = tuple(_described(facts, b, stores, found) for b in facts.promotion)
    return plan.replace(body=facts.flow.replaced(new) if new else plan.body, accumulators=lives)


def _described(
    facts: EpilogueFacts, accumulator: BufferVar, stores: Sequence[Store], found: Sequence[Prefetch]
) -> Accumulator:
    """Return the description of an accumulator in registers."""
    operands = (str(x) for one in found if accumulator in names_of(one.loop.stmt) for x in one.operands)
    mine = (x.described() for x in stores if facts.origins.get(x.fragment) == accumulator)
    storage = "shared memory" if nodes.scope_of(accumulator) == "shared" else "registers"
    promotion = facts.promotion[accumulator]
    return Accumulator(
        str(accumulator.name), storage, promotion=promotion, operands=tuple(operands), stores=tuple(mine)
    )


def _with_own_variables(s: Stmt) -> Stmt:
    """Return statements whose nests, made from one nest, define variables of their own."""
    parts = list(s.seq) if isinstance(s, tirx.SeqStmt) else [s]
    return nodes.seq([renamed(x) if isinstance(x, tirx.For) else x for x in parts])


def layouts_of_staged(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Choose layouts without bank conflicts for epilogue tiles that TMA does not read."""
    report = plan.pipeline
    found: dict[Any, LayoutMap] = {}
    for s in collect(plan.body, tirx.Evaluate):
        call = OpCall.decode(s) if is_op(s) and nodes.is_tile_call(s.value, "copy") else None
        if call is not None and STAGED in call.attrs and call.args[0].buffer not in report.slots:
            tile: View = call.args[0]
            made = swizzled_rows(tuple(tile.shape), DTYPES[tile.dtype].bits, row_lengths(call, tile))
            if made is not None:
                found[tile.buffer] = made
    return plan if not found else plan.replace(pipeline=replace(report, slots={**report.slots, **found}))
