"""Estimates of the epilogue's time, and the choice of direct, staged or exchanged stores.

Measured on an H200 (float16 results of tiles of 128 x 256, two warpgroups): 8,000 to 9,000 cycles where threads store
their accumulators, 4 bytes of a row by each; 2,100 to 2,500 through shared memory and stores of whole rows; about 200
more where lanes exchange them. On an H100 int32 results took 8,400 cycles, 8 bytes of a row by each: where each warp
writes sectors of eight rows, instructions are the cost, not bytes.
"""

from __future__ import annotations

from math import prod

from tile_core.records import dataclass
from tile_cuda.ops.copy_lanes import EXCHANGES

_WARP = 32
_PIECE = 16.5
"""Cycles of an instruction by which a warp stores sectors of eight rows: 512 of them took 8,450."""
_SHUFFLE = 1.0
"""Cycles of a shuffle, behind which its selections hide: assumed, 16-bit results then take 2,620."""
_LANE = 16
"""Bytes that a lane stores at a time once it has exchanged results."""
_BYTES = 28.0
"""Bytes that go through shared memory and on in a cycle: 64 KiB took 2,350."""
_SYNC = 150
"""Cycles in which the threads of a block wait for each other twice: assumed."""


@dataclass(frozen=True)
class WriteEstimate:
    """Cycles in which a block's results are written.

    Attributes
    ----------
    staged
        Through shared memory.
    direct
        By the threads that hold the accumulators.
    lanes
        By lanes that have exchanged them; ``None`` for sizes of elements that they do not exchange.
    """

    staged: int
    direct: int
    lanes: int | None

    @property
    def is_worth_it(self) -> bool:
        """Whether the way through shared memory is faster."""
        return self.staged < self.direct

    def __str__(self) -> str:
        return f"estimated {self.staged:,} cycles through shared memory, {self.direct:,} without"


def estimate(shape: tuple[int, ...], bits: int) -> WriteEstimate:
    """Return the estimate for an epilogue tile with elements of ``bits`` bits.

    Few threads store no slower than many, since the multiprocessor's way to memory is the limit.
    """
    stores = prod(shape) / (2 * _WARP)
    total = prod(shape) * bits / 8
    wide, how = total / (_LANE * _WARP), EXCHANGES.get(bits)
    lanes = None if how is None else round(wide * (_PIECE + how.shuffles * _SHUFFLE))
    return WriteEstimate(round(total / _BYTES + _SYNC), round(stores * _PIECE), lanes)
