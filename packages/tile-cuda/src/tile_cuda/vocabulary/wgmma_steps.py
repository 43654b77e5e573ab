"""Steps of asynchronous products by their own names, which this package adds to ``T``.

``T.wgmma_gemm`` contains them: it orders registers, issues its instructions and ends their group. In a kernel that
spells them out they change nothing, but for the wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.naming import naming
from tile_core.errors.ops import ScopeNotAllowed
from tile_core.ops import operands
from tile_core.values.builder import current
from tile_cuda.vocabulary.products import wait_wgmma

if TYPE_CHECKING:
    from tile_core.values.value import Tile

_REGISTERS = "fragments, whose elements are in registers"


def warpgroup_arrive() -> None:
    """Order accesses of registers before products: each product does so itself."""
    current("T.warpgroup_arrive")


def warpgroup_commit_batch() -> None:
    """End a group of products: each product is one."""
    current("T.warpgroup_commit_batch")


@naming("warpgroup_wait")
def warpgroup_wait(num_mma: int = 0) -> None:
    """Wait for products: see ``T.wait_wgmma``, which counts products as this does."""
    wait_wgmma(num_mma)


def warpgroup_fence_operand(*tiles: Tile) -> None:
    """Keep the compiler from moving accesses of registers of products: it never does.

    Raises
    ------
    ScopeNotAllowed
        For a tile that is not in registers.
    """
    for tile in tiles:
        scope = operands.as_region("warpgroup_fence_operand", "tiles", tile).scope
        if scope not in ("local.fragment", "local"):
            raise ScopeNotAllowed(op="warpgroup_fence_operand", role="tiles", found=scope, legal=_REGISTERS)
