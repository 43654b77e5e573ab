"""A wait for asynchronous products in flight. It changes no values."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, TileOp


def meaning(call: OpCall) -> Stmt:
    """Nothing: a product is complete where it stands."""
    return nodes.seq([])


#: Its operand, if it has one, is the accumulator of a product that it waits for: threads access it after the wait only.
OP = TileOp("wait_uses", reads=(0,), writes=(0,), meaning=meaning)
