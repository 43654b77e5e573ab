"""``metal.simdgroup`` and ``metal.tensor_ops``: products on the matrix instructions of a simdgroup."""

from __future__ import annotations

from typing import Any

from tile_core.compat.types import Stmt
from tile_core.layout import LayoutMap
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_metal.ops.atoms import Unit, table
from tile_metal.ops.plan import SimdgroupPlan, padded
from tile_metal.ops.product import SimdgroupProduct
from tile_metal.target import SIMD

_READ = ("shared", "fragment", "global")
_HELD = ("shared", "fragment")


class MatrixGemm(MatrixVariant):
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
    group = SIMD
    group_name = "simdgroup"

    def __init__(self, unit: Unit, priority: int) -> None:
        self.unit, self.priority = unit, priority
        self.name = f"metal.{unit.name}{self.suffix}"
        self.legality = matrix_legality(table(unit), self.scopes())

    def scopes(self) -> dict[str, tuple[str, ...]]:
        """Return where operands may be."""
        return {"A": _READ, "B": _READ, "C": _HELD}

    def plan(self, call: Any) -> SimdgroupPlan | None:
        """See `SimdgroupPlan.of`."""
        return SimdgroupPlan.of(call, self.unit)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return a layout with longer rows, see `padded`."""
        return padded(shape, bits)

    def statement(self, plan: SimdgroupPlan, call: Any) -> Stmt:
        """Return the product for one thread."""
        return SimdgroupProduct(plan, call).statement()


class MatrixGemmSp(MatrixGemm):
    """The same with a 2:4 sparse A, see ``ops/sparse.py``; metadata of any width and in any layout."""

    op = "gemm_sp"
    suffix = ".sp"

    def scopes(self) -> dict[str, tuple[str, ...]]:
        """Return the allowed scopes of operands: lanes read elements of A, E and B that other lanes hold."""
        seen = ("shared", "global")
        return {"A": seen, "E": seen, "B": seen, "C": _HELD}
