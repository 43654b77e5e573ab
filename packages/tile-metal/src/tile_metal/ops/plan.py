"""Plan of a product on matrix instructions, and its requested threadgroup layouts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tile_core.dtypes import DTYPES
from tile_core.layout import Layout, LayoutMap, strided
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_core.simt.ops.products.plan import ProductPlan, no_instruction, too_few_threads
from tile_core.simt.ops.warp_partition import WarpPartition, splits
from tile_core.simt.variant import SimtCall
from tile_metal.chips import Chip, chip_of
from tile_metal.ops.atoms import SIMDGROUP, TENSOR, Unit, operand_type, table, total_of
from tile_metal.ops.fragments import accumulator, operand_a, operand_b
from tile_metal.target import SIMD, TENSOR_OPS

if TYPE_CHECKING:
    from tile_core.context import Context

PADDED = "rows apart by a vector more"
"""Note of a layout that this module requests; ``pipeline`` drops it if memory is short."""


@dataclass(frozen=True)
class SimdgroupPlan(ProductPlan):
    """How a product is computed: the instruction, its operands' type, and the simdgroups."""

    unit: Unit
    operand: str

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[int]:
        """Return the policy."""
        return (policy_of(call, problem),)

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> list[SimdgroupPlan] | Reject:
        """Return the splits of a product among simdgroups, best first, or the rejection."""
        policy, unit = facts
        operand = operand_type(*problem.types, unit)
        few = too_few_threads(threads, SIMD)
        if operand is None or few:
            return no_instruction(problem, table(unit)) if operand is None else Reject(few)
        tiles = -(-problem.m // unit.m), -(-problem.n // unit.n)
        groups = threads // SIMD
        best, *others = splits(*tiles, groups, policy, (unit.m, unit.n))
        # No layout of another product is worth simdgroups without work. K is not divided: of attention with 16 rows, 64
        # keys and 64 columns it would save two simdgroups 128 of 256 cycles (M5, published rates), and the exchange of
        # 4 KB of partial results through threadgroup memory takes as many. Nor are keys, which would need no exchange
        # in a loop: each simdgroup had maxima and totals of its own, which is another program.
        every = [best, *(s for s in others if s.warps >= best.warps or s.work <= best.work)]
        if problem.c.scope == "local.fragment":
            # In attention, simdgroups without work in the first product repeat that of others instead, if the second
            # one then finds its operand in their registers: no exchange, no barrier.
            idle = [s for s in every if groups % s.warps == 0 and s.work <= best.work]
            every += [replace(s, copies=groups // s.warps) for s in idle if s.warps < groups]
        return [cls(problem, s, threads, unit, operand) for s in every]

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction."""
        return self.unit.instruction

    @property
    def total(self) -> str:
        """Element type of the accumulators in registers."""
        return total_of(self.operand)

    def staged(self, role: int) -> str | None:
        """Return the instruction's type of small floats: each simdgroup would convert codes again."""
        dtype = (self.problem.a, self.problem.b)[role].dtype
        return self.operand if DTYPES[dtype].is_narrow else None

    def held(self, role: int) -> FragmentLayout:
        """Return where a fragment must be."""
        p, how = self.problem, (self.split, self.unit, self.threads)
        if role == 0:
            return operand_a(p.m, p.k, *how)
        return operand_b(p.k, p.n, *how) if role == 1 else accumulator(p.m, p.n, *how)

    def __str__(self) -> str:
        return f"{self.unit.function(self.total, self.operand)}, {self.split}"


def cycles(unit: Unit, split: WarpPartition, k: int, bits: int, chip: Chip) -> float:
    """Return the cycles of a product for a simdgroup that has a core alone."""
    work = split.work * unit.m * unit.n * -(-k // unit.k) * unit.k
    return work / chip.multiplications(unit != SIMDGROUP, bits)


def fastest(
    types: tuple[str, str, str], sizes: tuple[int, int, int], threads: int, policy: int, ctx: Context
) -> Unit | None:
    """Return the instructions with the fewest estimated cycles, or ``None`` without any."""
    chip = chip_of(ctx.target)

    def time(unit: Unit) -> float:
        tiles = -(-sizes[0] // unit.m), -(-sizes[1] // unit.n)
        split = splits(*tiles, max(1, threads // SIMD), policy, (unit.m, unit.n))[0]
        return cycles(unit, split, sizes[2], DTYPES[str(operand_type(*types, unit))].bits, chip)

    # Of equal ones the first: tensor operations.
    units = (TENSOR, SIMDGROUP) if ctx.capabilities.fact(TENSOR_OPS) else (SIMDGROUP,)
    return min((u for u in units if operand_type(*types, u) is not None), key=time, default=None)


def fastest_for(call: OpCall, threads: int, ctx: Context) -> Unit | None:
    """Return the same for a call."""
    p = Problem.of(call)
    return fastest(p.types, (p.m, p.n, p.k), threads, policy_of(call, p), ctx)


@cache
def padded(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout with rows padded by 16 bytes, against bank conflicts of 8-row blocks.

    ``None`` if rows are not whole vectors of 16 bytes, or lie in different banks anyway.
    """
    if bits < 8 or not all(isinstance(n, int) for n in shape) or shape[-1] * bits % 128 or shape[-1] * bits // 128 % 2:
        return None
    strides, distance = [1], shape[-1] + 128 // bits
    for extent in reversed(shape[1:-1]):
        strides.insert(0, distance)
        distance *= extent
    if len(shape) < 2:
        return None
    return Layout(shape, strided(shape, [distance, *strides]), span=distance * shape[0], note=PADDED)
