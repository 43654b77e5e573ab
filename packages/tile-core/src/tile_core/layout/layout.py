"""Layouts made of digits, and how to make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod

from tile_core.compat.types import Array, Coordinate
from tile_core.errors.layout import BadDigits, LayoutMismatch
from tile_core.layout.base import MAX_ENUMERATION, LayoutMap, coordinate_of, linear
from tile_core.layout.digits import (
    AXES,
    Digit,
    as_digits,
    as_shape,
    format_digits,
    group_by_dims,
    merge,
    row_major_strides,
)
from tile_core.layout.swizzle import PYTHON_OPS, Ops, Swizzle


def row_major(shape: Sequence[int]) -> DigitLayout:
    """The layout of ``shape`` in memory with the last dimension contiguous."""
    extents = as_shape(shape)
    return strided(extents, row_major_strides(extents))


def column_major(shape: Sequence[int]) -> DigitLayout:
    """The layout of ``shape`` in memory with the first dimension contiguous."""
    extents = as_shape(shape)
    return strided(extents, tuple(reversed(row_major_strides(tuple(reversed(extents))))))


def strided(shape: Sequence[int], strides: Sequence[int], axis: str = "memory", offset: int = 0) -> DigitLayout:
    """The layout of ``shape`` with one stride per dimension on ``axis``."""
    extents = as_shape(shape)
    if len(strides) != len(extents):
        expected = f"{len(extents)}, one per dimension of {extents}"
        raise LayoutMismatch(operation="strided", found=f"{len(strides)} strides", expected=expected)
    digits = [Digit(n, int(s), axis) for n, s in zip(extents, strides, strict=True)]
    return DigitLayout(extents, digits, offset={axis: offset})


class DigitLayout(LayoutMap):
    """A layout of digits, plus XOR swizzles of the memory index, copies and padding.

    The row-major index of a coordinate is written in the mixed radix of the digits' extents; each axis gets
    ``offset + sum(digit * stride)``; the swizzles are applied to the memory index, in order. Where a dimension is
    padded, the row-major index in the padded shape is decomposed; padding holds nothing.

    Parameters
    ----------
    shape
        Logical shape, positive integers.
    digits
        Text or (extent, stride[, axis]) tuples, outermost first; see ``digits.as_digits``.
    swizzles
        Swizzles of the memory index, first one first, in elements.
    replica
        Digits independent of the coordinate: copies of each element, ``stride`` apart on ``axis``.
    offset
        A constant per axis, added before the swizzles.
    padded
        The extents that the digits decompose, none below that of ``shape``; ``shape`` itself by default.
    note
        Why this layout was chosen.

    Raises
    ------
    BadLayoutShape, BadDigits
        If the parts do not fit together.
    """

    def __init__(
        self,
        shape: Sequence[int],
        digits: str | Iterable[Digit | tuple[int, int, str]],
        *,
        swizzles: Sequence[Swizzle] = (),
        replica: Iterable[Digit | tuple[int, int, str]] = (),
        offset: Mapping[str, int] | None = None,
        padded: Sequence[int] | None = None,
        note: str = "",
    ) -> None:
        self.shape = as_shape(shape)
        self.padded = self.shape if padded is None else as_shape(padded)
        self.digits = as_digits(digits, self.padded)
        self.swizzles = tuple(s for s in swizzles if s.bits)
        self.replica = tuple(Digit(*d) for d in replica)
        self.offset = {axis: start for axis, start in (offset or {}).items() if start}
        self.note = note
        unknown = [a for a in (*self.offset, *(d.axis for d in self.replica)) if a not in AXES]
        used = {d.axis for d in (*self.digits, *self.replica)} | set(self.offset)
        self._axes = tuple(a for a in AXES if a in used) or ("memory",)
        reason = f"unknown axis {unknown[0]!r}" if unknown else ""
        if len(self.padded) != len(self.shape) or any(p < n for p, n in zip(self.padded, self.shape, strict=True)):
            reason = f"the padded shape {self.padded} does not hold it"
        if not unknown and self.swizzles and "memory" not in self._axes:
            reason = "a swizzle needs the memory axis"
        signs = [*self.offset.values(), *(d.stride for d in (*self.digits, *self.replica))]
        if not reason and min(signs, default=0) < 0:
            low = {a: self.lowest(a) for a in self._axes}
            if min(low.values()) < 0:
                reason = f"indices as low as {low} (give an offset)"
        if reason:
            text = format_digits(self.digits)
            raise BadDigits(digits=text, shape=self.shape, reason=reason, axes=", ".join(AXES))

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return self._axes

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return prod(d.extent for d in self.replica)

    def lowest(self, axis: str) -> int:
        """The smallest index on ``axis`` before the swizzles."""
        return self.offset.get(axis, 0) + sum(min(0, (d.extent - 1) * d.stride) for d in self.terms(axis))

    def highest(self, axis: str) -> int:
        """The largest index on ``axis`` before the swizzles."""
        return self.offset.get(axis, 0) + sum(max(0, (d.extent - 1) * d.stride) for d in self.terms(axis))

    def terms(self, axis: str) -> list[Digit]:
        """All digits on ``axis``, those of the copies included."""
        return [d for d in (*self.digits, *self.replica) if d.axis == axis]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """One more than the largest index, per axis; padding counts.

        Exact without a swizzle, where the swizzles keep the window, and up to ``MAX_ENUMERATION`` elements; beyond,
        the memory is rounded up to whole swizzle blocks.
        """
        found = {axis: self.highest(axis) + 1 for axis in self.axes}
        if self.swizzles and not self.keeps_window():
            if self.numel * self.replicas <= MAX_ENUMERATION:
                found["memory"] = max(self.tables()["memory"]) + 1
            else:
                block = max(s.block for s in self.swizzles)
                found["memory"] = -(-found["memory"] // block) * block
        return found

    def keeps_window(self) -> bool:
        """Whether memory before swizzles is 0 … n - 1, permuted by each swizzle."""
        size = self.highest("memory") + 1
        if self.lowest("memory") or not all(s.keeps_window(size) for s in self.swizzles):
            return False
        reach = 1
        for digit in sorted(self.terms("memory"), key=lambda d: d.stride):
            if digit.extent > 1 and digit.stride > reach:
                return False
            reach += (digit.extent - 1) * digit.stride
        return True

    def canonical(self) -> DigitLayout:
        """The same map with the fewest digits, and without swizzles whose source bits are zero."""
        top = self.highest("memory")
        swizzles = list(self.swizzles)
        while swizzles and top < (swizzles[0].source_mask & -swizzles[0].source_mask):
            swizzles.pop(0)
        return DigitLayout(
            self.shape, self._filled(), swizzles=swizzles, replica=merge(self.replica),
            offset=self.offset, padded=self.padded, note=self.note,
        )  # fmt: skip

    def _filled(self) -> list[Digit]:
        """The merged digits; an axis that none of them uses keeps an empty one."""
        digits = merge(self.digits)
        used = {d.axis for d in (*digits, *merge(self.replica))} | set(self.offset)
        return [*(Digit(1, 0, axis) for axis in self.axes if axis not in used), *digits]

    @property
    def dims(self) -> tuple[tuple[Digit, ...], ...] | None:
        """Return each dimension's digits, or ``None`` if a dimension ends inside of a digit."""
        return self._groups

    @cached_property
    def _groups(self) -> tuple[tuple[Digit, ...], ...] | None:
        """The digits of each dimension, merged: what an index is decomposed into."""
        groups = group_by_dims(merge(self.digits), self.padded)
        return None if groups is None else tuple(merge(g) for g in groups)

    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """See ``LayoutMap.at``."""
        if self.padded != self.shape:
            return self._apply(coordinate_of(flat, self.shape, ops), replica, ops)
        return self._position(decompose(flat, merge(self.digits), ops), replica, ops)

    def _apply(self, coordinate: Sequence[Coordinate], replica: Coordinate, ops: Ops) -> dict[str, Coordinate]:
        if self._groups is None:
            flat = linear(coordinate, row_major_strides(self.padded), ops)
            return self._position(decompose(flat, merge(self.digits), ops), replica, ops)
        parts: list[tuple[Digit, Coordinate]] = []
        for index, group in zip(coordinate, self._groups, strict=True):
            parts += decompose(index, group, ops)
        return self._position(parts, replica, ops)

    def _position(self, parts: list[tuple[Digit, Coordinate]], replica: Coordinate, ops: Ops) -> dict[str, Coordinate]:
        if self.replica:
            parts = parts + decompose(replica, self.replica, ops)
        found = {}
        for axis in self.axes:
            on_axis = [(digit.stride, value) for digit, value in parts if digit.axis == axis]
            strides, values = [s for s, _ in on_axis], [v for _, v in on_axis]
            found[axis] = linear(values, strides, ops, self.offset.get(axis, 0))
        for swizzle in self.swizzles:
            found["memory"] = swizzle.apply(found["memory"], ops)
        return found

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        return {axis: self.array(axis).reshape(-1).tolist() for axis in self.axes}

    def array(self, axis: str) -> Array:
        """Return the index on ``axis`` per element and copy: an array (``numel``, ``replicas``)."""
        import numpy as np

        values = np.array([self.offset.get(axis, 0)], "int64")
        for digit in (*self.digits, *self.replica):
            step = digit.stride if digit.axis == axis else 0
            values = (values[:, None] + np.arange(digit.extent) * step).reshape(-1)
        if axis == "memory":
            for swizzle in self.swizzles:
                values = swizzle.apply(values)
        if self.padded != self.shape:
            values = values.reshape(*self.padded, self.replicas)[tuple(map(slice, self.shape))]
        return values.reshape(self.numel, self.replicas)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        c = self.canonical()
        copies = tuple(sorted(c.replica))
        return (c.shape, c.padded, c.axes, merge(c.digits), c.swizzles, copies, tuple(sorted(c.offset.items())))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, DigitLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        """Digits, then swizzles, copies and offset where there are any: ``(4,8):(8@memory,1@memory)``."""
        parts = [format_digits(self.digits)]
        parts += [f"^{s}" for s in self.swizzles]
        parts += [f"x{d.extent}:{d.stride}@{d.axis}" for d in self.replica]
        parts += [f"+{start}@{axis}" for axis, start in sorted(self.offset.items())]
        parts += [f"padded to {self.padded}"] if self.padded != self.shape else []
        return " ".join(parts)


def decompose(index: Coordinate, digits: Sequence[Digit], ops: Ops, axis: str = "") -> list[tuple[Digit, Coordinate]]:
    """Write ``index``, below the product of the extents, in the radix of ``digits``.

    Digits of extent 1 are left out, and so are those of other axes if one is requested.
    """
    parts: list[tuple[Digit, Coordinate]] = []
    step = 1
    for position in range(len(digits) - 1, -1, -1):
        digit = digits[position]
        if digit.stride and axis in ("", digit.axis):
            value = index if step == 1 else ops.floordiv(index, step)
            parts.append((digit, ops.mod(value, digit.extent) if position and digit.extent > 1 else value))
        step *= digit.extent
    parts.reverse()
    return parts
