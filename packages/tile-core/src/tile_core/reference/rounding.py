"""Perturb reductions, products, quotients and functions within the bounds of a level of numerics.

The order in which a product, a reduction or an atomic update adds is not specified, a multiplication may be fused with
an addition, and functions are approximations. Executed again with such results changed, a program shows how far its
outputs depend on them, also by way of narrower storage and integers, where a value beside a tie becomes the neighbour.
Functions change by the table of bounds, and at level ``"fast"`` subnormal operands and results of arithmetic become
zero in some executions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.numerics.bounds import FLUSHED, LEAST, bound_of
from tile_core.numerics.levels import FAST, STANDARD, STRICT
from tile_core.reference.elements import CODED, decode, encode, holder

__all__ = ["INEXACT", "INTEGRAL", "Shaker", "is_rounded"]

#: Rounding to nearest is off by at most so much of a value, by the type that is added in.
_UNIT = {"float64": 2.0**-53}
#: By how many times that an order of additions changes a reduction.
_ORDERS = 4.0
#: The largest finite number of a type that is changed by units in its last place, as bits.
_LARGEST = {"float16": 0x7BFF, "bfloat16": 0x7F7F, "float32": 0x7F7FFFFF, "float64": 0x7FEFFFFFFFFFFFFF}
#: Operators whose result targets may round otherwise, with NumPy's.
INEXACT: dict[str, Callable[..., Array]] = {"Mul": np.multiply, "Div": np.divide}
#: Operators that are computed from a quotient.
_QUOTIENTS = ("Div", "FloorDiv", "FloorMod")
#: A quotient that becomes an integer.
INTEGRAL = "quotient of an integer"
#: A result without a bound, by seed.
_ANY = (np.inf, -np.inf, np.nan)


class Shaker:
    """Changes results by as much as a target's may differ.

    Adding n random numbers to a start rounds n times, each time by a part of the sum so far. That is about the sum of
    the absolute values, and the square root of n times the start, times the unit of rounding; ``_ORDERS`` times that is
    the bound.

    Parameters
    ----------
    seed
        0 and 2 change all results upwards, 1 and 3 downwards, so that changes of results in a row add up; others change
        them up or down at random, so that they do not cancel where a result is a quotient or a difference. Subnormal
        numbers are flushed where results are changed downwards; 2 and 3 flush all.
    level
        Level of numerics.

    Attributes
    ----------
    scales_products
        Whether a product with block scales multiplies partial products by the scales, with 2, or else its operands.
    """

    def __init__(self, seed: int, level: str = STANDARD) -> None:
        self._random = np.random.default_rng(seed) if seed > 3 else None
        self._sign = -1.0 if seed in (1, 3) else 1.0
        self._any = _ANY[seed % len(_ANY)]
        self.scales_products = seed in (2, 3)
        self.level = level

    def flushed(self, x: Array, dtype: str) -> Array:
        """Return held values, subnormal ones perhaps zero if the level admits it."""
        if self.level != FAST or dtype not in FLUSHED:
            return x
        held = np.asarray(x)
        if held.dtype.kind == "f":
            flush, zero = (np.abs(held) < LEAST) & (held != 0), np.copysign(held.dtype.type(0), held)
        else:
            flush, zero = (held & 0x7F80) == 0, held & np.uint16(0x8000)
        if not flush.any():
            return x
        flush &= self.scales_products or self._signs(held.shape) < 0
        return np.where(flush, zero, held)[()]

    def operator(self, node: str, function: Callable[[Array, Array], Array], a: Array, b: Array, dtype: str) -> Array:
        """Return an operator of two floats as a target may compute it.

        Parameters
        ----------
        node
            Name of the IR's node.
        function
            Its function of held values.
        a, b
            Held values of one type.
        """
        a, b = self.flushed(a, dtype), self.flushed(b, dtype)
        if node == INTEGRAL:
            if self.level != FAST:
                return function(a, b)
            node = "Div"
        if node in _QUOTIENTS and self.level != STRICT and dtype != "float64":
            return self.flushed(self._quotient(node, a, b, dtype), dtype)
        result = function(a, b)
        if node in INEXACT and self.level != STRICT:
            result = self.nudged(result, dtype, 1, is_rounded(node, a, b, result, dtype))
        return self.flushed(result, dtype) if result.dtype != np.bool_ else result

    def _quotient(self, node: str, a: Array, b: Array, dtype: str) -> Array:
        x, y = (np.asarray(decode(v, dtype)).astype(np.float64) for v in (a, b))
        found = self.function("div", x / y, (x, y), dtype).astype(np.float32).astype(np.float64)
        if node != "Div":
            found = np.floor(found) if node == "FloorDiv" else x - np.floor(found) * y
        return _rounded(found, dtype)

    def function(
        self, name: str, exact: Array, arguments: Sequence[Array], dtype: str, level: str | None = None
    ) -> Array:
        """Return results of a function, changed within the table of bounds.

        Parameters
        ----------
        name
            As in the table.
        exact
            The exact results.
        arguments
            Its arguments in float64.
        dtype
            The type of the result.
        level
            The level of its region of numerics.
        """
        bound = bound_of(name, level or self.level, dtype)
        if bound is None:
            return exact
        error = bound.allowed(exact, arguments, "float64" if dtype == "float64" else "float32")
        free, error = np.isinf(error), np.where(np.isfinite(error), error, 0.0)
        changed = np.isfinite(exact) & ((exact != 0) | (bound.absolute > 0))
        moved = np.where(changed, exact + self._signs(np.shape(exact)) * error, exact)
        return np.where(free, self._any, moved)

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


def _rounded(x: Array, dtype: str) -> Array:
    """Return float64 numbers as held values of a type."""
    return (encode(x, dtype) if dtype in CODED else np.asarray(x).astype(holder(dtype)))[()]


def is_rounded(node: str, a: Array, b: Array, result: Array, dtype: str) -> Array:
    """Return where an operator of ``INEXACT`` is inexact, so that targets may differ."""
    wide = np.longdouble if DTYPES[dtype].bits == 64 else np.float64
    x, y, z = (np.asarray(decode(v, dtype)).astype(wide) for v in (a, b, result))
    return np.asarray(INEXACT[node](x, y) != z)
