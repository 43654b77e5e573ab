"""What a product costs on the instructions of warpgroups and on those of warps, as data: ``wgmma="auto"`` asks.

The numbers are cycles of one multiprocessor, measured on one H200: an instruction takes as long as its multiplications,
or as reading its operands from shared memory at 128 bytes a cycle, whichever is more (A once for each instruction, B
once for all four warps). Both do not depend on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cuda.ops.warpgroup_plan import CHUNK, ROWS, WarpgroupPlan

SHARED_BYTES = 128
"""That a multiprocessor reads from shared memory in a cycle."""
MULTIPLICATIONS = 2048
"""Of 16-bit elements that a multiprocessor does in a cycle on ``wgmma``; of fewer bits as many times more."""
WAIT = 32
"""Cycles that the fence of a product, its commit and the wait for it take while other warps have work: assumed."""

WARP_RATES = {"16": 0.6, "32": 0.6, "int8": 0.6, "fp8": 0.25, "sparse": 0.5}
"""Part of the rate of ``wgmma`` that ``mma.sync`` reached, by what is multiplied.

Dense float16 reached 0.57 to 0.59 and 2:4 sparse float16 0.52 of libraries on ``wgmma``, 8-bit floats, which
``mma.sync`` converts to float16 first, 0.22. Others were not measured and are taken for float16.
"""


@dataclass(frozen=True)
class Estimate:
    """Cycles of a product of a block on either instructions."""

    warpgroups: int
    warps: int

    @property
    def is_worth_it(self) -> bool:
        """Whether warpgroups are not slower."""
        return self.warpgroups <= self.warps

    def __str__(self) -> str:
        return f"estimated {self.warpgroups} cycles, on mma.sync {self.warps}"


def estimate(plan: WarpgroupPlan) -> Estimate:
    """Return the estimate of a plan."""
    p, s, f = plan.problem, plan.split, plan.family
    steps, groups = p.k // plan.step, s.warps_m * s.warps_n
    a_bytes = ROWS * CHUNK if plan.shared(0) else 0
    b_bytes = CHUNK * (2 if f.sparse else 1)
    cycles = 0.0
    for _, columns in plan.pieces():
        # A sparse instruction does half of the multiplications of its dense extents.
        work = ROWS * columns * CHUNK * 8 / f.bits / (MULTIPLICATIONS * 16 / f.bits)
        cycles += max(work, (a_bytes + b_bytes * columns) / SHARED_BYTES)
    total = cycles * s.atoms_m * steps * groups + WAIT
    whole = p.m * p.n * p.k / (2 if f.sparse else 1) / (MULTIPLICATIONS * 16 / f.bits)
    kind = "sparse" if f.sparse else str(f.bits) if f.bits > 8 else "int8" if f.total == "int32" else "fp8"
    return Estimate(round(total), round(whole / WARP_RATES[kind]))
