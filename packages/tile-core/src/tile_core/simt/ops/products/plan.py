"""The plan of a product on matrix instructions: instruction, partition of C among warps, layouts of fragments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout import LayoutMap
from tile_core.layout.fragment import FragmentLayout
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, placed
from tile_core.simt.ops.products.instruction import MatrixInstruction, OperandKind
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_core.simt.variant import SimtCall


@dataclass(frozen=True)
class ProductPlan(ABC):
    """How a product is computed.

    Attributes
    ----------
    problem
        The product as its call states it.
    split
        How the warps (groups of the instruction's threads) share the rows and columns of C.
    threads
        Threads of the block.
    """

    problem: Problem
    split: WarpPartition
    threads: int

    @property
    @abstractmethod
    def instruction(self) -> MatrixInstruction:
        """The instruction, of its largest K."""

    @property
    @abstractmethod
    def total(self) -> str:
        """Element type of the accumulators in registers."""

    @abstractmethod
    def held(self, role: int) -> FragmentLayout:
        """Return the fragment layout that the instruction requires of A (0; M x K), B (1; K x N) or C (2; M x N)."""

    def fragment(self, role: int) -> FragmentLayout:
        """Return the layout that the buffer of A (0), B (1) or C (2) has if it is a fragment."""
        p = self.problem
        view, turned = ((p.a, p.turned_a), (p.b, p.turned_b), (p.c, False))[role]
        return placed(self.held(role), view.extents, *view.matrix_dims(), turned)

    def fits(self, known: Mapping[BufferVar, FragmentLayout]) -> bool:
        """Whether all fragments with a decided layout have the one that this plan needs."""
        for role, view in enumerate((self.problem.a, self.problem.b, self.problem.c)):
            found = known.get(view.buffer)
            if found is not None:
                mine = self.fragment(role)
                if found != mine and not found.same_as(mine):
                    return False
        return True

    def wanted(
        self, call: SimtCall, shared_layout: Callable[[tuple[int, ...], int], LayoutMap | None]
    ) -> dict[int, LayoutMap]:
        """Return the layouts required of A, B and C as fragments, and preferred for shared A and B, by position.

        Parameters
        ----------
        shared_layout
            Returns the best layout of a shared operand's buffer, given its shape and the bits of an element; ``None``
            if row-major is as good.
        """
        p, found = self.problem, dict[int, LayoutMap]()
        kinds = [o.kind for o in self.instruction.operands]
        for role, (position, view) in enumerate(zip(p.positions, (p.a, p.b, p.c), strict=True)):
            shape = tuple(nodes.shape_of(view.buffer))
            if view.scope == "local.fragment":
                if view.extents == shape and kinds[role] is OperandKind.REGISTERS:
                    found[position] = self.fragment(role)
            elif role < 2 and view.scope == "shared" and view.buffer not in call.places.layouts:
                layout = shared_layout(shape, DTYPES[view.dtype].bits)
                if layout is not None:
                    found[position] = layout
        return found


PlanT = TypeVar("PlanT", bound=ProductPlan)


def best(plans: Iterable[PlanT], call: SimtCall) -> PlanT | None:
    """Return the first plan that fits the decided layouts of fragments, else the first; ``None`` if there are none."""
    first = None
    for plan in plans:
        first = first or plan
        if plan.fits(call.places.fragments):
            return plan
    return first
