"""Notes on pipelined loops, for ``explain`` and for later passes."""

from __future__ import annotations

from tile_core.records import dataclass


@dataclass(frozen=True)
class LoopNote:
    """A decision about a pipelined loop.

    Parameters
    ----------
    subject
        Name of the buffer or of the loop's variable.
    text
        The decision and its reason, for users.
    no_pairs
        Whether this is why each block computes the product by itself, and not a pair of blocks.
    """

    subject: str
    text: str
    no_pairs: bool = False
