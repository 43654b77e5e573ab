"""The plan of a product on matrix instructions, and where fragments of its operands are."""

from __future__ import annotations

from typing import Any

from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_core.simt.ops.products.plan import ProductPlan, no_instruction, too_few_threads
from tile_core.simt.ops.warp_partition import splits
from tile_core.simt.variant import SimtCall
from tile_rocm_stub.instructions import Instruction
from tile_rocm_stub.ops.families import instruction_for, table
from tile_rocm_stub.target import WAVE


@dataclass(frozen=True)
class MfmaPlan(ProductPlan):
    """How a product is computed: the instruction, and the wavefronts."""

    chosen: Instruction

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[int, bool]:
        """Return the policy, and whether A is sparse."""
        return policy_of(call, problem), call.name == "gemm_sp"

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> list[MfmaPlan] | Reject:
        """Return the splits of a product among wavefronts, best first, or the rejection."""
        policy, sparse, fp8, xf32 = facts
        waves = threads // WAVE
        rows = 32 if not sparse and _is_large(problem, waves) else 16
        chosen = instruction_for(problem.types, fp8, xf32, sparse, rows) or instruction_for(
            problem.types, fp8, xf32, sparse
        )
        few = too_few_threads(threads, WAVE)
        if chosen is None or few:
            return no_instruction(problem, table(fp8, xf32, sparse)) if chosen is None else Reject(few)
        tiles = -(-problem.m // chosen.m), -(-problem.n // chosen.n)
        return [cls(problem, s, threads, chosen) for s in splits(*tiles, waves, policy, (1, 1))]

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction."""
        return self.chosen.as_matrix

    @property
    def total(self) -> str:
        """Element type of the accumulators in registers."""
        return self.chosen.total

    def held(self, role: int) -> FragmentLayout:
        """Return the required fragment layout: tiles, then steps along K, then a lane's elements."""
        p, s, i = self.problem, self.split, self.chosen
        rows = _axis(s.warps_m, WAVE * s.warps_n)
        columns = _axis(s.warps_n, WAVE)
        if role == 2:
            size, r = i.m * i.n // WAVE, i.rows
            down = (
                Digit(r.high_count, r.low_count, "register"), Digit(WAVE // i.n, i.n, "thread"),
                Digit(r.low_count, 1, "register"),
            )  # fmt: skip
            m = (rows, Digit(s.atoms_m, s.atoms_n * size, "register"), *down)
            n = (columns, Digit(s.atoms_n, size, "register"), Digit(i.n, 1, "thread"))
            return FragmentLayout((p.m, p.n), (m, n), self.threads)
        steps = -(-p.k // i.k)
        depth = (Digit(steps, i.each, "register"), Digit(i.groups, i.m, "thread"), Digit(i.each, 1, "register"))
        own, others, tiles = (rows, columns, s.atoms_m) if role == 0 else (columns, rows, s.atoms_n)
        lines = (own, Digit(tiles, steps * i.each, "register"), Digit(i.m, 1, "thread"))
        copies = (others,) if others.extent > 1 else ()
        shape, dims = ((p.m, p.k), (lines, depth)) if role == 0 else ((p.k, p.n), (depth, lines))
        return FragmentLayout(shape, dims, self.threads, copies)

    def __str__(self) -> str:
        return f"v_{self.chosen.name}, {self.split}"


def _is_large(problem: Problem, waves: int) -> bool:
    """Return whether each wavefront has a 32 x 32 tile.

    Its instruction reads half as much as four of 16 x 16.
    """
    return problem.m % 32 == problem.n % 32 == 0 and problem.m * problem.n >= 32 * 32 * waves


def _axis(waves: int, distance: int) -> Digit:
    return Digit(waves, distance, "thread")


@dataclass(frozen=True)
class KStep:
    """The part of K that one instruction covers.

    The elements that a lane holds begin at ``first + apart * group``, for its group of lanes. The order of K does not
    change a product, so a sparse one takes steps of which each group's parts are ``apart``: a word of metadata then
    describes a lane's elements in several steps, and ``part`` of it is this step's.
    """

    first: Any
    apart: int
    part: int = 0


DESCRIBED = 32
"""Elements of K that a word of metadata describes."""
