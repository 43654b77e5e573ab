"""The CUDA passes: the core's for threads and for texts, with asynchronous copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.emit.tail import TextTarget, with_text
from tile_core.ir import nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.passes.spine import Pass, Spine
from tile_core.simt.notes import BLOCK
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.bulk_copies import choose_bulk_copies, is_forced
from tile_cuda.conversions import FP8, PLAIN, TRUNCATIONS
from tile_cuda.elected import elect_issuers
from tile_cuda.ops.copy_async import can_copy as can_copy_chunks
from tile_cuda.ops.copy_bulk import can_copy_bulk
from tile_cuda.ops.gemm_sp_wgmma import WarpgroupGemmSp
from tile_cuda.ops.gemm_wgmma import WarpgroupGemm
from tile_cuda.ops.registers import check_registers
from tile_cuda.products_in_flight import begin_products
from tile_cuda.target import FP8_MMA, WGMMA
from tile_cuda.tensor_memory import use_tensor_memory
from tile_cuda.text import emit_plan

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ops.base import OpCall
    from tile_core.simt.memory.alignment import Aligned
    from tile_core.target import Target


def can_copy(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Say how a copy of a pipelined loop runs ahead: by boxes if the options say so and they can, else by chunks."""
    chunks = can_copy_chunks(call, ctx, aligned)
    if ctx.options.bulk_copies == "never" and not is_forced(call):
        return chunks
    boxes = can_copy_bulk(call, ctx, aligned)
    if isinstance(boxes, Accept):
        return boxes
    because = f"no bulk copy, since {boxes.reason}"
    if isinstance(chunks, Accept):
        return Accept(because, facts=chunks.facts)
    return Reject(f"{chunks.reason}; {because}")


def can_last(call: OpCall, ctx: Context, threads: int) -> bool:
    """Whether a product of so many threads runs on instructions that last until they are waited for."""
    variant = next((v for v in (WarpgroupGemm(), WarpgroupGemmSp()) if v.op == call.name), None)
    if variant is None or not ctx.capabilities.fact(WGMMA) or call.attrs.get("variant") not in (None, variant.name):
        return False
    given = SimtCall(
        call.name, call.args, call.attrs, call.where, call.span, block=Block((threads, 1, 1), nodes.fresh("tid"))
    )
    return isinstance(variant.accepts(given, ctx), Accept)


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    conversions = FP8 if target.capabilities.fact(FP8_MMA) else PLAIN
    passes = simt_spine(spine, SimtHooks(can_copy=can_copy, can_last=can_last))
    why = "after roles, whose first statement it is"
    passes = passes.after(
        "roles", Pass("registers", lambda plan, ctx: check_registers(plan, ctx, plan[BLOCK].count), why)
    )
    why = "after the pipeline, whose products last beyond trips; before places"
    passes = passes.after("pipeline", Pass("products", begin_products, why))
    why = "after the pipeline, whose slots products read; before places"
    passes = passes.after("pipeline", Pass("tensor_memory", use_tensor_memory, why))
    why = "after the pipeline, which has taken its copies; before places, which follow their layouts"
    passes = passes.after("pipeline", Pass("bulk_copies", choose_bulk_copies, why))
    why = "after all passes that look for conditions on one thread"
    passes = passes.after("unused", Pass("elected", elect_issuers, why))
    return with_text(passes, TextTarget(emit_plan, TRUNCATIONS, conversions=conversions))
