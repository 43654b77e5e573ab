"""The model of tile shapes for ``tile.tilings``: products in a loop, and attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import POLICY
from tile_core.lowering.tilings import TiledProduct, TileShape, TilingEstimate, Workload
from tile_core.lowering.variant import Reject
from tile_core.numerics.levels import FAST, STRICT
from tile_core.numerics.regions import level_of_call
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.simt.ops.warp_partition import WarpPartition, splits
from tile_cuda.cost.kernel import TileKernel
from tile_cuda.machine import LAUNCH, machine_of
from tile_cuda.ops.product_cost import TileProduct, kind_of
from tile_cuda.ops.warpgroup_plan import ROWS, WARPGROUP, family_of, partitions
from tile_cuda.target import WARP, WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context

Instructions = tuple[str, WarpPartition]
"""The unit of a product, see `TileProduct`, and the warpgroups or warps with their instructions."""

#: Rows, columns and threads of tiles: on `wgmma`, `tcgen05` and `mma.sync`, and of the scores of chained products.
_TILES = {
    "wgmma": (
        (128, 256, 256), (256, 128, 256), (128, 192, 256), (192, 256, 384), (256, 192, 256), (192, 128, 384),
        (128, 160, 256), (128, 96, 256), (128, 224, 256),
        (128, 128, 128), (128, 128, 256), (64, 256, 128), (64, 192, 128), (64, 128, 128), (128, 64, 128), (64, 64, 128),
        (64, 96, 128), (64, 160, 128), (64, 224, 128),
    ),
    "tcgen05": ((128, 256, 128), (128, 128, 128), (256, 128, 128), (128, 192, 128), (128, 64, 128)),
    "": (
        (128, 256, 256), (256, 128, 256), (128, 128, 256), (128, 128, 128), (64, 128, 128), (128, 64, 128),
        (64, 64, 128),
    ),
}  # fmt: skip
_DEQUANTIZED = ((256, 64, 128),)
"""Tiles of many rows, for which threads convert few weights."""
SCORES = ((64, 64, 128), (128, 64, 128), (128, 128, 256), (128, 64, 256), (64, 128, 128))
_MORE_SCORES = ((192, 128, 384), (192, 64, 384), (128, 160, 256), (128, 176, 256), (128, 192, 256), (128, 80, 256))
_NARROW = ((64, 128, 5), (64, 64, 8), (128, 64, 6))
"""Columns, depth (of 16-bit elements) and stages of tiles of few rows."""
_FEW_ROWS = (16, 32, 64)
_LOOPS = tuple(product((64, 128), (3, 4, 5, 6, 8)))
_LOOPS_OF_WARPS = tuple(product((32, 64), (2, 3, 4)))
"""Depths and stages."""
_STAGES_OF_SCORES = (2, 3, 1)
_SPLITS = (1, 2, 4, 8, 16)
_OWN = frozenset(("m", "n", "k", "stages"))
_SCRATCH = 2048
"""Bytes of shared memory beside the tiles."""
_TENSOR_COLUMNS = 512
"""Columns of tensor memory."""


class CudaTilings:
    """Tile shapes, and the estimates of `tile_cuda.cost.kernel`."""

    def shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Context) -> Sequence[TileShape]:
        """Return tile shapes for the instructions of a target."""
        p, threads, found = workload.first, fixed.get("threads"), []
        if len(workload.products) > 1:
            every = product(SCORES + _MORE_SCORES, _STAGES_OF_SCORES)
            return [TileShape(m, n, p.k, threads or count, stages) for (m, n, count), stages in every]
        given = {role: fixed[role] for role in _OWN & set(fixed)}
        for s in _shapes(_bits(p), _widest(p, ctx), threads, _DEQUANTIZED if p.converted else ()):
            kept = {role: getattr(s, role) for role in _OWN} | given
            one = replace(
                workload,
                products=(replace(p, **kept),),
                threads=s.threads,
                shared_bytes=0,
                staged_bytes=0,
                converted_bytes=0,
            )
            kernel = kernel_of(one, ctx)
            if not isinstance(kernel, Reject) and not kernel.illegal():
                found += [replace(s, splits=n) for n in _SPLITS[: 1 if "splits" in fixed else None]]
        return found

    def estimate(self, workload: Workload, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a workload."""
        unknown = [p.types for p in workload.products if _bits(p) not in (4, 8, 16, 32)]
        if unknown:
            return Reject(f"products of {' and '.join(unknown[0][:2])} are not covered")
        kernel = kernel_of(workload, ctx)
        if isinstance(kernel, Reject):
            return kernel
        illegal = kernel.illegal()
        return Reject(illegal) if illegal else TilingEstimate(kernel.time, kernel.bound)


def is_chain(workload: Workload) -> bool:
    """Whether the second of two products multiplies the scores of the first, as in attention."""
    if len(workload.products) != 2 or any(p.op != "gemm" for p in workload.products):
        return False
    first, second = workload.products
    return (first.m, first.n) == (second.m, second.k) and second.scopes[0] == "local.fragment"


def kernel_of(
    workload: Workload, ctx: Context, made: Sequence[Instructions] = (), unit: str | None = None
) -> TileKernel | Reject:
    """Return the kernel of a workload, or why threads cannot share it.

    Parameters
    ----------
    made
        The instructions of each product, if they are known.
    unit
        The instructions of whole tiles; ``None``: the widest that the options allow.
    """
    machine, threads, products = machine_of(ctx.target.arch), workload.threads, list[TileProduct]()
    chained = is_chain(workload) or (len(made) == 2)
    for number, p in enumerate(map(_as_executed, workload.products) if not made else workload.products):
        how = made[number] if made else _instructions(p, threads, _widest(p, ctx) if unit is None else unit)
        if isinstance(how, Reject):
            return how
        products.append(_product(p, how, ctx, copied=not chained or number > 0))
    step, stages = workload.staged_bytes or sum(p.step_bytes for p in products), workload.first.stages
    shared = step * stages + max(0, workload.shared_bytes - step) + (0 if chained else _SCRATCH)
    shared += workload.converted_bytes * stages
    more = (workload.launches - 1) * LAUNCH + workload.other_bytes / machine.memory
    may_persist = workload.launches == 1 and ctx.options.persistent != "never"
    grid = (0, 0) if ctx.options.clusters == "never" else workload.grid
    splits = not chained and ctx.capabilities.max_cluster > 1 and bool(ctx.capabilities.fact(WGMMA))
    may_split = splits and len(products) == 1 and ctx.options.split_k == ctx.options.clusters == "auto"
    return TileKernel(
        machine, tuple(products), chained, workload.blocks, max(p.trips for p in workload.products), threads, stages,
        shared, ctx.capabilities.shared_bytes, workload.tensor_bytes, more, grid, may_persist,
        may_split=may_split, dequantized=sum(p.converted for p in workload.products),
    )  # fmt: skip


def _as_executed(p: TiledProduct) -> TiledProduct:
    """Return a product with its operands exchanged, if `tile_cuda.ops.gemm_exchanged` keeps weights in registers."""
    if not p.converted or p.op != "gemm" or p.n % ROWS or p.m % 8 or p.m > 256 or p.transposed != (False, True):
        return p
    scopes = ("local.fragment", p.scopes[0], p.scopes[2])
    return replace(p, m=p.n, n=p.m, scopes=scopes, pitches=p.pitches[::-1], types=(*p.types[1::-1], p.types[2]))


def _shapes(
    bits: int, unit: str, threads: int | None, more: Sequence[tuple[int, int, int]] = ()
) -> Iterator[TileShape]:
    """Yield tile shapes, the best of equal estimates first."""
    for m, (n, depth, stages) in product(_FEW_ROWS, _NARROW):
        yield TileShape(m, n, depth * 16 // bits, threads or WARPGROUP, stages)
    kept = dict.fromkeys((m, n, threads or count) for m, n, count in (*_TILES[unit], *more))
    for (m, n, count), (depth, stages) in product(kept, _LOOPS if unit else _LOOPS_OF_WARPS):
        yield TileShape(m, n, depth * 16 // bits, count, stages)


def _instructions(p: TiledProduct, threads: int, unit: str) -> Instructions | Reject:
    """Return the instructions of a product, or why threads cannot share it."""
    if p.m % ROWS or threads % WARPGROUP or (unit == "tcgen05" and threads != WARPGROUP):
        unit = ""
    is_held = p.scopes[0] == "local.fragment"
    policy = int(GemmWarpPolicy.FullRow) if is_held else int(str(p.attrs.get(POLICY, 0)))
    if unit == "tcgen05":
        fits = p.n * max(1, p.m // 128) <= _TENSOR_COLUMNS
        return (unit, WarpPartition(1, 1, 1, 1)) if fits else Reject(f"{p.m} x {p.n} accumulators exceed tensor memory")
    if unit:
        every = partitions(p.m, p.n, threads, policy)
        exact = next((s for s in every if s.warps == threads // WARPGROUP), None)
        return (unit, exact) if exact else Reject(f"{threads // WARPGROUP} warpgroups cannot share {p.m} x {p.n}")
    if p.m * p.n < 128 * threads // WARP:
        return Reject(f"{threads // WARP} warps cannot share {p.m} x {p.n}")
    return unit, splits(-(-p.m // 16), -(-p.n // 8), threads // WARP, policy)[0]


def _product(p: TiledProduct, how: Instructions, ctx: Context, copied: bool) -> TileProduct:
    """Return a product as estimates take it."""
    (unit, split), bits, is_held = how, _bits(p), p.scopes[0] == "local.fragment"
    kind = kind_of(bits, p.op == "gemm_sp", p.types[2])
    promoted = kind == "fp8" and unit == "wgmma" and level_of_call(p.attrs, ctx.options) != FAST
    kept = p.types[2] if DTYPES[p.types[2]].bits < 32 else ""
    return TileProduct(
        p.m, p.n, p.k, bits, kind, unit, split, is_held, copied, p.transposed, p.pitches, promoted, kept
    )  # fmt: skip


def _widest(p: TiledProduct, ctx: Context) -> str:
    """Return the instructions of whole tiles of a product, see `tile_cuda.ops.gemm_wgmma`."""
    if ctx.options.tcgen05 == "always":
        return "tcgen05"
    if not ctx.capabilities.fact(WGMMA) or ctx.options.wgmma == "never" or p.op == "gemm_scaled":
        return ""
    strict = level_of_call(p.attrs, ctx.options) == STRICT and DTYPES[p.types[0]].is_float
    if family_of(p.types, p.op == "gemm_sp") is None or p.scopes[1] != "shared" or strict:
        return ""
    # Narrower and wider elements are adjacent along K only.
    along_k = p.transposed[1] and (not p.transposed[0] or p.scopes[0] != "shared")
    return "wgmma" if _bits(p) == 16 or along_k else ""


def _bits(p: TiledProduct) -> int:
    return max(DTYPES[t].bits for t in p.types[:2])
