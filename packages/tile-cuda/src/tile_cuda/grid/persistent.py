"""Persistent kernels: blocks process several tiles of the result, with a producer warp.

On an H200 the matrix units then have work while results are written and while a tile's first operands arrive, and the
loop has no barrier of the whole block (`tile_core.simt.pipelining.persistent`).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.program import cluster_of
from tile_core.lowering.variant import Reject
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.grids import grid_of, outer_grid
from tile_core.simt.pipelining.persistent import PersistentGrid, Shape
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.attributes import CTA_GROUP, PROMOTE
from tile_cuda.cost.kernel import RING, RING_OF_BYTES
from tile_cuda.machine import machine_of
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.tensor_plan import ALL_COLUMNS, TensorPlan, allocated_columns
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.target import REGISTERS, TCGEN05, WARP, WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context

OF_WORKERS = 168
"""Registers of each thread of persistent blocks, for the estimate of blocks per multiprocessor."""
COPIER_REGISTERS, USER_REGISTERS = 40, 232
"""Of each thread of a warpgroup that copies, and of two that compute."""
_BOUNDS_REGISTERS = 72, 216
"""The same where both compute bounds of loops: a scan over groups spilled with fewer than 72."""
_OTHER_REGISTERS = 24
"""Of each consumer thread beside live fragments. Gradients of attention with 232 registers, by NVRTC: 11 tiles with up
to 208 of fragments spill nothing, one of two with 216 spills 56 bytes, those with 224 spill 108 and 120."""
_MOST_THREADS = 256
"""Threads of a persistent block: of 9 warps three share a quarter of the registers, which leaves each thread 168."""
_SCRATCH = 4096
"""Bytes of shared memory for barriers, and for what ops need that are lowered later."""
_LEAST_TRIPS = 2
_FEW_PRODUCTS = 2
"""Products of iterations that need no producer warp where they do not overlap: those of attention."""
_SUBTILES_PER_ITERATION = 2
"""Most subtiles stored in an iteration of the next tile: with one 4096³ was 1.028 times as fast as
without any, with two 1.023, with four 1.010, whose registers spilled."""


def choose_persistent(shape: Shape, ctx: Context) -> PersistentGrid | Reject:
    """Return the persistent grid of a product, or the rejection reason."""
    if CTA_GROUP in shape.product.attrs:
        return Reject("the program requests pairs of blocks for its product")
    if shape.tiles is None:
        return _beside(shape, ctx)
    option = ctx.options.persistent
    reason = _reason(shape.threads, shape.trips or _LEAST_TRIPS, ctx)
    if reason:
        return Reject(reason)
    if option == "auto" and not ctx.capabilities.fact(TCGEN05) and shape.tiles <= _processors(ctx):
        return Reject(f"all {shape.tiles} blocks run at a time")
    if option == "auto" and not shape.trips:
        # The device starts blocks when others end; persistent blocks process equally many tiles.
        return Reject("the trip count is unknown at compile time: tiles may take different times")
    if option == "auto" and shape.products > 1:
        return Reject("its loop has several products; persistent blocks were not measured for it")
    size = shape.ring_bytes + shape.other_bytes + _SCRATCH
    if size > ctx.capabilities.shared_bytes:
        return Reject(_over_budget(size, shape, ctx))
    if ctx.capabilities.fact(TCGEN05):
        return _with_mma_warp(shape, shape.tiles, size, ctx)
    direct = shape.product.name == "gemm_sp" and shape.product.args[1].scope == "global"
    promoted = PROMOTE in shape.product.attrs
    immediate = shape.immediate or promoted
    own = shape.threads > WARPGROUP and ctx.options.max_registers is None
    moves = (direct or immediate or not shape.once) and own
    late = shape.subtiles > 1 and shape.trips * _SUBTILES_PER_ITERATION >= shape.subtiles and not promoted and own
    # Blocks that run beside each other store results while others compute as it is.
    late = late and _at_a_time(shape.threads + (WARPGROUP if moves else WARP), size, ctx) == 1
    moves = moves or late
    threads = shape.threads + (WARPGROUP if moves else WARP)
    at_a_time = _at_a_time(threads, size, ctx)
    blocks = option if isinstance(option, int) else _processors(ctx) * at_a_time
    if option == "auto" and at_a_time > 1:
        return Reject(f"{at_a_time} blocks per multiprocessor already overlap copies and products")
    small = DTYPES[shape.product.args[0].dtype].bits == 8
    if option == "auto" and not immediate and shape.stages not in (RING_OF_BYTES if small else RING):
        return Reject(f"it was not faster with {shape.stages} stages")
    # Metadata in slots is read by each thread; descriptors are what instructions of a whole warp read.
    arrivals = "warp" if direct or shape.product.name == "gemm" else "thread"
    # Partial accumulators and metadata need the registers that additional threads would have; these give theirs away.
    registers = ((COPIER_REGISTERS, USER_REGISTERS) if shape.once else _BOUNDS_REGISTERS) if moves else None
    beside, held = threads - shape.threads, 0 if isinstance(option, int) else at_a_time
    return PersistentGrid(
        min(blocks, shape.tiles),
        beside,
        arrivals,
        WARP,
        registers,
        at_a_time=held,
        late_epilogue=late,
        immediate=immediate,
    )


def _processors(ctx: Context) -> int:
    """Return the multiprocessors of a device."""
    return machine_of(ctx.target.arch).processors


def _over_budget(size: int, shape: Shape, ctx: Context) -> str:
    return (
        f"shared-memory budget exceeded: {size:,} of {ctx.capabilities.shared_bytes:,} bytes "
        f"({shape.ring_bytes:,} of slots, {shape.other_bytes:,} of other tiles)"
    )


def _at_a_time(threads: int, size: int, ctx: Context) -> int:
    """Return how many blocks of this size a multiprocessor runs at a time."""
    held = REGISTERS // (threads * OF_WORKERS)
    return max(1, min(ctx.capabilities.shared_bytes // size, held, machine_of(ctx.target.arch).threads // threads))


def _beside(shape: Shape, ctx: Context) -> PersistentGrid | Reject:
    """Return the producer warp of blocks that are not persistent, or why they have none."""
    if ctx.capabilities.fact(TCGEN05):
        return Reject("it is not persistent and has no MMA warp")
    groups, size = shape.threads // WARPGROUP, shape.ring_bytes + shape.other_bytes + _SCRATCH
    reason = _reason(shape.threads, shape.trips or _LEAST_TRIPS, ctx)
    if ctx.options.persistent == "auto" and not (shape.overlaps and groups > 1):
        reason = reason or _not_faster_beside(shape, size, ctx)
    if reason:
        return Reject(reason)
    if size > ctx.capabilities.shared_bytes:
        return Reject(_over_budget(size, shape, ctx))
    if groups == 1 or ctx.options.max_registers is not None:
        return PersistentGrid(0, WARP, "warp", WARP)
    return PersistentGrid(0, WARPGROUP, "warp", WARP, (COPIER_REGISTERS, USER_REGISTERS))


def _not_faster_beside(shape: Shape, size: int, ctx: Context) -> str:
    """Return why a producer warp is not faster for iterations without overlap.

    On an H200, of the speed without one: attention with overlap 1.05, also with a window; products with 4-bit weights
    0.87; gradients of attention with heads of 128, one block on a multiprocessor, 1.04 (4,096 positions) and 1.07
    (16,384).

    Returns
    -------
    str
        Empty if it is faster.
    """
    if shape.threads <= WARPGROUP or shape.products <= _FEW_PRODUCTS:
        return (
            "a producer warp without persistence is faster only where two warpgroups "
            f"overlap iterations or compute more than {_FEW_PRODUCTS} products in each"
        )
    if ctx.options.max_registers is not None:
        return "the option max_registers gives all threads the same number"
    needed = shape.registers + _OTHER_REGISTERS
    if needed > USER_REGISTERS:
        return f"its consumers need about {needed} of {USER_REGISTERS} registers"
    both = needed * 2 * shape.threads <= REGISTERS and size * 2 <= ctx.capabilities.shared_bytes
    return f"two blocks of about {needed} registers a thread run beside each other" if both else ""


def _with_mma_warp(shape: Shape, tiles: int, size: int, ctx: Context) -> PersistentGrid | Reject:
    """Return how many blocks share the tiles, of threads that copy, multiply, and write results."""
    call = SimtCall(shape.product.name, shape.product.args, shape.product.attrs, block=Block((WARPGROUP, 1, 1), None))
    if ctx.options.persistent == "auto" and ctx.options.clusters == "pairs":
        return Reject('the option clusters is "pairs": blocks with roles compute no product in pairs')
    if call.name != "gemm":
        return Reject("threads copy its metadata or scales to tensor memory")
    plan = TensorPlan.for_call(call)
    if isinstance(plan, Reject):
        return plan
    if plan.problem.c.scope != MATRIX:
        return Reject(f"{plan.problem.c.name} is not subtiled: registers hold all of it")
    buffers = 2 if 2 * plan.columns <= ALL_COLUMNS else 1
    # Blocks on one multiprocessor share its columns; each allocates its own.
    columns = allocated_columns(buffers * plan.columns + 2 * plan.metadata)
    at_a_time = max(1, min(ctx.capabilities.shared_bytes // size, ALL_COLUMNS // columns, 4))
    option = ctx.options.persistent
    blocks = min(option if isinstance(option, int) else _processors(ctx) * at_a_time, tiles)
    several = buffers if blocks < tiles else 1
    held = 0 if isinstance(option, int) else at_a_time
    return PersistentGrid(blocks, WARP, "thread", WARP, mma_threads=WARP, buffers=several, at_a_time=held)


def may_persist(plan: KernelPlan, ctx: Context) -> bool:
    """Whether the blocks of a program are likely to be persistent."""
    outer, auto = outer_grid(plan.body), ctx.options.persistent == "auto"
    fixed = auto or bool(ctx.capabilities.fact(TCGEN05))
    grid = "" if outer is None else grid_of(outer, fixed=fixed)
    if isinstance(grid, str) or cluster_of(plan.program.attrs) != (1, 1, 1):
        return False
    trips = nodes.as_int(grid.loops[0].extent)
    if _reason(plan.block.count, trips if isinstance(trips, int) else _LEAST_TRIPS, ctx):
        return False
    return not auto or bool(ctx.capabilities.fact(TCGEN05)) or prod(grid.extents.values()) > _processors(ctx)


def _reason(threads: int, trips: int, ctx: Context) -> str:
    """Return why a kernel with any copies is not persistent; empty if it may be."""
    if ctx.options.persistent == "never":
        return 'the option persistent is "never"'
    if not (ctx.capabilities.fact(WGMMA) or ctx.capabilities.fact(TCGEN05)):
        return "the target has no asynchronous products"
    if ctx.capabilities.fact(TCGEN05) and threads != WARPGROUP:
        return f"its block has {threads} threads; {WARPGROUP} read the accumulator"
    if threads > _MOST_THREADS or threads % WARPGROUP:
        return f"its block has {threads} threads; one more warp would leave too few registers"
    return f"its loop has {trips} iterations" if trips < _LEAST_TRIPS else ""
