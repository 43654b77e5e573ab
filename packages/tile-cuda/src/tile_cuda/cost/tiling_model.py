"""The model of tile shapes for ``tile.tilings``: products in a pipelined loop, and attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.lowering.tilings import TiledProduct, TileShape, TilingEstimate, Workload
from tile_core.lowering.variant import Reject
from tile_core.numerics.levels import FAST, STRICT
from tile_core.numerics.regions import level_of_call
from tile_cuda.cost.chains import Chain, Spread
from tile_cuda.cost.tile_shapes import shapes_of
from tile_cuda.cost.tile_time import AMPERE, BLACKWELL, HOPPER, Machine, TileKernel, TileProduct
from tile_cuda.ops.warpgroup_plan import COLUMNS, ROWS, WARPGROUP, family_of
from tile_cuda.target import TCGEN05, WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context

_ATTENTION = (
    (64, 64, 128), (128, 64, 128), (128, 128, 256), (128, 64, 256), (64, 128, 128), (192, 128, 384), (192, 64, 384),
)  # fmt: skip
"""Rows, columns and threads of tiles of scores."""
_STAGES = (2, 3, 1)
_OWN = frozenset(("m", "n", "k", "stages"))
_TENSOR_COLUMNS = 512
"""Columns of tensor memory."""


class CudaTilings:
    """Estimates of `tile_cuda.cost.tile_time`, and of `tile_cuda.cost.chains` for two chained products."""

    def shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Context) -> Sequence[TileShape]:
        """Return tile shapes for the instructions of a target."""
        return list(self._shapes(workload, fixed, ctx))

    def estimate(self, workload: Workload, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a workload."""
        unknown = [p.types for p in workload.products if _bits(p) not in (4, 8, 16, 32)]
        if unknown:
            return Reject(f"products of {' and '.join(unknown[0][:2])} are not covered")
        if is_chain(workload):
            return _chain_time(workload, ctx)
        kernel = kernel_of(workload, ctx)
        illegal = kernel.illegal() or _misfit(workload, kernel, ctx)
        if illegal:
            return Reject(illegal)
        return TilingEstimate(*kernel.time(machine_of(ctx)))

    def _shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Context) -> Iterator[TileShape]:
        p, threads = workload.first, fixed.get("threads")
        if is_chain(workload):
            for m, n, count in _ATTENTION:
                for stages in _STAGES:
                    yield TileShape(m, n, p.k, threads or count, stages)
            return
        wide = "tcgen05" if ctx.options.tcgen05 == "always" else "wgmma" if _may_be_wide(p, ctx) else ""
        for s in shapes_of(_bits(p), wide, "splits" not in fixed, threads):
            kept = {role: getattr(s, role) for role in ("m", "n", "k", "stages")} | {
                r: fixed[r] for r in _OWN & set(fixed)
            }
            one = replace(workload, products=(replace(p, **kept),), threads=s.threads, shared_bytes=0)
            if not kernel_of(one, ctx).illegal():
                yield s


def machine_of(ctx: Context) -> Machine:
    """Return the rates of a target's devices."""
    if ctx.capabilities.fact(WGMMA):
        return HOPPER
    return BLACKWELL if ctx.capabilities.fact(TCGEN05) else AMPERE


def is_chain(workload: Workload) -> bool:
    """Whether the second of two products multiplies the scores of the first, as in attention."""
    if len(workload.products) != 2 or any(p.op != "gemm" for p in workload.products):
        return False
    first, second = workload.products
    return (first.m, first.n) == (second.m, second.k) and second.scopes[0] == "local.fragment"


def kernel_of(workload: Workload, ctx: Context) -> TileKernel:
    """Return the kernel of a workload, as an estimate takes it."""
    machine = machine_of(ctx)
    products = tuple(_tile_product(p, workload.threads, ctx) for p in workload.products)
    slots = sum(p.step_bytes for p in products)
    other = max(0, workload.shared_bytes - slots)
    more = (workload.launches - 1) * machine.launch + workload.other_bytes / machine.memory
    splits = 2 if workload.launches > 1 else 1
    return TileKernel(
        products, workload.blocks, workload.threads, workload.first.stages, splits, other, workload.tensor_bytes,
        more, (0, 0), ctx.capabilities.shared_bytes,
    )  # fmt: skip


def _tile_product(p: TiledProduct, threads: int, ctx: Context) -> TileProduct:
    bits, sparse = _bits(p), p.op == "gemm_sp"
    wide = ""
    if ctx.options.tcgen05 == "always" and threads == WARPGROUP and p.m % ROWS == 0:
        wide = "tcgen05"
    elif _may_be_wide(p, ctx) and p.m % ROWS == 0 and threads % WARPGROUP == 0:
        wide = "wgmma"
    kind = "sparse" if sparse else str(bits) if bits > 8 else "int8" if p.types[2] == "int32" else "fp8"
    held = p.scopes[0] == "local.fragment"
    promoted = kind == "fp8" and wide == "wgmma" and level_of_call(p.attrs, ctx.options) != FAST
    return TileProduct(p.m, p.n, p.k, bits, kind, sparse, wide, p.transposed, held, p.pitches, p.trips, promoted)


def _may_be_wide(p: TiledProduct, ctx: Context) -> bool:
    """Whether whole tiles of a product run on `wgmma`, see `tile_cuda.ops.gemm_wgmma`."""
    if not ctx.capabilities.fact(WGMMA) or ctx.options.wgmma == "never" or p.op == "gemm_scaled":
        return False
    if family_of(p.types, p.op == "gemm_sp") is None or p.scopes[1] != "shared":
        return False
    bits = _bits(p)
    if level_of_call(p.attrs, ctx.options) == STRICT and DTYPES[p.types[0]].is_float:
        return False
    # Narrower and wider elements are adjacent along K only.
    return bits == 16 or (p.transposed[1] and (not p.transposed[0] or p.scopes[0] != "shared"))


def _misfit(workload: Workload, kernel: TileKernel, ctx: Context) -> str:
    """Return why a block cannot divide its product among its threads; empty if it can."""
    p, groups = workload.first, workload.threads // WARPGROUP
    tile = kernel.products[0]
    if tile.wide == "wgmma" and (p.m // ROWS) * (p.n // COLUMNS) % groups:
        return f"{groups} warpgroups cannot share {p.m} x {p.n}"
    if tile.wide == "tcgen05" and p.n * max(1, p.m // 128) > _TENSOR_COLUMNS:
        return f"{p.m} x {p.n} accumulators exceed tensor memory"
    warps = workload.threads // 32
    if not tile.wide and p.m * p.n < 128 * warps:
        return f"{warps} warps cannot share {p.m} x {p.n}"
    return ""


def _chain_time(workload: Workload, ctx: Context) -> TilingEstimate | Reject:
    """Return the estimated time of two chained products."""
    first, second = workload.products
    groups, machine = workload.threads // WARPGROUP, machine_of(ctx)
    if not all(_may_be_wide(p, ctx) for p in workload.products) or first.m % ROWS or not groups:
        return Reject("chained products are estimated on wgmma only")
    if (first.m // ROWS) % groups:
        return Reject(f"{groups} warpgroups cannot share {first.m} rows of scores")
    rows = first.m // ROWS // groups
    spreads = (Spread(True, groups, 1, rows, columns // COLUMNS) for columns in (first.n, second.n))
    bits = _bits(first)
    shared = (first.m * first.k + first.stages * first.n * (first.k + second.n)) * bits // 8
    kept = "" if DTYPES[first.types[2]].bits == 32 else first.types[2]
    chain = Chain(
        first.m, first.n, first.k, second.n, workload.threads, first.stages, bits, kept, shared, *spreads
    )  # fmt: skip
    if shared > ctx.capabilities.shared_bytes:
        return Reject(f"tiles take {shared} of {ctx.capabilities.shared_bytes} bytes of shared memory")
    if chain.needed > chain.limit:
        return Reject(f"a thread needs about {chain.needed} of {chain.limit} registers")
    most = -(-workload.blocks // machine.processors)
    cycles = most * first.trips * first.m * first.n * chain.cycles
    time = max(cycles / machine.clock, workload.tensor_bytes / machine.memory)
    where = f"{workload.blocks} tiles, at most {most} on each of {machine.processors} multiprocessors"
    limit = "exponentials and products" if chain.busy >= chain.alone / chain.blocks else "the waits of its warpgroups"
    return TilingEstimate(time, f"{where}; limited by {limit}")


def _bits(p: TiledProduct) -> int:
    return max(DTYPES[t].bits for t in p.types[:2])
