"""Operands of warpgroup products in shared memory, as descriptors.

Rows of a tile (its last dimension) are cut into panels of 128, 64 or 32 bytes, whose rows lie one after another and
whose 16-byte chunks are permuted: the canonical layouts of the PTX ISA, and what bulk copies of boxes write.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.layout import LayoutMap, make_swizzled_layout
from tile_core.layout.stacked import StackedLayout
from tile_core.lowering.variant import Withdrawn
from tile_core.ops.base import View
from tile_core.ops.gemm import matrix
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_cuda.ops.warpgroup_plan import CHUNK, SWIZZLES, WarpgroupPlan

#: Swizzles in descriptors.
_CODES = {128: 1, 64: 2, 32: 3}
_LINES = 8
"""Lines, or elements along K, of a group whose distance a descriptor gives."""


@dataclass(frozen=True)
class SharedMatrix:
    """A or B of a product, as its descriptors describe it.

    Attributes
    ----------
    view
        The tile.
    turned
        Whether its rows run along K's other dimension: (K, M) of A, (N, K) of B.
    leading, stride, swizzle
        Of the descriptors, in bytes.
    """

    view: View
    turned: bool
    leading: int
    stride: int
    swizzle: int

    @classmethod
    def of(cls, plan: WarpgroupPlan, role: int, layout: LayoutMap | None, ranges: Any) -> SharedMatrix:
        """Return A (0) or B (1).

        Raises
        ------
        Withdrawn
            No descriptor matches its layout in shared memory.
        """
        p = plan.problem
        view = plan.view(role)
        turned, across = ((p.turned_a, p.turned_a), (not p.turned_b, not p.turned_b))[role]
        shape = tuple(nodes.shape_of(view.buffer))
        size = DTYPES[view.dtype].bits // 8
        found = next((s for s in SWIZZLES if layout is not None and _same(layout, shape, 8 * size, s)), 0)
        if not found:
            reason = "row-major" if layout is None else layout
            raise Withdrawn(f"{view.name} is {reason} in shared memory; a descriptor needs a swizzle of rows")
        misfit = plan.misfit(role, found)
        if misfit:
            raise Withdrawn(misfit)
        along = found if across else CHUNK * (2 if role == 1 and plan.family.sparse else 1)
        cls.require_corner(view, along // size, ranges)
        leading = shape[-2] * found if across else 16
        return cls(view, turned, leading, _LINES * found, found)

    @staticmethod
    def require_corner(view: View, along: int, ranges: Any) -> None:
        """Raise ``Withdrawn`` unless a tile begins at a group of lines inside its buffer."""
        if view.matrix_dims() != (len(view.extents) - 2, len(view.extents) - 1):
            raise Withdrawn(f"{view.name} is not a matrix of the buffer's last two dimensions")
        for low, by in zip(view.mins[-2:], (_LINES, along), strict=True):
            if not contiguity.divides(by, low, ranges):
                raise Withdrawn(f"{view.name} begins at {low}, which is not known to be a multiple of {by}")
        if contiguity.conditions(view, ranges):
            raise Withdrawn(f"{view.name} may lie outside of its buffer in part")

    def arguments(self, line: Expr, k: Expr, until: str = "") -> list[Expr]:
        """Return the operands of an instruction: an element's address and descriptor fields.

        Parameters
        ----------
        until
            The wait that ends its reads, see ``calls.address``.
        """
        at = matrix(self.view, self.turned, line, k)
        start = calls.address(self.view.buffer, at, "r", calls.ASYNC_PROXY, until, align=_LINES * self.swizzle)
        return [start, *map(nodes.int_const, (self.leading, self.stride, _CODES[self.swizzle], 0))]


def layout_of(view: View, swizzle: int) -> LayoutMap | None:
    """Return the layout of a tile's buffer with swizzled rows; ``None`` for 0 bytes."""
    shape = tuple(nodes.shape_of(view.buffer))
    return make_swizzled_layout(shape, DTYPES[view.dtype].bits, swizzle) if swizzle else None


@cache
def _same(layout: LayoutMap, shape: tuple[int, ...], bits: int, swizzle: int) -> bool:
    """Whether a layout equals that of swizzled rows of a length."""
    if "memory" not in layout.axes or layout.replicas != 1 or not _has_rows(shape, bits, swizzle):
        return False
    # The pattern begins anew with each tile: tiles are whole groups of lines.
    while isinstance(layout, StackedLayout) and (layout.count, layout.inner.span) == (shape[0], prod(shape[1:])):
        layout, shape = layout.inner, shape[1:]
    wanted = make_swizzled_layout(shape, bits, swizzle)
    return layout == wanted or list(layout.tables()["memory"]) == list(wanted.tables()["memory"])


def _has_rows(shape: tuple[int, ...], bits: int, swizzle: int) -> bool:
    """Whether rows are whole panels in groups of eight, as the layout requires."""
    return shape[-1] * bits % (8 * swizzle) == 0 and shape[-2] % _LINES == 0
