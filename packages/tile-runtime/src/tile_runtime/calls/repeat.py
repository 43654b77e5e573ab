"""Fast repeated launches offered by a runtime: torch tensors and numbers, launched by their addresses.

`calls.specialise` requests it once per form of call and uses it from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tile_runtime.abi.adapter import Location
from tile_runtime.records import dataclass
from tile_runtime.types import Argument

_MOST_PREPARED, _MOST_SEEN = 256, 1024


@dataclass(frozen=True)
class Repeat:
    """Launches that differ from an earlier one only in the values at a few positions.

    Attributes
    ----------
    launch
        Called with the values at those positions, in their order.
    masks
        Positions, and the bits that are zero in every value that ``launch`` may be given there.
    prepare
        Returns a launch of integers, as a tuple, that needs nothing else; ``None`` if nothing is gained by that.
    again
        Called with such a launch and its values.
    """

    launch: Callable[..., None]
    masks: tuple[tuple[int, int], ...] = ()
    prepare: Callable[[tuple[int, ...]], object] | None = None
    again: Callable[[Any, tuple[int, ...]], None] | None = None


class PreparedLaunches:
    """Prepared launches of one form, by their values: addresses of arrays are often reused.

    The values have passed all checks, so that they need no second one. A launch is prepared when its values are seen
    again: preparing takes longer than a launch.

    Parameters
    ----------
    prepare
        See `Repeat`.
    """

    def __init__(self, prepare: Callable[[tuple[int, ...]], object]) -> None:
        self._prepare = prepare
        self._once: set[tuple[int, ...]] = set()
        self._of: dict[tuple[int, ...], object] = {}
        self.get = self._of.get
        """Returns the launch of some values, or ``None``."""

    def learn(self, values: tuple[int, ...]) -> None:
        """Take note of a launch that succeeded."""
        once, of = self._once, self._of
        if values in once:
            once.discard(values)
            if len(of) >= _MOST_PREPARED:
                of.clear()
            of[values] = self._prepare(values)
            return
        if len(once) >= _MOST_SEEN:
            once.clear()
        once.add(values)


class Repeatable(Protocol):
    """A launch callable of the convention ``"pointers"`` with a fast path for similar launches."""

    def __call__(self, values: Sequence[Argument], location: Location) -> None:
        """Launch, see ``RuntimeAdapter.load``."""

    def repeat(self, values: Sequence[Argument], location: Location, moving: Sequence[int]) -> Repeat | None:
        """Return the fast path.

        Parameters
        ----------
        values, location
            Of a launch that has succeeded.
        moving
            Positions of values that differ from launch to launch, ascending.

        Returns
        -------
        Repeat or None
            ``None`` if there is no fast path.
        """
