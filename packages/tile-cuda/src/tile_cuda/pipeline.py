"""The CUDA passes: the core's for threads and for texts, with asynchronous copies."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow
from tile_core.compat.tvm import tirx
from tile_core.emit.tail import TextTarget, with_text
from tile_core.ir.attributes import COMPLETES, IN_FLIGHT, PING_PONG, VARIANT
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.passes.lower_ops import requires_order
from tile_core.passes.spine import Pass, Spine
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.longest_first import longest_first
from tile_core.simt.launch.rasterization import panels
from tile_core.simt.pipelining.operands import Operand
from tile_core.simt.pipelining.overlap import Candidates
from tile_core.simt.role_threads import block_in
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.accumulators.in_flight import begin_products
from tile_cuda.accumulators.initialization import fold_initialization
from tile_cuda.accumulators.promotion import promote_accumulators
from tile_cuda.accumulators.resident import keep_accumulators
from tile_cuda.accumulators.subtiling import subtile_accumulators
from tile_cuda.accumulators.tensor_memory import reserve_columns, use_tensor_memory
from tile_cuda.async_instructions import INSTRUCTIONS
from tile_cuda.attributes import ATTRIBUTES
from tile_cuda.conversions import FP8, PLAIN, TRUNCATIONS
from tile_cuda.copies.bulk import choose_tma, is_wanted, may_be_bytes, prefer_tma
from tile_cuda.copies.elected import elect_issuers
from tile_cuda.copies.explicit import begin_explicit_copies
from tile_cuda.copies.metadata_rows import permute_metadata
from tile_cuda.copies.multicast import choose_cluster, explain_pairs
from tile_cuda.copies.operand_rows import require_readable_rows
from tile_cuda.cost.overlap import not_faster
from tile_cuda.cost.slow_tiles import note_slow
from tile_cuda.epilogue.write import layouts_of_staged, write_epilogue
from tile_cuda.grid.persistent import choose_persistent, may_persist
from tile_cuda.grid.split import choose_split
from tile_cuda.machine import machine_of
from tile_cuda.ops.contiguous import can_copy_bytes
from tile_cuda.ops.copy_async import can_copy as can_copy_chunks
from tile_cuda.ops.copy_async import can_gather
from tile_cuda.ops.copy_bulk import Blocks, can_copy_bulk
from tile_cuda.ops.gemm_exchanged import ExchangedGemm
from tile_cuda.ops.gemm_sp_wgmma import WarpgroupGemmSp
from tile_cuda.ops.gemm_tensor import FORCED, requests_tensor_memory
from tile_cuda.ops.gemm_wgmma import WarpgroupGemm, WarpgroupVariant
from tile_cuda.ops.metadata_prefetch import prefetches_metadata
from tile_cuda.ops.registers import check_registers
from tile_cuda.ops.tensor_plan import TensorPlan
from tile_cuda.ops.tensor_products import variant_of
from tile_cuda.ops.warpgroup_plan import WARPGROUP, WarpgroupPlan
from tile_cuda.packed import packed_floats
from tile_cuda.target import FP8_MMA, TCGEN05, WGMMA
from tile_cuda.text import emit_plan
from tile_cuda.uniform import share_numbers

if TYPE_CHECKING:
    from tile_core.compat.types import Stmt
    from tile_core.context import Context
    from tile_core.simt.memory.alignment import Aligned
    from tile_core.target import Target

_NEIGHBOURS = 16
"""Blocks whose loads of one tile become one: as many as a cluster of multiprocessors of an H100 or H200 runs."""


def can_copy(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Choose the prefetch of a copy in a pipelined loop: TMA if legal, else cp.async."""
    blocks = Blocks.of(call)
    if blocks.ranks and not blocks.sets:
        return Reject("other blocks of the cluster copy it, too")
    chunks = Reject("only boxes reach other blocks") if blocks.sets else can_copy_chunks(call, ctx, aligned)
    if not is_wanted(call, ctx):
        return chunks
    boxes = can_copy_bulk(call, ctx, aligned)
    if isinstance(boxes, Accept) or blocks.sets:
        return boxes
    because = f"no bulk copy: {boxes.reason}"
    if isinstance(chunks, Accept):
        return Accept(because, facts=chunks.facts)
    if may_be_bytes(call) and isinstance(call, SimtCall):
        src, dst = call.args
        whole = can_copy_bytes(call, dst, src, aligned, call.ranges)
        if isinstance(whole, Accept):
            return whole
        because += f"; {whole.reason}"
    return Reject(f"{chunks.reason}; {because}")


def is_async(call: OpCall, ctx: Context, threads: int) -> bool:
    """Whether a product runs on asynchronous instructions."""
    if ctx.capabilities.fact(TCGEN05):
        return (
            COMPLETES not in call.attrs
            and requests_tensor_memory(call, ctx)
            and _stays(SimtCall.on(call, threads), ctx)
        )
    variant = _of_warpgroups(call.name)
    if variant is None or not _has_wgmma(call, ctx) or call.attrs.get(VARIANT) not in (None, variant.name):
        return False
    return isinstance(variant.accepts(SimtCall.on(call, threads), ctx), Accept)


def may_be_async(call: OpCall, ctx: Context, threads: int) -> bool:
    """Whether a product runs on asynchronous instructions, possibly with its parts exchanged."""
    held = any(isinstance(a, View) and a.scope == "local.fragment" for a in call.args[:2])
    if held and IN_FLIGHT in call.attrs and ctx.capabilities.fact(TCGEN05):
        return False  # tensor memory has one copy of A
    if is_async(call, ctx, threads):
        return True
    alone = call.name == "gemm" and _has_wgmma(call, ctx) and call.attrs.get(VARIANT) is None
    return bool(alone) and isinstance(ExchangedGemm().accepts(SimtCall.on(call, threads), ctx), Accept)


@functools.cache
def _of_warpgroups(op: str) -> WarpgroupVariant | None:
    """Return the variant of an op on instructions of warpgroups, if it has one."""
    return next((v for v in (WarpgroupGemm(), WarpgroupGemmSp()) if v.op == op), None)


def _has_wgmma(call: OpCall, ctx: Context) -> bool:
    """Whether the target and the level of numerics permit warpgroups to compute a product."""
    return bool(ctx.capabilities.fact(WGMMA)) and not requires_order(call, ctx)


def reads_directly(operand: Operand, threads: int, ctx: Context, aligned: Aligned) -> bool:
    """Whether threads also read an operand of a loop's copy themselves: metadata of wgmma."""
    call = operand.call
    if call.name != "gemm_sp" or operand.position != 1 or not ctx.capabilities.fact(WGMMA):
        return False
    return is_async(call, ctx, threads) and prefetches_metadata(SimtCall.on(call, threads), operand, aligned)


def _stays(call: SimtCall, ctx: Context) -> bool:
    """Whether the accumulator of a product in flight can stay in tensor memory."""
    variant = variant_of(call)
    plan = variant.plan(call)
    return not isinstance(plan, Reject) and plan.can_stay and isinstance(variant.fits(call, ctx), Accept)


def _epilogue(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Decide what follows from the instructions of products: promotion, epilogue tiles, prefetch and subtiling."""
    plan = promote_accumulators(check_registers(plan, ctx, plan.block.count), ctx)
    # Accumulators are read in tiles before they are divided.
    return begin_explicit_copies(_divided(_results(plan, ctx), ctx), ctx)


def _asynchronous(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Begin bulk copies and products that stay in flight, with accumulators in tensor memory."""
    plan = explain_pairs(use_tensor_memory(layouts_of_staged(choose_tma(plan, ctx), ctx), ctx), ctx)
    return fold_initialization(begin_products(plan, ctx), ctx)


def _issuers(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Elect the threads that issue, name the numbers of warps, and decide what blocks occupy."""
    return note_slow(reserve_columns(share_numbers(elect_issuers(plan, ctx), ctx), ctx), ctx)


def _results(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Apply the passes that depend on wgmma products: epilogue, copies, and rasterization."""
    calls = warpgroup_products(plan.body, ctx, plan.block)
    products = [(call, WarpgroupPlan.for_call(call)) for call in calls]
    plan = _ordered(plan, ctx)
    plan = require_readable_rows(plan, [found for _, found in products if not isinstance(found, Reject)])
    plan = permute_metadata(plan, calls)
    # Persistent blocks have little shared memory for an epilogue tile: their slots are never free.
    plan = write_epilogue(plan, ctx, products, stays=bool(calls) and may_persist(plan, ctx))
    return prefer_tma(plan, ctx) if calls or _has_exchanged(plan, ctx) else plan


def _ordered(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Order blocks along panels of the result, or the longest first.

    Causal attention with the longest first on an H200, relative to cuDNN, bfloat16, the fastest of six tiles, and
    before: 32 heads and 8 key heads of 128, 1,024 positions 1.80 (1.31), 4,096 1.07 (0.93), 16,384 1.03 (0.97); 16
    heads of 64, 4,096 positions 1.09 (0.87); 32 heads of 256, 2,048 positions 1.08 (0.86).
    """
    if ctx.options.rasterization == "never" or not plan.is_unordered:
        return plan
    always, processors = ctx.options.rasterization == "always", machine_of(ctx.target.arch).processors
    has_panels = ctx.capabilities.fact(WGMMA)
    order = panels(plan.body, processors, _NEIGHBOURS, always=always) if has_panels else {}
    return plan.replace(order=order or longest_first(plan.body, 1 if always else processors) or {})


def _has_exchanged(plan: KernelPlan, ctx: Context) -> bool:
    """Whether a product of a program runs on wgmma with its parts exchanged."""
    if not ctx.capabilities.fact(WGMMA):
        return False
    found = [p for p in Flow(plan.body).points if is_op(p.stmt) and OpCall.decode(p.stmt).name == "gemm"]
    return any(may_be_async(OpCall.decode(p.stmt), ctx, block_in(p.role, plan.block).count) for p in found)


def _divided(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Subtile accumulators in tensor memory; with an MMA warp, another warp copies by TMA."""
    new = subtile_accumulators(plan, ctx)
    new = prefer_tma(new, ctx) if new is not plan and may_persist(new, ctx) else new
    return require_readable_rows(new, _tensor_products(new.body, ctx))


def _tensor_products(body: Stmt, ctx: Context) -> list[TensorPlan]:
    """Return the plans of the products that are to run on ``tcgen05``."""
    if not ctx.capabilities.fact(TCGEN05):
        return []
    calls = [OpCall.decode(s) for s in collect(body, tirx.Evaluate) if is_op(s)]
    given = [
        SimtCall.on(call, WARPGROUP) for call in calls if call.name in FORCED and requests_tensor_memory(call, ctx)
    ]
    found = [variant_of(call).plan(call) for call in given if isinstance(variant_of(call).fits(call, ctx), Accept)]
    return [plan for plan in found if not isinstance(plan, Reject)]


def warpgroup_products(body: Stmt, ctx: Context, block: Block) -> list[SimtCall]:
    """Return the products of a program that run on matrix instructions of warpgroups."""
    if not ctx.capabilities.fact(WGMMA):
        return []
    found = []
    for p in Flow(body).points:
        call = OpCall.decode(p.stmt) if is_op(p.stmt) else None
        if call is not None and call.name in ("gemm", "gemm_sp"):
            threads = block_in(p.role, block).count
            found += [SimtCall.on(call, threads)] if is_async(call, ctx, threads) else []
    return found


def _has_own_rows(call: OpCall, threads: int) -> bool:
    """Whether each warpgroup has rows of its own, so that none needs data of another."""
    plan = WarpgroupPlan.for_call(SimtCall.on(call, threads))
    return not isinstance(plan, Reject) and (plan.split.warps_n, plan.split.warps_m) == (1, threads // WARPGROUP)


def can_overlap(found: Candidates, ctx: Context) -> Accept | Reject:
    """Decide whether iterations of a loop overlap, and warpgroups run in ping-pong."""
    ping_pong = found.alone and found.threads % WARPGROUP == 0 and found.threads > WARPGROUP
    ping_pong = ping_pong and all(_has_own_rows(call, found.threads) for call in found.calls)
    reason = ""
    if ctx.options.overlap == "never":
        reason = 'the option overlap is "never"'
    elif ctx.options.overlap == "auto":
        reason = not_faster(found, ping_pong, ctx.options.max_registers, ctx.capabilities.shared_bytes)
    return Reject(reason) if reason else Accept(facts={PING_PONG: WARPGROUP} if ping_pong else {})


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    conversions = FP8 if target.capabilities.fact(FP8_MMA) else PLAIN
    hooks = SimtHooks(
        can_copy=can_copy, can_gather=can_gather, is_async=may_be_async, can_overlap=can_overlap,
        split=choose_split, share=choose_persistent, cluster=choose_cluster, reads_directly=reads_directly,
    )  # fmt: skip
    passes = simt_spine(spine, hooks)
    why = "before the pipeline, whose loops have the instructions of products and take the memory that tiles leave"
    passes = passes.before("pipeline", Pass("epilogue", _epilogue, why))
    why = "after the pipeline, whose slots products read and which has taken its copies; before places"
    passes = passes.after("pipeline", Pass("asynchronous", _asynchronous, why))
    why = "on registers, so that all accesses are visible; before barriers"
    passes = passes.after("distribute", Pass("accumulators", keep_accumulators, why))
    why = "after all passes that look for conditions on one thread, when its number is bound and the arena has its size"
    passes = passes.after("budget", Pass("issuers", _issuers, why))
    packed = packed_floats(target)
    text = TextTarget(emit_plan, TRUNCATIONS, conversions=conversions, packed=packed, instructions=INSTRUCTIONS)
    return with_text(passes.declare(*ATTRIBUTES), text)
