"""A request of a role for registers per thread. It changes no values."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, TileOp


def meaning(call: OpCall) -> Stmt:
    """Nothing."""
    return nodes.seq([])


OP = TileOp("request_registers", reads=(), writes=(), meaning=meaning)
