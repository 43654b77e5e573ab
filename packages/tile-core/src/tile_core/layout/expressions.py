"""Applying a layout to IR expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.layout.swizzle import Ops

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap


class ExprOps(Ops):
    """Index arithmetic on tirx expressions, which have no operators for the bitwise ones."""

    def floordiv(self, a: Expr, b: int) -> Expr:
        """See ``Ops.floordiv``."""
        return tirx.floordiv(a, b)

    def mod(self, a: Expr, b: int) -> Expr:
        """See ``Ops.mod``."""
        return tirx.floormod(a, b)

    def equal(self, a: Expr, b: int) -> Expr:
        """See ``Ops.equal``."""
        return tirx.EQ(a, tirx.IntImm("int32", b))

    def xor(self, a: Expr, b: Expr) -> Expr:
        """See ``Ops.xor``."""
        return tirx.bitwise_xor(a, b)

    def bitand(self, a: Expr, b: int) -> Expr:
        """See ``Ops.bitand``."""
        return tirx.bitwise_and(a, b)

    def shift_left(self, a: Expr, b: int) -> Expr:
        """See ``Ops.shift_left``."""
        return tirx.shift_left(a, b)

    def shift_right(self, a: Expr, b: int) -> Expr:
        """See ``Ops.shift_right``."""
        return tirx.shift_right(a, b)


def memory_index(layout: LayoutMap, indices: list[Expr]) -> Expr:
    """Return the memory index of the element at ``indices`` as an expression.

    Parameters
    ----------
    layout
        A layout onto memory.
    indices
        tirx expressions, one per dimension.

    Raises
    ------
    LayoutError
        K313 if the layout is a table, which no expression computes.
    """
    return layout.apply(*indices, ops=ExprOps())["memory"]
