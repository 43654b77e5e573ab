"""Recovers the digits of a layout function by calling it with symbols, for large shapes.

An index is a sum of digits of the coordinates, each times a step. Addition, subtraction and int products keep this
form, and so do ``//`` and ``%`` by an int (``>>``, and ``&`` with one less than a power of two) if every digit lies
above or below the cut, and what lies below it is in range. A digit that spans a cut is divided there, and the function
is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from tile_core.errors.layout import BadLayoutFunction
from tile_core.layout.digits import Digit, row_major_strides, unravel
from tile_core.layout.layout import DigitLayout
from tile_runtime.errors.interrupts import passed_on

#: Digits that a coordinate may have: more than its bits are never needed.
_MOST_DIGITS = 64


def symbolic_layout(shape: Sequence[int], function: Callable[..., object]) -> DigitLayout | None:
    """Return the memory layout of a function on indices, or ``None`` without digits.

    Raises
    ------
    BadLayoutFunction
        If an index is negative.
    """
    extents = [[n] for n in shape]  # of each coordinate's digits, outermost first
    while max(map(len, extents), default=0) <= _MOST_DIGITS:
        digits = [(d, k) for d, parts in enumerate(extents) for k in range(len(parts))]
        coordinates = []
        for d, parts in enumerate(extents):
            steps = row_major_strides(parts)
            coordinates.append(_Sum(extents, {(d, k): s for k, s in enumerate(steps) if parts[k] > 1}))
        try:
            found: Any = function(*coordinates)
        except _Cut as cut:
            d, k = cut.digit
            extents[d][k : k + 1] = [extents[d][k] // cut.inner, cut.inner]
            continue
        except Exception as error:  # the function is the user's: it may need numbers
            passed_on(error)
            return None
        values = list(found) if isinstance(found, (tuple, list)) else [found]
        results = [v if isinstance(v, _Sum) else _Sum(extents, {}, v) for v in values if _is_index(v)]
        if not values or len(results) != len(values):
            return None
        for value in results:
            _check_sign(value, shape)
        strides = row_major_strides([v.reach[1] + 1 for v in results])
        total = sum((v * s for v, s in zip(results, strides, strict=True)), _Sum(extents, {}))
        placed = [Digit(extents[d][k], total.terms.get((d, k), 0)) for d, k in digits]
        layout = DigitLayout(shape, placed, offset={"memory": total.constant})
        return layout if _agrees(layout, function, strides) else None
    return None


def _agrees(layout: DigitLayout, function: Callable[..., object], strides: Sequence[int]) -> bool:
    """Whether the function returns equal results for some integers, which symbols might not imply."""
    count = layout.numel
    for flat in {*range(0, count, max(1, count // 97)), count - 1}:
        where = unravel(flat, layout.shape)
        found: Any = function(*where)
        values = found if isinstance(found, (tuple, list)) else (found,)
        if sum(v * s for v, s in zip(values, strides, strict=True)) != layout.apply(*where)["memory"]:
            return False
    return True


class _Cut(Exception):
    """A digit must be divided: ``inner`` is the extent of its lower part."""

    def __init__(self, digit: tuple[int, int], inner: int) -> None:
        super().__init__(digit, inner)
        self.digit, self.inner = digit, inner


class _Sum:
    """``constant`` plus digits times steps; a digit is named by coordinate and position."""

    def __init__(self, extents: list[list[int]], terms: dict[tuple[int, int], int], constant: int = 0) -> None:
        self.extents, self.terms, self.constant = extents, {d: s for d, s in terms.items() if s}, constant

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest value."""
        ends = [(self.extents[d][k] - 1) * s for (d, k), s in self.terms.items()]
        return self.constant + sum(min(e, 0) for e in ends), self.constant + sum(max(e, 0) for e in ends)

    def __bool__(self) -> bool:
        raise TypeError("a symbol is neither true nor false")

    def _compared(self, other: object) -> bool:
        raise TypeError("symbols are not compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> _Sum:
        if _is_int(other):
            return _Sum(self.extents, self.terms, self.constant + int(other))
        if not isinstance(other, _Sum):
            return NotImplemented
        keys: Iterable[tuple[int, int]] = dict.fromkeys((*self.terms, *other.terms))
        terms = {d: self.terms.get(d, 0) + other.terms.get(d, 0) for d in keys}
        return _Sum(self.extents, terms, self.constant + other.constant)

    def __mul__(self, other: Any) -> _Sum:
        if isinstance(other, _Sum) and not other.terms:
            other = other.constant
        if not _is_int(other):
            return NotImplemented
        return _Sum(self.extents, {d: s * int(other) for d, s in self.terms.items()}, self.constant * int(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> _Sum:
        return self * -1

    def __sub__(self, other: Any) -> _Sum:
        return self + other * -1

    def __rsub__(self, other: Any) -> _Sum:
        return self * -1 + other

    def __divmod__(self, other: Any) -> tuple[_Sum, _Sum]:
        """Divide at a cut; see the head of this file."""
        if not _is_int(other) or int(other) < 1:
            raise TypeError("a symbol is divided by positive ints")
        by = int(other)
        above, below = {}, {}
        for digit, step in self.terms.items():
            extent = self.extents[digit[0]][digit[1]]
            if step % by == 0:
                above[digit] = step // by
                continue
            below[digit] = step
            inner, rest = divmod(by, abs(step))
            if not rest and inner < extent:
                if extent % inner:
                    raise TypeError("a digit is not divided evenly")
                raise _Cut(digit, inner)
        quotient, constant = divmod(self.constant, by)
        remainder = _Sum(self.extents, below, constant)
        low, high = remainder.reach
        if low < 0 or high >= by:
            raise TypeError("what is below the cut does not stay there")
        return _Sum(self.extents, above, quotient), remainder

    def __floordiv__(self, other: Any) -> _Sum:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> _Sum:
        return divmod(self, other)[1]

    def __lshift__(self, other: int) -> _Sum:
        return self * (1 << other)

    def __rshift__(self, other: int) -> _Sum:
        return self // (1 << other)

    def __and__(self, other: int) -> _Sum:
        if not _is_int(other) or int(other) & (int(other) + 1):
            raise TypeError("only the low bits of a symbol can be taken")
        return self % (int(other) + 1)


def _is_int(x: object) -> bool:
    return hasattr(x, "__index__") and not isinstance(x, bool)


def _is_index(x: object) -> bool:
    return isinstance(x, _Sum) or _is_int(x)


def _check_sign(value: _Sum, shape: Sequence[int]) -> None:
    low = value.reach[0]
    if low >= 0:
        return
    where = [0] * len(shape)
    for (d, k), step in value.terms.items():
        parts = value.extents[d]
        where[d] += (parts[k] - 1) * prod(parts[k + 1 :]) if step < 0 else 0
    raise BadLayoutFunction(coordinate=tuple(where), reason=f"it returned {low}, expected an index of at least 0")
