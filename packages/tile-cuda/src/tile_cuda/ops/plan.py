"""The plan of a product on matrix instructions: the instructions, the fragments, and the steps along K."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, make_swizzled_layout, row_major
from tile_core.layout.fragment import FragmentLayout
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_core.simt.ops.products.plan import ProductPlan, best
from tile_core.simt.ops.warp_partition import splits
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.atoms import Family, family
from tile_cuda.ops.fragments import accumulator, operand_a, operand_b
from tile_cuda.ops.operand import Blocks
from tile_cuda.target import WARP


@dataclass(frozen=True)
class MmaPlan(ProductPlan):
    """How a product is computed: the instructions and the warps."""

    family: Family

    @classmethod
    def of(cls, call: SimtCall, fp8: bool, sparse: bool) -> MmaPlan | None:
        """Return the plan that best fits the fragment layouts decided so far; ``None`` if there are no instructions."""
        problem = Problem.of(call)
        chosen = family(*problem.types, fp8, sparse)
        warps = call.block.count // WARP
        if chosen is None or not warps:
            return None
        tiles = -(-problem.m // chosen.instruction.m), -(-problem.n // chosen.instruction.n)
        every = splits(*tiles, warps, policy_of(call, problem))
        return best((cls(problem, s, call.block.count, chosen) for s in every), call)

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
    """The part of K that one instruction covers: ``blocks`` blocks of A from ``first`` on, with stride ``apart``."""

    first: Any
    blocks: int
    apart: int = 1

    @property
    def of_a(self) -> Blocks:
        """Blocks of A, counted from the first."""
        return tuple(n * self.apart for n in range(self.blocks))

    def of_b(self, dense: int) -> Blocks:
        """Blocks of B, of which there are ``dense`` for each of A, counted from the first."""
        return tuple(b * dense + n for b in self.of_a for n in range(dense))


@cache
def swizzled(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout in which neither 8 rows of 16 bytes nor 8 vectors along a row have bank conflicts.

    ``None`` if row-major order is as good: rows of an odd number of 16 bytes have none, others cannot be read by rows.
    """
    row = shape[-1] * bits
    if row % 256 or 128 % bits:
        return None
    if row % 1024 == 0 or row & (row - 1) == 0:
        return make_swizzled_layout(shape, bits)
    # Panels as of make_swizzled_layout would put vectors along a row in the same banks. In plain order, 16 bytes are
    # XORed with the number of their 128 bytes: rows that begin in the same bank differ in it.
    chunks, base = row // 128, (128 // bits).bit_length() - 1
    exponent = min(3, (chunks & -chunks).bit_length() - 1)
    plain = row_major(shape)
    return Layout(shape, DigitLayout(shape, plain.digits, swizzles=(Swizzle(exponent, base, 3),)), note="swizzled rows")
