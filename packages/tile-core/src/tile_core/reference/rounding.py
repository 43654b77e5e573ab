"""Perturb reductions, products, quotients and functions within a target's rounding bounds.

The order in which a product, a reduction or an atomic update adds is not specified, a multiplication may be fused with
an addition, and functions are approximations. Executed again with such results changed, a program shows how far its
outputs depend on them, also by way of narrower storage and integers, where a value beside a tie becomes the neighbour.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.reference.elements import decode

__all__ = ["INEXACT", "Shaker", "is_rounded"]

#: Rounding to nearest is off by at most so much of a value, by the type that is added in.
_UNIT = {"float64": 2.0**-53}
#: By how many times that an order of additions changes a reduction.
_ORDERS = 4.0
#: The largest finite number of a type that is changed by units in its last place, as bits.
_LARGEST = {"float16": 0x7BFF, "bfloat16": 0x7F7F, "float32": 0x7F7FFFFF, "float64": 0x7FEFFFFFFFFFFFFF}
#: Operators whose result targets may round otherwise, with NumPy's.
INEXACT: dict[str, Callable[..., Array]] = {"Mul": np.multiply, "Div": np.divide}


class Shaker:
    """Changes results by as much as a target's may differ.

    Adding n random numbers to a start rounds n times, each time by a part of the sum so far. That is about the sum of
    the absolute values, and the square root of n times the start, times the unit of rounding; ``_ORDERS`` times that is
    the bound.

    Parameters
    ----------
    seed
        0 changes all results upwards and 1 downwards, so that changes of results in a row add up; others change them up
        or down at random, so that they do not cancel where a result is a quotient or a difference.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed) if seed > 1 else None
        self._sign = -1.0 if seed == 1 else 1.0

    def shaken(self, total: Array, size: Array, dtype: str, start: Array = 0.0, count: int = 1) -> Array:
        """Return totals of a type, changed.

        Parameters
        ----------
        total
            The totals.
        size
            The totals of the absolute values.
        dtype
            The type that they are added in.
        start, count
            The initial value of the totals, and the number of terms.
        """
        size = size + np.abs(start) * np.sqrt(count)
        size = np.where(np.isfinite(size), size, 0)
        change = self._signs(np.shape(total)) * size * (_ORDERS * _UNIT.get(dtype, 2.0**-24))
        return total + change.astype(np.asarray(total).dtype)

    def nudged(self, x: Array, dtype: str, units: int, where: Array | bool = True) -> Array:
        """Return floats changed by units in the last place; zeros and non-finite values stay.

        Parameters
        ----------
        x
            Held values.
        units
            How many.
        where
            Which of them.
        """
        largest = _LARGEST.get(dtype)
        if largest is None:
            return x
        held = np.asarray(x)
        word = np.dtype(f"u{held.dtype.itemsize}")
        bits = np.ascontiguousarray(held).view(word).reshape(held.shape)
        top = word.type(1 << (8 * held.dtype.itemsize - 1))
        magnitude = bits & ~top
        up = (self._signs(held.shape) > 0) == (bits < top)
        moved = np.where(
            up,
            np.minimum(magnitude, largest - units) + word.type(units),
            np.maximum(magnitude, units) - word.type(units),
        )
        change = (magnitude > 0) & (magnitude <= largest) & where
        result = np.where(change, moved.astype(word) | (bits & top), bits)
        return np.ascontiguousarray(result).view(held.dtype).reshape(held.shape)[()]

    def _signs(self, shape: tuple[int, ...]) -> Array:
        if self._random is None:
            return np.full(shape, self._sign)
        return self._random.integers(0, 2, shape) * 2.0 - 1


def is_rounded(node: str, a: Array, b: Array, result: Array, dtype: str) -> Array:
    """Return where an operator of ``INEXACT`` is inexact, so that targets may differ."""
    wide = np.longdouble if DTYPES[dtype].bits == 64 else np.float64
    x, y, z = (np.asarray(decode(v, dtype)).astype(wide) for v in (a, b, result))
    return np.asarray(INEXACT[node](x, y) != z)
