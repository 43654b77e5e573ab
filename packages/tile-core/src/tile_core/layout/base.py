"""The interface of layouts: a map from coordinates of a shape to indices per axis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from math import prod

from tile_core.compat.types import Coordinate
from tile_core.errors.layout import BadCoordinate
from tile_core.layout.digits import row_major_strides
from tile_core.layout.swizzle import PYTHON_OPS, Ops

MAX_ENUMERATION = 1 << 20
"""The most elements that are enumerated where the digits do not decide."""


class LayoutMap(ABC):
    """A map from the coordinates of ``shape`` to one non-negative index on each of ``axes``.

    Layouts are immutable values. An element can have several ``replicas``, each at its own index.
    """

    shape: tuple[int, ...]
    note: str = ""
    """Why this layout was chosen, for reports; no part of its value."""

    @property
    @abstractmethod
    def axes(self) -> tuple[str, ...]:
        """The axes that the layout gives an index on, in a fixed order."""

    @property
    def replicas(self) -> int:
        """The number of copies of each element."""
        return 1

    @abstractmethod
    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """The index per axis of the element at row-major index ``flat``."""

    @abstractmethod
    def tables(self) -> dict[str, list[int]]:
        """Return the index per axis for each row-major index; copies of an element are adjacent."""

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def apply(self, *coordinate: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """Return the index per axis at ``coordinate``.

        Parameters
        ----------
        *coordinate
            One index per dimension: Python integers, or expressions that support ``+ - * // % ^ & << >>``.
        replica
            Which of the copies.
        ops
            The arithmetic to use, for operands whose operators do not fit.

        Raises
        ------
        BadCoordinate
            If the number of indices is wrong or a known index lies outside the shape.
        """
        self.check(coordinate)
        if isinstance(replica, int) and not 0 <= replica < self.replicas:
            raise BadCoordinate(found=f"{coordinate} of replica {replica}", shape=self.shape)
        return self._apply(coordinate, replica, ops)

    def _apply(self, coordinate: Sequence[Coordinate], replica: Coordinate, ops: Ops) -> dict[str, Coordinate]:
        return self.at(linear(coordinate, row_major_strides(self.shape), ops), replica, ops)

    def __call__(self, *coordinate: Coordinate) -> Coordinate:
        """Return the index at ``coordinate``; for several axes, a tuple in the order of ``axes``."""
        found = self.apply(*coordinate)
        values = tuple(found[axis] for axis in self.axes)
        return values[0] if len(values) == 1 else values

    def check(self, coordinate: Sequence[Coordinate]) -> None:
        """Raise ``BadCoordinate`` unless ``coordinate`` has one index per dimension, each inside where it is known."""
        inside = (not isinstance(c, int) or 0 <= c < n for c, n in zip(coordinate, self.shape, strict=False))
        if len(coordinate) != len(self.shape) or not all(inside):
            raise BadCoordinate(found=tuple(coordinate), shape=self.shape)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """One more than the largest index, per axis."""
        return {axis: max(values) + 1 for axis, values in self.tables().items()}

    def size(self, axis: str = "memory") -> int:
        """Return one more than the largest index on ``axis``; 1 if it is unused."""
        return self.sizes.get(axis, 1)

    @property
    def span(self) -> int:
        """The number of elements of memory that the layout needs."""
        return self.size("memory")

    def _repr_html_(self) -> str:
        """Return its picture; see ``draw``."""
        raise NotImplementedError

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """All coordinates in row-major order."""
        return product(*(range(n) for n in self.shape))


def linear(values: Sequence[Coordinate], strides: Sequence[int], ops: Ops, offset: int = 0) -> Coordinate:
    """``offset + sum(value * stride)`` without zero terms."""
    total: Coordinate = None
    for value, stride in zip(values, strides, strict=True):
        if stride and not (isinstance(value, int) and not value):
            term = value if stride == 1 else ops.mul(value, stride)
            total = term if total is None else ops.add(total, term)
    if total is None:
        return offset
    return ops.add(total, offset) if offset else total


def coordinate_of(flat: Coordinate, shape: Sequence[int], ops: Ops) -> list[Coordinate]:
    """The coordinate of row-major index ``flat``, which is known to be inside ``shape``."""
    coordinate = []
    for dim, (extent, step) in enumerate(zip(shape, row_major_strides(shape), strict=True)):
        value = flat if step == 1 else ops.floordiv(flat, step)
        coordinate.append(ops.mod(value, extent) if dim else value)
    return coordinate
