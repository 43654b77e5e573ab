"""A wait for products that go on while threads do other things: it changes no values."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, TileOp

#: Attribute: how many of a thread's products may still be in flight behind it.
PENDING = "pending"


def meaning(call: OpCall) -> Stmt:
    """Nothing: a product is complete where it stands."""
    return nodes.seq([])


#: Its operand, if it has one, is the sums of a product that it waits for: only behind it threads access them.
OP = TileOp("wait_uses", reads=(0,), writes=(0,), meaning=meaning)
