"""``T.fill(dst, value)`` and ``T.clear(dst)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt, Var
from tile_core.ir import nodes
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.ops.copy import convert

if TYPE_CHECKING:
    from tile_core.values.value import Scalar, Tile


def fill(dst: Tile, value: Scalar) -> None:
    """Set every element of a tile.

    Parameters
    ----------
    dst
        A buffer, a slice or an element, in any scope.
    value
        A number or a runtime scalar; it is converted to the element type of ``dst``.

    Raises
    ------
    NotATile, RuntimeExtent, ConstantDoesNotFit
        If ``dst`` is not a tile of static extents, or its type cannot hold the constant.

    Examples
    --------
    >>> T.fill(F, 1.0)
    """
    _fill("fill", dst, value)


def clear(dst: Tile) -> None:
    """Set every element of a tile to zero (see ``fill``).

    Examples
    --------
    >>> T.clear(F)
    """
    _fill("clear", dst, 0)


def _fill(op: str, dst: Tile, value: Scalar) -> None:
    from tile_core.values.value import Buffer

    if isinstance(dst, Buffer) and dst.scope == "local.var":
        from tile_core.values.buffer import store

        store(dst, 0, value)
        return
    to = operands.as_region(op, "dst", dst)
    operands.static_shape(op, "dst", to)
    operands.emit("fill", [to, operands.scalar(value, to.dtype)], [to])


def meaning(call: OpCall) -> Stmt:
    """For every index: store the value."""
    dst, value = call.args

    def body(*indices: Var) -> Stmt:
        return nodes.store(dst.buffer, convert(value, dst.dtype), dst.spread(indices), call.span)

    return nodes.nest(dst.shape, body, "parallel", span=call.span)


OP = TileOp("fill", reads=(), writes=(0,), meaning=meaning)
