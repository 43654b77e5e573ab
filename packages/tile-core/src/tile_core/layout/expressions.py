"""Applying a layout to IR expressions."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.layout.swizzle import Ops


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

    def xor(self, a: Any, b: Any) -> Any:
        """See ``Ops.xor``."""
        return tirx.bitwise_xor(a, b)

    def bitand(self, a: Any, b: int) -> Any:
        """See ``Ops.bitand``."""
        return tirx.bitwise_and(a, b)

    def shift_left(self, a: Any, b: int) -> Any:
        """See ``Ops.shift_left``."""
        return tirx.shift_left(a, b)

    def shift_right(self, a: Any, b: int) -> Any:
        """See ``Ops.shift_right``."""
        return tirx.shift_right(a, b)


def place_of(layout: Any, indices: Any) -> Expr:
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
