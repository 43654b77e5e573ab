"""What another order of additions may change: sums of floats are shaken by an amount as rounding has.

The order in which a product, a reduction or an atomic update adds is not specified, and targets differ. Executed again
with sums that are shaken, a program shows how far its outputs depend on that order: ``Kernel.verify`` allows as much.
"""

from __future__ import annotations

import numpy as np

from tile_core.compat.types import Array

__all__ = ["Shaker"]

#: Rounding to nearest is off by at most so much of a value, by the type that sums are of.
_UNIT = {"float64": 2.0**-53}


class Shaker:
    """Changes sums by the error that another order of additions makes.

    Adding n random numbers to a start rounds n times, each time by a part of the sum so far. That is about the sum of
    the absolute values, and the square root of n times the start, times the unit of rounding.

    Parameters
    ----------
    seed
        0 changes all sums upwards, so that the changes of sums in a row add up; others change them up or down at
        random, so that they do not cancel where a result is a quotient of sums.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed) if seed else None

    def shaken(self, total: Array, size: Array, dtype: str, start: Array = 0.0, count: int = 1) -> Array:
        """Return sums of a type, changed.

        Parameters
        ----------
        total
            The sums.
        size
            The sums of the absolute values.
        dtype
            The type that they are added in.
        start, count
            The initial value of the sums, and the number of terms.
        """
        size = size + np.abs(start) * np.sqrt(count)
        size = np.where(np.isfinite(size), size, 0)
        sign = 1.0 if self._random is None else self._random.integers(0, 2, np.shape(total)) * 2.0 - 1
        return total + (sign * size * _UNIT.get(dtype, 2.0**-24)).astype(np.asarray(total).dtype)
