"""Performance notes: why a kernel is correct, but slower than its target allows."""

from __future__ import annotations

from typing import Literal

from tile_core.records import dataclass

Kind = Literal["fallback", "serial", "tiles", "spills", "memory", "serialized"]


@dataclass(frozen=True)
class PerformanceNote:
    """One reason why a kernel is slow.

    Parameters
    ----------
    kind
        ``"fallback"``: plain loops compute a product. ``"serial"``: one thread writes many elements. ``"tiles"``: other
        tiles are estimated to be much faster. ``"memory"``: the arrays of threads reserve much device memory.
        ``"spills"``: registers spill to memory. ``"serialized"``: the assembler serializes asynchronous products.
    text
        The reason and the remedy, for users.
    """

    kind: Kind
    text: str
