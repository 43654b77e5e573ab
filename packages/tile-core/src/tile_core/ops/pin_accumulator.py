"""A request to keep an accumulator in the matrix unit. It changes no values."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, TileOp


def meaning(call: OpCall) -> Stmt:
    """Nothing."""
    return nodes.seq([])


#: Its operand is the whole fragment, which it neither reads nor writes.
OP = TileOp("pin_accumulator", reads=(), writes=(), meaning=meaning)
