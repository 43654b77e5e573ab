"""Lanes, which execute in parallel, and masks of the active ones.

A block begins with one lane, or with one per thread if its kernel names threads. A ``T.Parallel`` loop makes a lane of
each of its iterations. A value is a NumPy scalar if it is the same in all lanes, else an array with an element a lane.
A mask is ``None`` for all lanes, ``False`` for none, or an array of bools.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.compat.types import Array

__all__ = ["LaneSet", "Mask", "both", "either", "expanded", "without"]

Mask = np.ndarray[Any, Any] | bool | None


class LaneSet:
    """Lanes that run side by side.

    Parameters
    ----------
    count
        How many.
    parent
        The lanes around a loop, which wait for it.
    index
        For each lane the number of its parent; ``None`` if that is lane 0 for all.
    """

    def __init__(self, count: int, parent: LaneSet | None = None, index: Array | None = None) -> None:
        self.count, self.parent, self.index = count, parent, index
        self._maps: dict[int, Array] = {}
        self._numbers: Array | None = None

    @property
    def numbers(self) -> Array:
        """The numbers of the lanes."""
        if self._numbers is None:
            self._numbers = np.arange(self.count)
        return self._numbers

    def within(self, home: LaneSet) -> Array:
        """Return each lane's ancestor number in ``home``, or 0 for all lanes."""
        if home is self:
            return self.numbers if self.count > 1 else 0
        found = self._maps.get(id(home))
        if found is None:
            assert self.parent is not None, "lanes outside of the ones that own the memory"
            outer = self.parent.within(home)
            if self.index is None:
                found = outer if isinstance(outer, int) else int(outer[0])
            else:
                found = self.index if self.parent is home else outer if isinstance(outer, int) else outer[self.index]
            self._maps[id(home)] = found
        return found


def both(mask: Mask, condition: Array) -> Mask:
    """Return the mask of the active lanes where a condition holds."""
    if not isinstance(condition, np.ndarray) or condition.ndim == 0:
        return mask if condition else False
    if mask is False or not condition.any():
        return False
    if mask is None:
        return None if condition.all() else condition
    assert isinstance(mask, np.ndarray)
    result = mask & condition
    return result if result.any() else False


def either(a: Mask, b: Mask) -> Mask:
    """Return the mask of the lanes that are active in one of two."""
    if a is None or b is None:
        return None
    if a is False:
        return b
    if b is False:
        return a
    result: Array = np.logical_or(a, b)
    return None if result.all() else result


def without(mask: Mask, condition: Array) -> Mask:
    """Return the mask of the active lanes where a condition does not hold."""
    return both(mask, np.logical_not(condition))


def expanded(value: Array, index: Array | None) -> Array:
    """Return a value of the lanes around a loop for the lanes in it."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return value[0] if index is None else value[index]
