"""Fast repeated launches offered by a runtime: torch tensors and numbers, launched by their addresses.

`runtime.specialise` asks for it once per form of call and launches in this way from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tile_core.abi.adapter import Place
from tile_core.compat.types import Argument


@dataclass(frozen=True)
class Repeat:
    """Launches that differ from an earlier one only in the values at a few positions.

    Attributes
    ----------
    launch
        Called with the values at those positions, in their order.
    masks
        Positions, and the bits that are zero in every value that ``launch`` may be given there.
    """

    launch: Callable[..., None]
    masks: tuple[tuple[int, int], ...] = ()


class Repeatable(Protocol):
    """A launch callable of the convention ``"pointers"`` with a fast path for similar launches."""

    def __call__(self, values: Sequence[Argument], place: Place) -> None:
        """Launch, see ``RuntimeAdapter.load``."""

    def repeat(self, values: Sequence[Argument], place: Place, moving: Sequence[int]) -> Repeat | None:
        """Return the fast path.

        Parameters
        ----------
        values, place
            Of a launch that has succeeded.
        moving
            Positions of values that differ from launch to launch, ascending.

        Returns
        -------
        Repeat or None
            ``None`` if there is no fast path.
        """
