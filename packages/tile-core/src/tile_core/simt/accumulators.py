"""The description of a program's accumulators, from their initialization to global memory.

A backend makes it as it decides, when it has chosen instructions; ``explain`` and estimates read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.errors.base import Where

Step = tuple["Where | None", str, str]
"""A step: the statement that makes it, its name and its outcome."""


@dataclass(frozen=True)
class ResultStore:
    """The way of a result from an accumulator to global memory.

    Attributes
    ----------
    where
        The statement that stores it.
    tensor
        The tensor.
    way
        The memory that it goes through; empty if threads store their registers.
    reason
        Why this is the best way.
    rejected
        Better ways, each with the rejection reason.
    shared_bytes
        Bytes of shared memory that it takes.
    subtiles
        Parts that overlap the main loop of the next tile; 0 if the epilogue does not overlap it.
    """

    where: Where | None
    tensor: str
    way: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()
    shared_bytes: int = 0
    subtiles: int = 0

    def steps(self) -> list[Step]:
        """Return the store, and the better ways that were rejected."""
        text = f"through {self.way}" if self.way else "directly"
        text += f", {self.shared_bytes:,} bytes" if self.shared_bytes else ""
        text += f", {self.subtiles} parts beside the main loop of the next tile" if self.subtiles else ""
        text += f": {self.reason}" if self.reason else ""
        rejected: list[Step] = [(self.where, f"not through {way}", reason) for way, reason in self.rejected]
        return [(self.where, f"stored to {self.tensor}", text), *rejected]


@dataclass(frozen=True)
class Accumulator:
    """The life of an accumulator, from its initialization to global memory.

    Attributes
    ----------
    name
        Of the fragment.
    storage
        Where it is.
    initialization
        What starts it.
    promotion
        Elements along K whose sum the matrix units keep before it is added to in float32; 0: all.
    operands
        Epilogue operands that are loaded before the main loop, each with its storage.
    stores
        The ways of its results.
    """

    name: str
    storage: str
    initialization: str = "statements of the program"
    promotion: int = 0
    operands: tuple[str, ...] = ()
    stores: tuple[ResultStore, ...] = ()

    def steps(self) -> list[Step]:
        """Return all steps, in order."""
        found: list[Step] = [(None, "storage", self.storage), (None, "initialization", self.initialization)]
        found += [(None, "promotion", f"to float32 after each {self.promotion} of K")] if self.promotion else []
        found += [(None, "prefetch", operand) for operand in self.operands]
        return [*found, *(step for store in self.stores for step in store.steps())]
