"""Plan of a product on matrix instructions, and its requested threadgroup layouts."""

from __future__ import annotations

from functools import cache
from typing import Any

from tile_core.dtypes import DTYPES
from tile_core.layout import Layout, LayoutMap, strided
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_core.simt.ops.products.plan import ProductPlan, no_instruction, too_few_threads
from tile_core.simt.ops.warp_partition import splits
from tile_core.simt.variant import SimtCall
from tile_metal.ops.atoms import Unit, operand_type, table, total_of
from tile_metal.ops.fragments import accumulator, operand_a, operand_b
from tile_metal.target import SIMD

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
        every = splits(*tiles, threads // SIMD, policy, (unit.m, unit.n))
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
