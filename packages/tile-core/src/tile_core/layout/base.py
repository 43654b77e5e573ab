"""What every layout offers: a map from the coordinates of a shape to an index per axis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from tile_core.errors.layout import BadCoordinate, LayoutMismatch
from tile_core.layout.digits import Digit, row_major_strides
from tile_core.layout.swizzle import PYTHON_OPS, Ops

MAX_ENUMERATION = 1 << 20
"""How many elements are tried one by one where the digits do not decide."""


class LayoutMap(ABC):
    """A map from the coordinates of ``shape`` to one non-negative index on each of ``axes``.

    Layouts are immutable values. An element can have several ``replicas``, each in a place of its own.
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
        """How many copies of each element there are."""
        return 1

    @abstractmethod
    def at(self, flat: Any, replica: Any = 0, ops: Ops = PYTHON_OPS) -> dict[str, Any]:
        """The index per axis of the element at row-major index ``flat``."""

    @abstractmethod
    def tables(self) -> dict[str, list[int]]:
        """The index per axis for each row-major index; with replicas the copies of an element follow each other."""

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def apply(self, *coordinate: Any, replica: Any = 0, ops: Ops = PYTHON_OPS) -> dict[str, Any]:
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
            If the number of indices is wrong or a known index lies outside of the shape.
        """
        self.check(coordinate)
        if isinstance(replica, int) and not 0 <= replica < self.replicas:
            raise BadCoordinate(found=f"{coordinate} of replica {replica}", shape=self.shape)
        return self._apply(coordinate, replica, ops)

    def _apply(self, coordinate: Sequence[Any], replica: Any, ops: Ops) -> dict[str, Any]:
        return self.at(linear(coordinate, row_major_strides(self.shape), ops), replica, ops)

    def __call__(self, *coordinate: Any) -> Any:
        """The index at ``coordinate``: the index itself for one axis, a tuple in the order of ``axes`` for more."""
        found = self.apply(*coordinate)
        values = tuple(found[axis] for axis in self.axes)
        return values[0] if len(values) == 1 else values

    def check(self, coordinate: Sequence[Any]) -> None:
        """Raise ``BadCoordinate`` unless ``coordinate`` has one index per dimension, each inside where it is known."""
        inside = (not isinstance(c, int) or 0 <= c < n for c, n in zip(coordinate, self.shape, strict=False))
        if len(coordinate) != len(self.shape) or not all(inside):
            raise BadCoordinate(found=tuple(coordinate), shape=self.shape)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """One more than the largest index, per axis."""
        return {axis: max(values) + 1 for axis, values in self.tables().items()}

    def size(self, axis: str = "memory") -> int:
        """One more than the largest index on ``axis``; 1 if the layout does not use it."""
        return self.sizes.get(axis, 1)

    @property
    def span(self) -> int:
        """How many elements of memory the layout needs."""
        return self.size("memory")

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """All coordinates in row-major order."""
        return product(*(range(n) for n in self.shape))

    # Shorthands of layout.algebra and layout.proof, which import this module.

    def inverse(self, partial: bool = False) -> LayoutMap:
        """See ``algebra.inverse``."""
        from tile_core.layout.algebra import inverse

        return inverse(self, partial)

    def compose(self, inner: LayoutMap) -> LayoutMap:
        """See ``algebra.compose``: this layout after ``inner``."""
        from tile_core.layout.algebra import compose

        return compose(self, inner)

    def reshape(self, *shape: Any) -> LayoutMap:
        """See ``algebra.reshape``."""
        from tile_core.layout.algebra import reshape

        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def permute(self, *dims: int) -> LayoutMap:
        """See ``algebra.permute``."""
        from tile_core.layout.algebra import permute

        return permute(self, dims)

    def __getitem__(self, key: Any) -> LayoutMap:
        """The layout of a region: ``layout[2:6, 1]``; an integer drops its dimension. See ``algebra.slice_layout``."""
        from tile_core.layout.algebra import slice_layout

        return slice_layout(self, key)

    def tile(self, repetition: LayoutMap) -> LayoutMap:
        """See ``algebra.tile``."""
        from tile_core.layout.algebra import tile

        return tile(self, repetition)

    def replicate(self, copies: int, axis: str, stride: int | None = None) -> LayoutMap:
        """See ``algebra.replicate``."""
        from tile_core.layout.algebra import replicate

        return replicate(self, Digit(copies, self.size(axis) if stride is None else stride, axis))

    def is_injective(self) -> bool:
        """Whether no two elements (or copies) share a place."""
        from tile_core.layout.proof import prove

        return prove(self).injective

    def is_bijective(self) -> bool:
        """Whether every place within ``sizes`` holds exactly one element (or copy)."""
        from tile_core.layout.proof import prove

        return prove(self).bijective

    def __len__(self) -> int:
        return self.numel


class ChainLayout(LayoutMap):
    """``outer`` after ``inner``, kept as two steps because no digits describe the whole.

    ``inner`` gives, on its only axis, the row-major index of ``outer``.
    """

    def __init__(self, outer: LayoutMap, inner: LayoutMap) -> None:
        if len(inner.axes) != 1 or inner.replicas != 1 or inner.size(inner.axes[0]) > outer.numel:
            found = f"an inner layout onto {inner.sizes} with {inner.replicas} replicas"
            expected = f"one axis of at most {outer.numel} and no replicas"
            raise LayoutMismatch(operation="compose", found=found, expected=expected)
        self.shape, self.outer, self.inner = inner.shape, outer, inner

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return self.outer.axes

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return self.outer.replicas

    def at(self, flat: Any, replica: Any = 0, ops: Ops = PYTHON_OPS) -> dict[str, Any]:
        """See ``LayoutMap.at``."""
        return self.outer.at(self._step(self.inner.at(flat, 0, ops)), replica, ops)

    def _apply(self, coordinate: Sequence[Any], replica: Any, ops: Ops) -> dict[str, Any]:
        return self.outer.at(self._step(self.inner._apply(coordinate, 0, ops)), replica, ops)

    def _step(self, found: dict[str, Any]) -> Any:
        return found[self.inner.axes[0]]

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        (indices,) = self.inner.tables().values()
        r = self.replicas
        return {a: [v for i in indices for v in t[i * r : i * r + r]] for a, t in self.outer.tables().items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChainLayout):
            return NotImplemented
        return (self.outer, self.inner) == (other.outer, other.inner)

    def __hash__(self) -> int:
        return hash((self.outer, self.inner))

    def __repr__(self) -> str:
        return f"{self.outer!r} o {self.inner!r}"


def linear(values: Sequence[Any], strides: Sequence[int], ops: Ops, offset: int = 0) -> Any:
    """``offset + sum(value * stride)`` without the terms that say nothing."""
    total: Any = None
    for value, stride in zip(values, strides, strict=True):
        if stride and not (isinstance(value, int) and not value):
            term = value if stride == 1 else ops.mul(value, stride)
            total = term if total is None else ops.add(total, term)
    if total is None:
        return offset
    return ops.add(total, offset) if offset else total
