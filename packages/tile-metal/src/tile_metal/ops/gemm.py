"""``metal.simdgroup`` and ``metal.tensor_ops``: products on the matrix instructions of a simdgroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.layout import LayoutMap
from tile_core.lowering.legality import Asked, Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.distribution import Distribution
from tile_core.simt.ops.gemm_problem import asked
from tile_core.simt.variant import SimtVariant
from tile_metal.ops.atoms import Unit, table
from tile_metal.ops.fragments import SIMD
from tile_metal.ops.product import Plan, multiply, wanted

if TYPE_CHECKING:
    from tile_core.context import Context

_READ = ("shared", "fragment", "global")
_HELD = ("shared", "fragment")


class MatrixGemm(SimtVariant):
    """Tiles of every size; simdgroups share the rows and columns of C.

    A and B may also be in device memory, from which instructions read them without staging.

    Parameters
    ----------
    unit
        The instruction.
    priority
        Among the variants of ``gemm``.
    """

    op = "gemm"
    suffix = ""

    def __init__(self, unit: Unit, priority: int) -> None:
        self.unit, self.priority = unit, priority
        self.name = f"metal.{unit.name}{self.suffix}"
        atoms = table(unit)
        self.legality = Legality(
            operands=("A", "B", "C"), dtypes=frozenset().union(*(atom.dtypes for atom in atoms)), atoms=atoms,
            tails=frozenset("MNK"), scopes=self.scopes(),
        )  # fmt: skip

    def scopes(self) -> dict[str, tuple[str, ...]]:
        """Return where operands may be."""
        return {"A": _READ, "B": _READ, "C": _HELD}

    def asked(self, call: Any, ctx: Context) -> Asked:
        """See ``Variant.asked``."""
        del ctx
        return asked(call, self.op == "gemm_sp")

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept every size of the table's types, for whole simdgroups."""
        if call.divergent:
            return Reject("one thread executes it for itself; the instruction needs a simdgroup")
        if call.block.count < SIMD:
            return Reject(f"threads={call.block.count} is below the limit {SIMD}; nearest legal: {SIMD}")
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        plan = Plan.of(call, self.unit)
        return Accept(note=str(plan)) if plan is not None else Reject("no instruction for these types")

    def layouts(self, call: Any, ctx: Context) -> Mapping[int, Distribution | LayoutMap]:
        """Return the fragments of the instruction, and layouts of shared operands without conflicts of banks."""
        del ctx
        plan = Plan.of(call, self.unit)
        return {} if plan is None else wanted(plan, call)

    def lower(self, call: Any, ctx: Context) -> Any:
        """Return the product for one thread."""
        del ctx
        plan = Plan.of(call, self.unit)
        assert plan is not None
        return multiply(plan, call)


class MatrixGemmSp(MatrixGemm):
    """The same with a 2:4 sparse A, see ``ops/sparse.py``; metadata of any width and in any layout."""

    op = "gemm_sp"
    suffix = ".sp"

    def scopes(self) -> dict[str, tuple[str, ...]]:
        """Return where operands may be: lanes look up elements of A, E and B that others hold."""
        seen = ("shared", "global")
        return {"A": seen, "E": seen, "B": seen, "C": _HELD}
