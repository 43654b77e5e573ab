"""The base of product variants on matrix instructions: legality and requested layouts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Stmt
from tile_core.lowering.legality import Asked, Atom, Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.gemm_problem import Problem, asked
from tile_core.simt.ops.products.plan import ProductPlan, too_few_threads
from tile_core.simt.variant import SimtCall, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.layout import LayoutMap


class MatrixVariant(SimtVariant):
    """A product on matrix instructions of a group of threads, for tiles of every size.

    Attributes
    ----------
    group, group_name
        Threads of the group, and the target's name for it.
    """

    group: int
    group_name: str = "warp"

    @abstractmethod
    def plan(self, call: Any) -> ProductPlan | Reject:
        """Return the plan of a call, or the rejection reason."""

    def of(self, call: SimtCall) -> ProductPlan | Reject:
        """Return the plan of a call as this variant lowers it."""
        return self.plan(call)

    @abstractmethod
    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return the best layout of a shared operand; ``None`` if row-major is as good."""

    @abstractmethod
    def statement(self, plan: Any, call: Any) -> Stmt:
        """Return the product for one thread, see ``lower``."""

    def refuses(self, call: SimtCall) -> str:
        """Return the reason why a call is rejected for every plan, else empty."""
        return ""

    def multiplies(self, types: tuple[str, str, str]) -> bool:
        """Whether an instruction has these types of A, B and C, whatever sizes and storage."""
        return not self.legality.dtypes or types in self.legality.dtypes

    def asked(self, call: SimtCall, ctx: Context) -> Asked:
        """State the facts of a call for the legality table."""
        return asked(call, self.op == "gemm_sp")

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept every size of the table's types, for whole groups of threads."""
        if call.divergent:
            return Reject(f"one thread executes it for itself; the instruction needs a {self.group_name}")
        # More threads are no advice where there is no instruction for the types.
        few = self.multiplies(Problem.of(call).types) and too_few_threads(call.block.count, self.group)
        reason = few or self.refuses(call)
        if reason:
            return Reject(reason)
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        plan = self.plan(call)
        return plan if isinstance(plan, Reject) else Accept(note=str(plan))

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the fragments of the instruction, and layouts of shared operands without bank conflicts."""
        plan = self.plan(call)
        return {} if isinstance(plan, Reject) else plan.wanted(call, self.shared_layout)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the product for one thread."""
        plan = self.plan(call)
        assert not isinstance(plan, Reject), plan.reason
        return self.statement(plan, call)


def matrix_legality(atoms: Sequence[Atom], scopes: Mapping[str, tuple[str, ...]]) -> Legality:
    """Return the legality table of a product whose atoms carry their element types.

    Sizes need not be multiples of atoms.
    """
    return Legality(
        operands=("A", "B", "C"), dtypes=frozenset().union(*(atom.dtypes for atom in atoms)), atoms=tuple(atoms),
        tails=frozenset("MNK"), scopes=scopes,
    )  # fmt: skip


def register_scopes(sparse: bool) -> dict[str, tuple[str, ...]]:
    """Return where operands may be whose elements lanes read one by one, from any memory.

    Parameters
    ----------
    sparse
        Whether A is: its lanes then read elements of A, E and B in an order that no fragment has.
    """
    held, seen = ("shared", "fragment"), ("shared", "global")
    if sparse:
        return {"A": seen, "E": seen, "B": seen, "C": held}
    return {"A": (*held, "global"), "B": (*held, "global"), "C": held}
