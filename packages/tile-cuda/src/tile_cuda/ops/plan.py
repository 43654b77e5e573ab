"""The plan of a product on matrix instructions: instructions, fragments, and K steps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_core.simt.ops.products.plan import ProductPlan, no_instruction, too_few_threads
from tile_core.simt.ops.warp_partition import splits
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.atoms import Family, family, table
from tile_cuda.ops.fragments import accumulator, operand_a, operand_b
from tile_cuda.ops.operand import Blocks
from tile_cuda.target import WARP


@dataclass(frozen=True)
class MmaPlan(ProductPlan):
    """How a product is computed: the instructions and the warps."""

    family: Family

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return the policy."""
        return (policy_of(call, problem),)

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """Return the splits of a product among warps, best first, or the rejection."""
        policy, fp8, sparse = facts
        chosen = family(*problem.types, fp8, sparse)
        few = too_few_threads(threads, WARP)
        if chosen is None or few:
            return no_instruction(problem, table(fp8, sparse)) if chosen is None else Reject(few)
        tiles = -(-problem.m // chosen.instruction.m), -(-problem.n // chosen.instruction.n)
        return [cls(problem, s, threads, chosen) for s in splits(*tiles, threads // WARP, policy)]

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction, of its largest K."""
        return self.family.instruction

    @property
    def total(self) -> str:
        """Element type of the accumulators in registers."""
        return self.family.total

    def held(self, role: int) -> FragmentLayout:
        """Return where a fragment must be; that of a sparse A holds half of K."""
        p, how = self.problem, (self.split, self.family, self.threads)
        if role == 0:
            return operand_a(p.m, p.k // 2 if self.family.sparse else p.k, *how)
        return operand_b(p.k, p.n, *how) if role == 1 else accumulator(p.m, p.n, *how)

    def __str__(self) -> str:
        f = self.family
        return f"{f.name(f.shapes[0])}, {self.split}"


@dataclass(frozen=True)
class KStep:
    """The part of K of an instruction: ``blocks`` blocks of A, with stride ``apart``."""

    first: int
    blocks: int
    apart: int = 1

    @property
    def of_a(self) -> Blocks:
        """Blocks of A, counted from the first."""
        return tuple(n * self.apart for n in range(self.blocks))

    def of_b(self, dense: int) -> Blocks:
        """Blocks of B, ``dense`` for each block of A, counted from the first."""
        return tuple(b * dense + n for b in self.of_a for n in range(dense))
