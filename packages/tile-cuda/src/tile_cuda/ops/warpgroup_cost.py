"""Cost of a product on wgmma and on mma.sync, as data for ``wgmma="auto"``.

The numbers are cycles of one multiprocessor, measured on one H200: an instruction takes as long as its multiplications,
or as reading its operands from shared memory at 128 bytes a cycle, whichever is more (A once for each instruction, B
once for all four warps). Both do not depend on the clock.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ops.base import View
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_core.simt.pipelining.overlap import Candidates
from tile_cuda.ops.warpgroup_plan import CHUNK, ROWS, WARPGROUP, WarpgroupPlan
from tile_cuda.options import MOST_REGISTERS
from tile_cuda.target import REGISTERS, WARP

SHARED_BYTES = 128
"""That a multiprocessor reads from shared memory in a cycle."""
MULTIPLICATIONS = 2048
"""16-bit multiplications of a multiprocessor per cycle on ``wgmma``; proportionally more for fewer bits."""
ADDITIONS = 128
"""Of float32 that a multiprocessor does in a cycle."""
WAIT = 32
"""Cycles that the fence of a product, its commit and the wait for it take while other warps have work: assumed."""

WARP_RATES = {"16": 0.6, "32": 0.6, "int8": 0.6, "fp8": 0.25, "sparse": 0.5}
"""Part of the rate of ``wgmma`` that ``mma.sync`` reached, by what is multiplied.

Dense float16 reached 0.57 to 0.59 and 2:4 sparse float16 0.52 of libraries on ``wgmma``, 8-bit floats, which
``mma.sync`` converts to float16 first, 0.22. Others were not measured and are taken for float16.
"""


OTHER_REGISTERS = 32
"""Registers of a thread beside the accumulators and, with overlap, register operands; in attention."""
LEAST_ACCUMULATORS = 64
"""Of a thread, of a product that others work beside."""


@dataclass(frozen=True)
class Estimate:
    """Cycles of a block's product on either instruction, and those for promotion."""

    warpgroups: int
    warps: int
    adds: int = 0

    @property
    def is_worth_it(self) -> bool:
        """Whether warpgroups are faster."""
        return self.warpgroups < self.warps

    def __str__(self) -> str:
        adds = f", {self.adds} of them for promotion" if self.adds else ""
        return f"estimated {self.warpgroups} cycles{adds}, on mma.sync {self.warps}"


def not_faster(found: Candidates, ping_pong: bool, most: int | None, shared_bytes: int | None) -> str:
    """Return why overlapped iterations are not faster; empty if they are.

    Measured on an H200 with attention forward, relative to cuDNN: ping-pong reached 0.94 (d = 128, tiles of
    128 keys; 0.79 without overlap), overlap without ping-pong on an H100 0.69, since all warpgroups add at the same
    time. Two blocks of a multiprocessor fill each other's gaps as well: 1.10, ping-pong 0.81 (d = 64). Tiles of 64 keys
    give products that are too short to work beside: 0.55, without overlap 0.68.
    """
    if not found.trips:
        return ""  # waits move behind what does not need them
    if not ping_pong:
        return "it has one warpgroup" if found.threads <= WARPGROUP else "its warpgroups cannot ping-pong"
    registers = _registers(replace(found, calls=found.calls[:1]), False) - OTHER_REGISTERS
    if registers < LEAST_ACCUMULATORS:
        return f"its first product, with {registers} accumulators a thread, is too short to overlap"
    needed = _registers(found, True)
    limit = min(MOST_REGISTERS if most is None else most, REGISTERS // found.threads // 8 * 8)
    if needed > limit:
        return f"it would need about {needed} registers of a thread, which has {limit}"
    apart = _registers(found, False)
    fits = apart * 2 * found.threads <= REGISTERS and found.shared_bytes * 2 <= (shared_bytes or 0)
    return f"two blocks of about {apart} registers a thread run beside each other" if fits else ""


def _registers(found: Candidates, overlaps: bool) -> int:
    """Return how many registers of a thread the products of a loop need."""
    held: dict[BufferVar, View] = {}
    for call in found.calls:
        accumulator = call.args[accumulator_of(call)]
        held |= {v.buffer: v for v in call.args if isinstance(v, View) and (overlaps or v is accumulator)}
    fragments = [v for v in held.values() if v.scope == "local.fragment"]
    bits = sum(prod(map(int, v.extents)) * DTYPES[v.dtype].bits for v in fragments)
    return -(-bits // (32 * found.threads)) + OTHER_REGISTERS


def estimate(plan: WarpgroupPlan) -> Estimate:
    """Return the estimate of a plan."""
    p, s, f = plan.problem, plan.split, plan.family
    steps, groups = p.k // plan.step, s.warps_m * s.warps_n
    a_bytes = ROWS * CHUNK if plan.shared(0) else 0
    b_bytes = CHUNK * (2 if f.sparse else 1)
    cycles = 0.0
    for _, columns in plan.column_runs():
        # A sparse instruction does half of the multiplications of its dense extents.
        work = ROWS * columns * CHUNK * 8 / f.bits / (MULTIPLICATIONS * 16 / f.bits)
        cycles += max(work, (a_bytes + b_bytes * columns) / SHARED_BYTES)
    parts = -(-steps // plan.every) if plan.every else 0
    # Beside the products of other warpgroups, additions cost less: at most this.
    adds = parts * (p.m * p.n / ADDITIONS + WAIT * s.atoms_m * len(list(plan.column_runs())))
    total = cycles * s.atoms_m * steps * groups + WAIT + adds
    whole = p.m * p.n * p.k / (2 if f.sparse else 1) / (MULTIPLICATIONS * 16 / f.bits)
    kind = "sparse" if f.sparse else str(f.bits) if f.bits > 8 else "int8" if f.total == "int32" else "fp8"
    return Estimate(round(total), round(max(whole / WARP_RATES[kind], _read_by_warps(plan))), round(adds))


def _read_by_warps(plan: WarpgroupPlan) -> float:
    """Return the cycles of warps' operand loads from shared memory, each for its tile.

    Measured on an H100: float16 products of 64 x 64 x 64 take 0.66 ms on 8 warps where two warpgroups take 0.46, and
    scores of 64 x 32 on 4 warps make attention forward 1.2 to 1.4 times as slow. A in a fragment has its rows spread.
    """
    p, f, warps = plan.problem, plan.family, plan.threads // WARP
    b = p.n * p.k * f.bits / 8
    if not plan.shared(0):
        return b * warps / SHARED_BYTES
    a = p.m * plan.depth * f.bits / 8
    grids = ((high, warps // high) for high in range(1, warps + 1) if warps % high == 0)
    return min(a * wide + b * high for high, wide in grids) / SHARED_BYTES
