"""Add the accumulators of a cluster's blocks in the block of rank 0.

`tile_core.simt.cluster_split` inserts it behind loops whose iterations these blocks share. Its operands are the
whole accumulator, the rank of the block, and how many blocks there are.
"""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.errors import InternalError
from tile_core.ops.base import OpCall, TileOp

NAME = "add_blocks"
#: Positions of the rank and of the number of blocks.
RANK, BLOCKS = 1, 2


def meaning(call: OpCall) -> Stmt:
    """Refuse: a block alone has no accumulators of others.

    Raises
    ------
    InternalError
        Always: a target with clusters has a variant of its own.
    """
    raise InternalError(stage="lower", detail=f"{call.name} has no plain loops")


OP = TileOp(NAME, reads=(0,), writes=(0,), meaning=meaning)
