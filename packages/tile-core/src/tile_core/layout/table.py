"""Layouts given by a table or by a function on indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from tile_core.compat.types import Coordinate
from tile_core.errors.layout import BadDigits, BadLayoutFunction, LayoutTooLarge, TableNotSymbolic
from tile_core.layout.base import MAX_ENUMERATION, LayoutMap, coordinate_of, linear
from tile_core.layout.digits import AXES, as_shape, row_major_strides, unravel
from tile_core.layout.swizzle import PYTHON_OPS, Ops
from tile_runtime.errors.interrupts import passed_on

_SCALAR_LIMIT = 2048


class TableLayout(LayoutMap):
    """A layout given by its table.

    Parameters
    ----------
    shape
        Logical shape.
    tables
        Per axis the index of each row-major element; with copies, those of one element follow each other.
    replicas
        Number of copies of each element.

    Raises
    ------
    BadDigits
        If a table has the wrong length or an unknown axis.
    """

    def __init__(
        self, shape: Sequence[int], tables: Mapping[str, Sequence[int]], replicas: int = 1, note: str = ""
    ) -> None:
        self.shape = as_shape(shape)
        self.note = note
        self._replicas = replicas
        self._tables = {a: [int(v) for v in tables[a]] for a in AXES if a in tables}
        lengths = {len(t) for t in self._tables.values()}
        if lengths != {self.numel * replicas} or len(self._tables) != len(tables):
            reason = f"tables of lengths {sorted(lengths)}, expected {self.numel * replicas}"
            raise BadDigits(
                digits=f"table on {', '.join(tables)}", shape=self.shape, reason=reason, axes=", ".join(AXES)
            )

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return tuple(self._tables)

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return self._replicas

    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """See ``LayoutMap.at``."""
        if not isinstance(flat, int) or not isinstance(replica, int):
            raise TableNotSymbolic(shape=self.shape, reason="the index is an expression")
        return {a: t[flat * self._replicas + replica] for a, t in self._tables.items()}

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        return self._tables

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return (self.shape, self._replicas, tuple((a, tuple(t)) for a, t in self._tables.items()))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, TableLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"table {self.shape} -> {','.join(f'{n}@{a}' for a, n in self.sizes.items())}"


#: Why most functions fail with a symbolic index, in more detail than Python's and TVM's own messages.
_NEEDS_NUMBERS = "it decides by an index (`if`, `and`, `min`, a comparison), or needs it as a number"


class CallableLayout(LayoutMap):
    """A layout given by a function on indices.

    Parameters
    ----------
    shape
        Logical shape.
    function
        Called with one index per dimension, and the number of the copy if there are several; returns one index, or a
        tuple of one per axis. It is called with integers, integer arrays and expressions.
    axes
        The axes of its results.
    replicas
        Number of copies of each element.
    """

    def __init__(
        self,
        shape: Sequence[int],
        function: Callable[..., object],
        axes: Sequence[str] = ("memory",),
        replicas: int = 1,
    ) -> None:
        self.shape = as_shape(shape)
        self.function = function
        self._axes, self._replicas = tuple(axes), replicas

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return self._axes

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return self._replicas

    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """See ``LayoutMap.at``."""
        return self._apply(coordinate_of(flat, self.shape, ops), replica, ops)

    def _apply(self, coordinate: Sequence[Coordinate], replica: Coordinate, ops: Ops) -> dict[str, Coordinate]:
        arguments = (*coordinate, replica) if self._replicas > 1 else tuple(coordinate)
        try:
            found = self.function(*arguments)
        except Exception as error:
            passed_on(error)
            known = all(isinstance(x, int) for x in coordinate)
            reason = f"{type(error).__name__}: {error}" if known else _NEEDS_NUMBERS
            raise TableNotSymbolic(shape=self.shape, reason=reason) from error
        values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return dict(zip(self._axes, values, strict=True))

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        return self._tables

    @cached_property
    def _tables(self) -> dict[str, list[int]]:
        shape = (*self.shape, self._replicas) if self._replicas > 1 else self.shape
        columns = evaluate(shape, self.function, self._axes)
        check_non_negative(self.shape, columns, self._replicas)
        return dict(zip(self._axes, columns, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CallableLayout):
            return NotImplemented
        same = (self.shape, self._axes, self._replicas) == (other.shape, other._axes, other._replicas)
        return same and self._tables == other._tables

    def __hash__(self) -> int:
        return hash((self.shape, self._axes, self._replicas))

    def __repr__(self) -> str:
        return f"function {self.shape} -> {','.join(self._axes)}"


def unwrap(layout: Any) -> LayoutMap:
    """The map inside a user's ``Layout`` or ``Fragment``; any other layout itself."""
    inner = getattr(layout, "map", None)
    return inner if isinstance(inner, LayoutMap) else layout


def evaluate(
    shape: Sequence[int], function: Callable[..., object], names: Sequence[str] | None = None
) -> list[list[int]]:
    """Call ``function`` on every coordinate of ``shape`` and return one list per result.

    Large shapes are evaluated at once on integer arrays where the function can, and compared at some coordinates.

    Raises
    ------
    BadLayoutFunction
        If it fails, returns anything but integers, or not always the same number of them (of ``names``).
    LayoutTooLarge
        If there are more than ``MAX_ENUMERATION`` coordinates.
    """
    count = 1
    for extent in shape:
        count *= extent
    if count > MAX_ENUMERATION:
        raise LayoutTooLarge(what="a layout function", found=count, bound=MAX_ENUMERATION)
    width = len(names) if names is not None else len(_call(function, (0,) * len(shape), None))
    if count > _SCALAR_LIMIT:
        columns = _evaluate_arrays(shape, function, width)
        if columns is not None:
            return columns
    rows = [_call(function, c, width) for c in product(*(range(n) for n in shape))]
    return [list(column) for column in zip(*rows, strict=True)]


def _call(function: Callable[..., object], coordinate: tuple[int, ...], width: int | None) -> tuple[int, ...]:
    try:
        found = function(*coordinate)
    except Exception as error:
        passed_on(error)
        reason = f"it raised {type(error).__name__}: {error}"
        raise BadLayoutFunction(coordinate=coordinate, reason=reason) from error
    values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if not values or any(isinstance(v, (bool, float, str)) or not hasattr(v, "__index__") for v in values):
        raise BadLayoutFunction(coordinate=coordinate, reason=f"it returned {found!r}, expected integers")
    if width is not None and len(values) != width:
        raise BadLayoutFunction(coordinate=coordinate, reason=f"it returned {len(values)} indices, expected {width}")
    return tuple(v.__index__() for v in values)


def _evaluate_arrays(shape: Sequence[int], function: Callable[..., object], width: int) -> list[list[int]] | None:
    """Return results on whole arrays; ``None`` if the function fails or differs on them."""
    import numpy as np

    grids = [g.reshape(-1) for g in np.indices(shape, dtype=np.int64)]
    try:
        with np.errstate(all="raise"):
            found = function(*grids)
        values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        arrays = [np.broadcast_to(np.asarray(v), grids[0].shape) for v in values]
    except Exception as error:  # the function is the user's: whatever it raises on arrays, integers decide
        passed_on(error)
        return None
    if len(arrays) != width or any(a.dtype != np.int64 for a in arrays):
        return None
    samples = {*range(0, len(grids[0]), max(1, len(grids[0]) // 97)), len(grids[0]) - 1}
    for i in samples:
        if _call(function, tuple(int(g[i]) for g in grids), width) != tuple(int(a[i]) for a in arrays):
            return None
    return [a.tolist() for a in arrays]


def check_non_negative(shape: Sequence[int], columns: Sequence[Sequence[int]], copies: int = 1) -> None:
    """Raise ``BadLayoutFunction`` at the first negative index."""
    for column in columns:
        low = min(column)
        if low < 0:
            where = unravel(column.index(low) // copies, shape)
            raise BadLayoutFunction(coordinate=where, reason=f"it returned {low}, expected an index of at least 0")


def folded(columns: Sequence[Sequence[int]]) -> list[int]:
    """Return one row-major index from an index list per dimension, with reached extents."""
    sizes = [max(c) + 1 for c in columns]
    strides = row_major_strides(sizes)
    return [linear(row, strides, PYTHON_OPS) for row in zip(*columns, strict=True)]
