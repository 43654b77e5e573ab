"""Performance warnings about tiles that are estimated to be far from the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import log2, prod
from typing import TYPE_CHECKING

from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.lowering.tilings import Workload
from tile_core.lowering.variant import Reject
from tile_core.passes.performance import PerformanceNote
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.async_products import products_of
from tile_core.simt.pipelining.plan import stages_of as asked_of
from tile_core.simt.pipelining.schedule import Arrival, Schedule
from tile_core.tiling.workload import workload_of
from tile_cuda.cost.kernel import TileKernel, stages_of
from tile_cuda.cost.tilings import SCORES, Instructions, is_chain, kernel_of
from tile_cuda.machine import machine_of
from tile_cuda.ops.warpgroup_plan import family_of
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import OpChoice

FAR = 1.36
"""Times of the best estimate from which there is a warning. Of 340 kernels timed on H100, all 214 that took more than
twice as long as the best get one; the fastest of the others that do took 1.17 times as long."""
LEAST = 2**33
"""Multiplications of a launch, below which tiles are small because the problem is."""
_NEAR = 1.15
"""Times of the best: all such tiles are good advice, and the nearest of them is given."""
_TILES = ((128, 256, 256), (256, 128, 256), (128, 128, 128), (64, 256, 128))
"""Rows, columns and threads of tiles that are fast."""
_MEASURED, _SHORT = ("gemm", "gemm_sp"), ("float16", "bfloat16")
_OF_WARPGROUPS = "cuda.wgmma"
"""What names of variants begin with that multiply on instructions of warpgroups."""


def note_slow(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Add a performance note if other tiles are estimated to be far faster."""
    loop = loop_of(plan) if machine_of(ctx.target.arch).measured and ctx.capabilities.fact(WGMMA) else None
    workload = None if loop is None else workload_of(plan.program, {})
    found = compiled(workload, plan, ctx) if workload is not None and _work(workload) >= LEAST else None
    if loop is None or workload is None or found is None:
        return plan
    text = advice(found, list(better(workload, _matrices(plan), ctx)))
    (made,) = plan.pipeline.loops
    if text and not made.stages and made.kept and asked_of(loop) > 1:
        text = "loop not pipelined: {} is not prefetched: {}".format(*made.kept[0])
    return plan.replace(slow=(*plan.slow, PerformanceNote("tiles", text))) if text else plan


def advice(found: TileKernel, others: list[TileKernel]) -> str:
    """Return the text of a warning; empty if no other kernel is far faster."""
    best = min((c.time for c in others), default=found.time)
    times = found.time / best
    if times < FAR:
        return ""
    nearest = min((c for c in others if c.time <= _NEAR * best), key=lambda c: _distance(c, found))
    also = f", and {'scores of float32' if found.chained else 'a float32 accumulator'}" if found.kept else ""
    text = f"the nearest better ones are {_text(nearest)}{also}"
    if not _distance(nearest, found) and not also:
        text = "without that they are among the best"
    return (
        f"tiles of {_text(found)} are estimated to take {times:.1f} times as long as the best: {found.reason}; {text}"
    )


def compiled(workload: Workload, plan: KernelPlan, ctx: Context) -> TileKernel | None:
    """Return the compiled kernel of a launch; ``None`` if it is not covered."""
    # Overlapped loops have copies of a product before and after.
    choices: dict[object, OpChoice] = {c.call.where: c for c in reversed(plan.choices) if c.call.name in _MEASURED}
    made = [_instructions(c) for c in reversed(choices.values())]
    if len(made) != len(workload.products) or not (len(made) == 1 or _is_chain(workload)):
        return None
    given = [one for one in made if one is not None]
    found = kernel_of(workload, ctx, given) if len(given) == len(made) else None
    if found is None or isinstance(found, Reject):
        return None
    (loop,) = plan.pipeline.loops
    rejected = (r for c in choices.values() for r in c.selection.rejected if r.name.startswith(_OF_WARPGROUPS))
    refused = next((r.reason for r in rejected), "")
    return replace(found, stages=loop.stages or 1, shared=plan.arena.bytes, refused=refused)


def better(workload: Workload, matrices: list[tuple[int, int, int]], ctx: Context) -> Iterator[TileKernel]:
    """Yield the legal kernels to compare one with.

    Parameters
    ----------
    matrices
        Matrices of the launch: how many of a size, their rows, and their columns. If one of them is the result, its
        tiles are those that it fills by at least half.
    """
    first, *others = workload.products
    width = others[0].n if others else first.n
    tiled = (of for of in matrices if of[0] * _parts(of[1], first.m) * _parts(of[2], width) == workload.blocks)
    result, bits = next(tiled, None), DTYPES[first.types[0]].bits
    depth = first.k if others else 1024 // bits
    for (m, n, threads), stages in product(SCORES if others else _TILES, (2, 3) if others else (4, 3)):
        wide = width if others else n
        if result is not None and (2 * result[1] <= m or 2 * result[2] <= wide):
            continue
        grid = (_parts(result[2], wide), _parts(result[1], m)) if result else (0, 0)
        blocks = result[0] * prod(grid) if result else round(workload.blocks * first.m * width / (m * wide))
        trips = max(1, first.trips * (first.n if others else first.k) // (n if others else depth))
        types = (*first.types[:2], "float32" if first.types[2] in _SHORT else first.types[2])
        converted = first.converted * n * depth // (first.n * first.k)
        one = replace(first, m=m, n=n, k=depth, trips=trips, stages=stages, types=types, converted=converted)
        rest = [replace(p, m=m, k=n, trips=trips) for p in others]
        made = replace(
            workload, products=(one, *rest), blocks=max(1, blocks), threads=threads, grid=grid,
            shared_bytes=(m * depth + n * (depth + wide)) * bits // 8 if others else 0, staged_bytes=0,
        )  # fmt: skip
        kernel = kernel_of(made, ctx, unit="wgmma")
        if not isinstance(kernel, Reject) and not kernel.illegal():
            yield kernel


def loop_of(plan: KernelPlan) -> tirx.For | None:
    """Return the loop of a launch that estimates cover, or ``None``.

    They are about kernels with one pipelined loop, which copies, and in which all products stand, each once in an
    iteration. How many iterations there are depends on nothing but the block.
    """
    body, made = plan.program.func.body, [r for r in plan.pipeline.loops if not _hands_over(r.schedule)]
    loops = collect(body, tirx.For)
    pipelined, grid = ([s for s in loops if role(s) == kind] for kind in ("pipelined", "grid"))
    if len(pipelined) != 1 or len(made) != 1 or not all(isinstance(s.extent, tirx.IntImm) for s in grid):
        return None
    loop, ranges = pipelined[0], Ranges()
    for s in grid:
        ranges.loop(s)
    inside = any(products_of(s.body) for s in collect(loop.body, tirx.For))
    if inside or len(products_of(loop.body)) != len(products_of(body)):
        return None
    if not all(ranges.knows(v) for v in collect(loop.extent, tirx.Var)):
        return None
    return None if not made[0].stages and asked_of(loop) > 1 and not made[0].kept else loop


def _hands_over(schedule: Schedule | None) -> bool:
    """Whether a schedule is that of accumulators, which an MMA warp hands over (`mma_warp.py`)."""
    return schedule is not None and any(isinstance(g.completion, Arrival) for g in schedule.groups)


def _work(workload: Workload) -> int:
    return workload.blocks * sum(p.m * p.n * p.k * p.trips for p in workload.products)


def _is_chain(workload: Workload) -> bool:
    """Whether two products are chained as in attention that was timed."""
    if len(workload.products) != 2 or any(DTYPES[p.types[0]].bits != 16 for p in workload.products):
        return False
    first, second = workload.products
    return is_chain(workload) or (first.scopes[2] == "shared" and (first.m, first.n) == (second.m, second.k))


def _instructions(choice: OpChoice) -> Instructions | None:
    """Return the instructions of a product that wgmma supports, or ``None``."""
    variant, call = choice.selection.variant, choice.call
    made = variant.plan(call) if hasattr(variant, "plan") else None
    if made is None or isinstance(made, Reject) or family_of(made.problem.types, call.name == "gemm_sp") is None:
        return None
    return ("wgmma" if variant.name.startswith(_OF_WARPGROUPS) else ""), made.split


def _matrices(plan: KernelPlan) -> list[tuple[int, int, int]]:
    """Return the matrices of tensors whose sizes are known, see `better`."""
    shapes = (nodes.shape_of(v) for v in plan.program.func.params if tirx.is_buffer_var(v))
    known = (tuple(map(int, s)) for s in shapes if len(s) > 1 and all(isinstance(n, int) for n in s))
    return [(prod(s[:-2]), s[-2], s[-1]) for s in known]


def _parts(size: int, extent: int) -> int:
    return -(-size // extent)


def _text(kernel: TileKernel) -> str:
    p, of = kernel.products[0], f"with {kernel.threads} threads and {stages_of(kernel.stages)}"
    return f"{p.m} x {p.n} scores {of}" if kernel.chained else f"{p.m} x {p.n} x {p.k} {of}"


def _distance(one: TileKernel, other: TileKernel) -> float:
    """Return how far the parameters are apart that an author chooses."""
    sizes = ((p.m, p.n, p.k, k.threads, k.stages) for k in (one, other) for p in k.products[:1])
    return sum(abs(log2(a / b)) for a, b in zip(*sizes, strict=True))
