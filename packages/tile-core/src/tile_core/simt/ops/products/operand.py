"""A product operand as a warp reads it: *lines* of elements along K.

Lines are rows of A or columns of B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.ir import nodes
from tile_core.layout import LayoutMap
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.register_loops import choose


@dataclass(frozen=True)
class Lane:
    """Variables of a lane.

    Attributes
    ----------
    number
        Its index in its group.
    row, column
        Its position in the instruction's distribution of a tile's elements over lanes, in the backend's
        numbering.
    """

    number: Var
    row: Var
    column: Var


@dataclass(frozen=True, kw_only=True)
class ProductOperand:
    """A or B of a product.

    Attributes
    ----------
    view
        The tile.
    turned
        Whether the tile's rows run along K.
    language, dtype
        Element type as the program names it, and as the instruction takes it.
    lines, depth
        Extents of the lines and along K; K of a sparse A may count stored elements.
    tiles
        Instruction tiles of a warp along the lines.
    first
        The warp's first line.
    most
        Lines, including the padding of all warps.
    array
        The registers of a fragment; ``None`` if the tile is in memory.
    layout
        Of a shared tile's buffer; row-major if there is none.
    guarded
        Whether elements may lie outside the buffer, where they are zero.
    ranges
        An analyzer with the ranges of the variables of the tile's corner.
    """

    view: View
    turned: bool
    language: str
    dtype: str
    lines: int
    depth: int
    tiles: int
    first: Any
    most: int
    array: Any = None
    layout: LayoutMap | None = None
    guarded: bool = False
    ranges: Any = None

    def at(self, line: Expr, k: Expr) -> list[Expr]:
        """Return the buffer's indices of an element."""
        return matrix(self.view, self.turned, line, k)

    def taken(self, value: Expr) -> Expr:
        """Return an element in the form that a register of the instruction holds."""
        return convert(value, self.dtype)

    def load(self, line: Expr, k: Expr, limits: Sequence[Expr] = ()) -> Expr:
        """Load an element as ``taken``; zero outside of the buffer or a limit."""
        at = self.at(line, k)
        inside = contiguity.inside(self.view, at, self.ranges) if self.guarded else []
        return choose([*limits, *inside], self.taken(nodes.load(self.view.buffer, at)))

    def clamped(self, line: Expr, run: int = 1) -> Expr:
        """Clamp padding lines or runs of them into the tile; their values are unused."""
        if self.most <= self.lines:
            return line
        return tirx.min(line, nodes.int_const((self.lines - 1) // run * run))
