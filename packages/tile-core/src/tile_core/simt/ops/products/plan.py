"""The plan of a product: matrix instruction, warp partition of C, and fragment layouts."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout import LayoutMap
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering import legality
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, placed
from tile_core.simt.ops.products.instruction import MatrixInstruction, OperandKind
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_core.simt.variant import SimtCall

PlanT = TypeVar("PlanT", bound="ProductPlan")


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

    @classmethod
    def for_call(cls: type[PlanT], call: SimtCall, *given: Any) -> PlanT | Reject:
        """Return a call's plan that best fits decided fragment layouts, or the rejection.

        Parameters
        ----------
        given
            Further arguments of ``candidates``.
        """
        layouts = tuple([call.placement.fragments.get(v.buffer) for v in Problem.of(call).views])
        key = cls, given, *map(id, layouts)
        if key not in call.decided:
            call.decided[key] = cls.decide(call, *given), layouts
        found: PlanT | Reject = call.decided[key][0]
        return found

    @classmethod
    def decide(cls: type[PlanT], call: SimtCall, *given: Any) -> PlanT | Reject:
        """Return the plan of a call, see ``for_call``."""
        problem = Problem.of(call)
        found = _candidates(cls, problem.form, call.block.count, cls.facts(call, problem), given)
        if isinstance(found, Reject):
            return found
        plans = [replace(plan, problem=problem) for plan in found]
        return next((plan for plan in plans if plan.fits(call.placement.fragments)), plans[0])

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return the other facts of a call that decide about its plans."""
        return ()

    @classmethod
    @abstractmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """Return the legal plans, the best first, or the rejection reason.

        This is decided once for all calls with equal tiles.

        Parameters
        ----------
        problem
            The product, with buffers of its own.
        threads
            The threads that execute it.
        facts
            The facts of the call, and further arguments.
        """

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
        """Return the instruction's fragment layout of A (0), B (1) or C (2).

        Shapes are M x K, K x N and M x N.
        """

    def staged(self, role: int) -> str | None:
        """Return the best element type of A (0) or B (1) in shared memory.

        It holds all numbers of the operand's own type. ``None`` if no other type is better.
        """
        return None

    def fragment(self, role: int) -> FragmentLayout:
        """Return the fragment layout of the buffer of A (0), B (1) or C (2)."""
        p = self.problem
        view, turned = ((p.a, p.turned_a), (p.b, p.turned_b), (p.c, p.turned_c))[role]
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
        """Return the required fragment layouts and the preferred shared layouts, by position.

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
            elif role < 2 and view.scope == "shared" and view.buffer not in call.placement.layouts:
                layout = shared_layout(shape, DTYPES[view.dtype].bits)
                if layout is not None:
                    found[position] = layout
        return found


@functools.lru_cache(maxsize=512)
def _candidates(
    kind: type[PlanT], form: Problem, threads: int, facts: tuple[Hashable, ...], given: tuple[Hashable, ...]
) -> Sequence[PlanT] | Reject:
    return kind.candidates(form, threads, *facts, *given)


def no_instruction(problem: Problem, atoms: Iterable[legality.Atom]) -> Reject:
    """Return the rejection of element types without an instruction in a table."""
    legal = frozenset[tuple[str, ...]]().union(*(atom.dtypes for atom in atoms))
    return Reject(legality.no_instruction(("A", "B", "C"), legal, problem.types))


def too_few_threads(threads: int, group: int) -> str:
    """Return the reason why threads cannot execute the group's instructions; empty if they can."""
    return f"threads={threads} is below the limit {group}; nearest legal: {group}" if threads < group else ""


def nearest(
    problem: Problem, steps: Mapping[str, int], is_legal: Callable[[Problem], bool], above: bool = False
) -> list[str]:
    """Return the single changes that make a refused product legal: ``["M=64", "N=248"]``.

    Parameters
    ----------
    problem
        The product.
    steps
        The granularity of legal extents, by each axis that may change.
    is_legal
        Whether a product is legal; it is called with the nearest extents first.
    above
        Whether larger extents, up to twice its own, may be legal, too.
    """
    found = []
    for axis, step in steps.items():
        size = problem.sizes[axis]
        below, beyond = size - (size % step or step), size - size % step + step
        for tried in (range(below, 0, -step), range(beyond, 2 * size + 1, step) if above else ()):
            legal = next((n for n in tried if is_legal(problem.resized(axis, n))), 0)
            found += [f"{axis}={legal}"] if legal else []
    return found


def refused(reason: str, legal: Sequence[str]) -> Reject:
    """Return a rejection with the nearest legal alternatives, if any."""
    return Reject(f"{reason}; nearest legal: {' or '.join(legal)}" if legal else reason)
