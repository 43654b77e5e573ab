"""The model of tile shapes for ``tile.tilings``: products in a loop, and attention.

An iteration takes as long as its products, its operands from caches or its threadgroup memory, whichever is most, or as
one threadgroup alone needs with its waits, divided by the threadgroups that a core runs at a time. Memory, the ends of
tiles and cores that the last tiles leave idle come on top. Nothing is fitted: no Apple GPU was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import POLICY
from tile_core.lowering.tilings import TiledProduct, TileShape, TilingEstimate, Workload
from tile_core.lowering.variant import Reject
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.records import dataclass
from tile_core.simt.ops.warp_partition import WarpPartition, splits
from tile_core.simt.pipelining.staging import MOST_BYTES
from tile_metal import chips as rates
from tile_metal.chips import Chip, chip_of, combined
from tile_metal.ops.atoms import TENSOR, Unit, operand_type
from tile_metal.ops.plan import cycles, fastest
from tile_metal.target import SIMD, THREAD_REGISTERS

if TYPE_CHECKING:
    from tile_core.context import Context

#: Rows, columns and threads of tiles.
_TILES = (
    (64, 64, 64), (64, 64, 128), (32, 64, 64), (64, 32, 64), (32, 32, 64), (32, 32, 128), (32, 64, 128), (64, 32, 128),
    (64, 128, 128), (128, 64, 128), (128, 128, 256), (16, 64, 64), (16, 32, 64), (8, 64, 64),
)  # fmt: skip
_DEPTHS, _STAGES, _SPLITS = (16, 32, 64), (2, 1), (1, 2, 4, 8)
#: Bytes of the longest rows of tiles.
_MOST_ROW = 128
_WAITS, _LATENCY, _ENDS = 120.0, 500.0, 2000.0
"""Cycles of an iteration's barriers, of a load, and of the beginning and end of a tile."""
_OF_EXPONENTIAL = 16
"""Operations of a score between the products of attention."""
_OTHERS = 24
"""Registers of a thread for addresses and indices."""
_LAUNCH = 5.0
"""Microseconds of one more launch."""


@dataclass(frozen=True)
class _Part:
    """One product of an iteration, as simdgroups share it."""

    tiled: TiledProduct
    unit: Unit
    split: WarpPartition
    bits: int
    direct: bool
    copied: bool
    exchanged: bool
    """Whether A is a fragment that simdgroups side by side pass on through threadgroup memory."""

    @property
    def read(self) -> int:
        """Bytes that all simdgroups read as operands of their instructions."""
        in_memory = self.exchanged or self.tiled.scopes[0] != "local.fragment"
        rows = self.split.atoms_m * self.unit.m if in_memory else 0
        return self.split.warps * (rows + self.split.atoms_n * self.unit.n) * self.tiled.k * self.bits // 8

    @property
    def loaded(self) -> int:
        """Bytes of its tiles that a threadgroup loads."""
        if not self.copied:
            return 0
        rows = self.tiled.m if self.tiled.scopes[0] != "local.fragment" else 0
        return sum(
            n * self.tiled.k * DTYPES[t].bits // 8
            for n, t in zip((rows, self.tiled.n), self.tiled.types[:2], strict=True)
        )

    @property
    def staged(self) -> int:
        """Bytes of its tiles in threadgroup memory."""
        rows = self.tiled.m if self.tiled.scopes[0] == "shared" else 0
        return 0 if self.direct else (rows + self.tiled.n) * (self.tiled.k * self.bits // 8 + 16)

    @property
    def registers(self) -> int:
        """Registers of a thread for accumulators and operands."""
        s, u = self.split, self.unit
        held = min(s.atoms_m * u.m, s.atoms_n * u.n) * u.k * self.bits // 32 // SIMD
        return s.atoms_m * s.atoms_n * u.m * u.n // SIMD + held

    def cycles(self, chip: Chip, groups: int) -> float:
        """Return the cycles of a core; simdgroups without work occupy it as well."""
        return cycles(self.unit, self.split, self.tiled.k, self.bits, chip) * groups


class MetalTilings:
    """Tile shapes and their estimates; stateless."""

    def shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Context) -> Sequence[TileShape]:
        """Return tile shapes whose tiles and accumulators fit."""
        p, found, is_chain = workload.first, list[TileShape](), len(workload.products) > 1
        most = _MOST_ROW * 8 // min(DTYPES[t].bits for t in p.types[:2])
        depths = (p.k,) if is_chain else tuple(k for k in _DEPTHS if k <= most)
        for (m, n, count), k, stages in product(_TILES, depths, _STAGES):
            own = {"m": m, "n": n, "k": k, "threads": count, "stages": stages} | dict(fixed)
            shape = TileShape(own["m"], own["n"], own["k"], own["threads"], own["stages"])
            one = replace(p, m=shape.m, n=shape.n, k=shape.k, stages=shape.stages)
            if not isinstance(_kernel(replace(workload, products=(one,), threads=shape.threads), ctx), Reject):
                found += [replace(shape, splits=n) for n in _SPLITS[: 1 if "splits" in fixed else None]]
        return found

    def estimate(self, workload: Workload, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a workload."""
        parts = _kernel(workload, ctx)
        return parts if isinstance(parts, Reject) else _time(parts, workload, chip_of(ctx.target), ctx)


def _kernel(workload: Workload, ctx: Context) -> list[_Part] | Reject:
    """Return the products of an iteration, or why a threadgroup cannot have them."""
    groups, parts = workload.threads // SIMD, list[_Part]()
    if not groups:
        return Reject(f"threads={workload.threads} is less than {SIMD}")
    for number, p in enumerate(workload.products):
        held = p.scopes[0] == "local.fragment"
        policy = int(GemmWarpPolicy.FullRow) if held else int(str(p.attrs.get(POLICY, 0)))
        unit = fastest(p.types, (p.m, p.n, p.k), workload.threads, policy, ctx)
        if unit is None or p.op == "gemm_scaled":
            return Reject(f"products of {' and '.join(p.types[:2])} are not covered")
        split = splits(-(-p.m // unit.m), -(-p.n // unit.n), groups, policy, (unit.m, unit.n))[0]
        bits = DTYPES[str(operand_type(*p.types, unit))].bits
        narrow = any(DTYPES[t].bits < bits for t in p.types[:2])
        direct = unit == TENSOR and not narrow and max(split.warps_m, split.warps_n) <= 4 and p.op == "gemm"
        before = parts[-1].split if parts else split
        exchanged = held and split.warps_n > 1 and (before.warps_m, before.warps_n) != (split.warps_m, 1)
        parts.append(_Part(p, unit, split, bits, direct, number > 0 or len(workload.products) == 1, exchanged))
    staged = sum(part.staged for part in parts)
    if staged > ctx.capabilities.shared_bytes:
        return Reject(f"tiles take {staged} of {ctx.capabilities.shared_bytes} bytes of threadgroup memory")
    needed = _registers(parts, workload)
    if needed > THREAD_REGISTERS:
        return Reject(f"a thread needs about {needed} of {THREAD_REGISTERS} registers")
    return parts


def _registers(parts: Sequence[_Part], workload: Workload) -> int:
    prefetched = sum(p.loaded for p in parts if not p.direct) // workload.threads
    held = -(-prefetched // 4) if workload.first.stages > 1 and prefetched <= MOST_BYTES else 0
    return sum(p.registers for p in parts) + held + _OTHERS


def _time(parts: Sequence[_Part], workload: Workload, chip: Chip, ctx: Context) -> TilingEstimate:
    """Return the time of all launches with its limit."""
    groups = workload.threads // SIMD
    scores = workload.first.m * workload.first.n * (len(parts) > 1)
    multiplied = sum(p.cycles(chip, groups) for p in parts) + scores * _OF_EXPONENTIAL / rates.MULTIPLICATIONS
    through = sum(p.read / (rates.CACHED_BYTES if p.direct else rates.THREADGROUP_BYTES) for p in parts)
    through += sum(p.loaded / rates.THREADGROUP_BYTES for p in parts if not p.direct)
    through += sum(p.tiled.m * p.tiled.k * p.bits // 8 / rates.THREADGROUP_BYTES for p in parts if p.exchanged)
    loaded = sum(p.loaded for p in parts) / rates.LOADED_BYTES
    prefetched = workload.first.stages > 1 and any(p.loaded // workload.threads <= MOST_BYTES for p in parts)
    waits = sum((not p.direct) + 3 * p.exchanged for p in parts) * _WAITS + (0.0 if prefetched else _LATENCY)
    fit = ctx.capabilities.block_registers // (_registers(parts, workload) * workload.threads)
    staged = sum(p.staged for p in parts)
    resident = max(1, min(fit, rates.CORE_THREADGROUP_BYTES // staged if staged else fit))
    most = -(-workload.blocks // chip.cores)
    alone = (multiplied * max(1.0, 4 / groups) + waits) / min(resident, most)
    costs = {
        "products": multiplied,
        "operands of simdgroups": through,
        "loads": loaded,
        "the waits of iterations": alone,
    }
    busy = combined(costs.values())
    cycles = most * max(p.tiled.trips for p in parts) * busy + _ENDS * (1 + (most - 1) / resident)
    moved = workload.tensor_bytes / chip.memory
    more = (workload.launches - 1) * _LAUNCH + workload.other_bytes / chip.memory
    time = combined((cycles / chip.clock, moved)) + more
    limit = "memory" if moved > cycles / chip.clock else max(costs, key=lambda name: costs[name])
    where = f"{workload.blocks} threadgroups, at most {most} on each of {chip.cores} cores of an {chip.name}"
    return TilingEstimate(time, f"{where}; limited by {limit} (published rates, not measured)")
