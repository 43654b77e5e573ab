"""A copy of a shared-memory tile to another block of the same cluster.

Its operands are the tile, the place, the rank of the block, and a barrier object of that block if one counts the copy.
Blocks of a cluster execute a program in lockstep, one statement after another: all of them read their tiles
before any of them writes. Only what is known to be so in each order in which they may run is accepted
(``passes/check_barriers.py``).
"""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, TileOp, is_op
from tile_core.ops.copy import elementwise_copy

NAME = "copy_to_block"
#: Positions of the rank, and of the barrier object behind it.
RANK, BARRIER = 2, 3


def meaning(call: OpCall) -> Stmt:
    """Of a block to itself; ``reference/cluster.py`` says what several do."""
    return elementwise_copy(call.args[0], call.args[1], span=call.span)


def is_send(s: Stmt) -> bool:
    """Whether a statement is such a copy."""
    return is_op(s) and nodes.is_tile_call(s.value, NAME)


OP = TileOp(NAME, reads=(0,), writes=(1,), meaning=meaning)
