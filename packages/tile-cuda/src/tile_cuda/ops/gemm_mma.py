"""``cuda.mma.sync``: dense products on the matrix instructions of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Reject
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.shared_layout import swizzled
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_cuda.ops.atoms import table
from tile_cuda.ops.plan import MmaPlan
from tile_cuda.ops.product import MmaProduct
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.simt.variant import SimtCall


HELD = ("shared", "fragment")
"""Where operands of instructions may be."""


class MmaVariant(MatrixVariant):
    """Common parts of the dense and the sparse variant.

    Parameters
    ----------
    fp8
        Whether there are instructions for 8-bit floats.
    """

    group = WARP
    sparse = False

    def __init__(self, fp8: bool) -> None:
        self.fp8 = fp8
        scopes = dict.fromkeys("ABC", HELD)
        metadata = {"E": ("shared", "global")} if self.sparse else {}
        self.legality = matrix_legality(table(fp8, self.sparse), scopes | metadata)

    def refuses(self, call: SimtCall) -> str:
        """Reject operands that the instruction would round."""
        types = Problem.of(call).types
        if "float32" in types[:2] and types[2] != "float64":
            return "the instruction would round float32 operands; nearest legal: tfloat32"
        return ""

    def plan(self, call: SimtCall) -> MmaPlan | Reject:
        """See `ProductPlan.for_call`."""
        return MmaPlan.for_call(call, self.fp8, self.sparse)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return a swizzled layout, see `swizzled`."""
        return swizzled(shape, bits)


class MmaGemm(MmaVariant):
    """Tiles of every size, in shared memory or fragments; warps share C."""

    name = "cuda.mma.sync"
    op = "gemm"
    priority = 10

    def statement(self, plan: MmaPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return MmaProduct(plan, call).statement()
