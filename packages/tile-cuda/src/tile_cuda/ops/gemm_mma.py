"""``cuda.mma.sync``: dense products on the matrix instructions of a warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.layout import LayoutMap
from tile_core.lowering.legality import Asked, Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.distribution import Distribution
from tile_core.simt.ops.gemm_problem import Problem, asked
from tile_core.simt.variant import SimtVariant
from tile_cuda.ops.atoms import table
from tile_cuda.ops.product import Plan, multiply, wanted

if TYPE_CHECKING:
    from tile_core.context import Context

_HELD = ("shared", "fragment")


class MmaVariant(SimtVariant):
    """What the dense and the sparse variant share."""

    sparse = False

    def __init__(self, fp8: bool) -> None:
        self.fp8 = fp8

    def asked(self, call: Any, ctx: Context) -> Asked:
        """See ``Variant.asked``."""
        del ctx
        return asked(call, self.sparse)

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept every size of the table's types, for whole warps."""
        if call.divergent:
            return Reject("one thread executes it for itself; the instruction needs a warp")
        if call.block.count < 32:
            return Reject(f"threads={call.block.count} is below the limit 32; nearest legal: 32")
        types = Problem.of(call).types
        if "float32" in types[:2] and types[2] != "float64":
            return Reject("the instruction would round float32 operands; nearest legal: tfloat32, which says so")
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        plan = Plan.of(call, self.fp8, self.sparse)
        return Accept(note=str(plan)) if plan is not None else Reject("no instruction for these types")

    def layouts(self, call: Any, ctx: Context) -> Mapping[int, Distribution | LayoutMap]:
        """Return the fragments of the instruction, and swizzled layouts of shared operands."""
        del ctx
        plan = Plan.of(call, self.fp8, self.sparse)
        return {} if plan is None else wanted(plan, call)


class MmaGemm(MmaVariant):
    """Tiles of every size in shared memory or fragments; warps share the rows and columns of C."""

    name = "cuda.mma.sync"
    op = "gemm"
    priority = 10

    def __init__(self, fp8: bool) -> None:
        super().__init__(fp8)
        atoms = table(fp8, False)
        self.legality = Legality(
            operands=("A", "B", "C"),
            dtypes=frozenset().union(*(atom.dtypes for atom in atoms)),
            atoms=atoms,
            tails=frozenset("MNK"),
            scopes=dict.fromkeys("ABC", _HELD),
        )

    def lower(self, call: Any, ctx: Context) -> Any:
        """Return the product for one thread."""
        del ctx
        plan = Plan.of(call, self.fp8, False)
        assert plan is not None
        return multiply(plan, call)
