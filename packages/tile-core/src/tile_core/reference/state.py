"""The state of an execution: values, memory, the active lanes, and where the block is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Array
from tile_core.reference.elements import convert
from tile_core.reference.lanes import LaneSet, Mask, either

if TYPE_CHECKING:
    from tile_core.reference.memory import LaneMemory, Root
    from tile_core.reference.rounding import Shaker
    from tile_core.reference.sanitizer import Sanitizer

__all__ = ["LoopFrame", "State"]


class LoopFrame:
    """The state of an open loop's lanes.

    Attributes
    ----------
    continued
        Lanes that skip the rest of this iteration.
    """

    __slots__ = ("continued",)

    def __init__(self) -> None:
        self.continued: Mask = False


class State:
    """One launch that is being executed.

    Parameters
    ----------
    variables, buffers
        Their count; the compiled program refers to them by number.
    threads
        Threads of a block along its axes.
    width
        Lanes of a warp.
    sanitizer
        Watches memory, or ``None``.
    shaker
        Changes totals of floats as another order of additions may, or ``None``.

    Attributes
    ----------
    values, memories
        By number.
    lanes, mask
        What runs side by side, and which of it is active.
    frames
        Open loops.
    grid
        Block numbers by axis.
    fills
        By buffer number what reads outside give.
    printed
        Lines of ``T.print``.
    observer
        Of an observed execution, see ``observe``.
    """

    def __init__(
        self,
        variables: int,
        buffers: int,
        threads: tuple[int, int, int],
        width: int,
        sanitizer: Sanitizer | None,
        shaker: Shaker | None,
    ) -> None:
        self.values: list[Any] = [None] * variables
        self.memories: list[LaneMemory | Any] = [None] * buffers
        self.fills: dict[int, Array] = {}
        self.threads, self.width, self.sanitizer, self.shaker = threads, width, sanitizer, shaker
        self.lanes = LaneSet(1)
        self.mask: Mask = None
        self.frames: list[LoopFrame] = []
        self.grid: dict[int, Array] = {}
        self.printed: list[str] = []
        self.observer: Any = None

    @property
    def count(self) -> int:
        """Lanes side by side."""
        return self.lanes.count

    def flushed(self, x: Array, dtype: str) -> Array:
        """Return operands or results of arithmetic as a target may take them, see ``Shaker.flushed``."""
        return x if self.shaker is None else self.shaker.flushed(x, dtype)

    def converted(self, x: Array, source: str, target: str) -> Array:
        """Return values converted between element types; a conversion is arithmetic, and a copy is not."""
        if source == target or self.shaker is None:
            return convert(x, source, target)
        if source == "float8_e8m0fnu":  # its least number is a subnormal float32
            x, source = convert(x, source, "float32"), "float32"
        return self.flushed(convert(self.flushed(x, source), source, target), target)

    def slot(self, root: Root) -> Array:
        """Return the number of each lane's slot in a storage."""
        return 0 if root.home is None else self.lanes.within(root.home)

    def leave(self) -> None:
        """The active lanes skip the rest of this iteration."""
        frame = self.frames[-1]
        frame.continued = either(frame.continued, self.mask)
        self.mask = False

    def active(self) -> Array:
        """The numbers of the active lanes."""
        if self.mask is None:
            return self.lanes.numbers
        return self.lanes.numbers[self.mask] if self.mask is not False else self.lanes.numbers[:0]
