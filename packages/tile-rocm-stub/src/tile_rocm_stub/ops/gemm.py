"""``rocm.mfma`` and ``rocm.smfmac``: dense and sparse products on the matrix instructions of a wavefront."""

from __future__ import annotations

from typing import Any

from tile_core.compat.types import Stmt
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Reject
from tile_core.simt.ops.products.shared_layout import swizzled
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality, register_scopes
from tile_rocm_stub.ops.families import table
from tile_rocm_stub.ops.plan import MfmaPlan
from tile_rocm_stub.ops.product import MfmaProduct
from tile_rocm_stub.target import WAVE


class Mfma(MatrixVariant):
    """Tiles of every size; wavefronts share the rows and columns of C.

    Parameters
    ----------
    fp8
        Which 8-bit floats the architecture's instructions read.
    xf32
        Whether it has the instruction for tfloat32.
    """

    name = "rocm.mfma"
    op = "gemm"
    priority = 10
    group = WAVE
    group_name = "wavefront"
    sparse = False

    def __init__(self, fp8: str, xf32: bool) -> None:
        self.fp8, self.xf32 = fp8, xf32
        self.legality = matrix_legality(table(fp8, xf32, self.sparse), register_scopes(self.sparse))

    def plan(self, call: Any) -> MfmaPlan | Reject:
        """See `ProductPlan.for_call`."""
        return MfmaPlan.for_call(call, self.fp8, self.xf32)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return a swizzled layout, see `swizzled`."""
        return swizzled(shape, bits)

    def statement(self, plan: MfmaPlan, call: Any) -> Stmt:
        """Return the product for one thread."""
        return MfmaProduct(plan, call).statement()


class Smfmac(Mfma):
    """The same with a 2:4 sparse A; metadata of any width and in any layout."""

    name = "rocm.smfmac"
    op = "gemm_sp"
    sparse = True
