"""Buffers of the language on NumPy: elements, slices, the rule for places outside, variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.plain.numbers import BITS, Number, convert, is_float


class Memory:
    """A tensor or scratch buffer.

    Attributes
    ----------
    data
        Elements: storage elements of NumPy, or ``object`` numbers for types of 4 bits and ``tfloat32``.
    shape, dtype, scope
        Of the buffer.
    outside
        The value of out-of-bounds reads.
    operation
        Of a reducer.
    """

    def __init__(self, data: Any, dtype: str, scope: str) -> None:
        self.data, self.dtype, self.scope = data, dtype, scope
        self.shape = tuple(data.shape)
        self.outside = DTYPES[dtype].fill
        self.operation = ""

    def __getitem__(self, index: Any) -> Any:
        items = _spread(index if isinstance(index, tuple) else (index,), len(self.shape))
        if any(i is None for i in items):
            return self.with_axes(items)
        if any(isinstance(i, slice) for i in items) or len(items) < len(self.shape):
            return Region.of(self, items)
        at = tuple(int(i) for i in items)
        return self.read(at)

    def __setitem__(self, index: Any, value: Any) -> None:
        items = _spread(index if isinstance(index, tuple) else (index,), len(self.shape))
        if any(isinstance(i, slice) for i in items):
            Region.of(self, items).assign(value)
            return
        at = tuple(int(i) for i in (index if isinstance(index, tuple) else (index,)))
        if self._inside(at):
            self.data[at] = stored(convert(_scalar(value), self.dtype).value, self.dtype)

    @property
    def is_tile(self) -> bool:
        """Whether an operator goes element by element."""
        return bool(self.shape)

    def read(self, at: tuple[int, ...]) -> Number:
        """Return an element."""
        if not self._inside(at):
            return Number(convert(self.outside, self.dtype).value, self.dtype, (self, at))
        x = self.data[at]
        value = float(x) if is_float(self.dtype) else bool(x) if self.dtype == "bool" else int(x)
        return Number(value, self.dtype, (self, at))

    def _inside(self, at: tuple[int, ...]) -> bool:
        return all(0 <= i < n for i, n in zip(at, self.shape, strict=True))

    def with_axes(self, items: Any) -> Any:
        """Return the elements of an index with ``None``; see ``plain.whole``."""
        raise NotImplementedError

    def get(self) -> Number:
        """Return the element of a tensor of rank 0."""
        return self.read(())


class Region:
    """A rectangle of a buffer: corner, extents per dimension, and the sliced extents."""

    is_tile = True

    def __init__(self, buffer: Memory, low: list[int], extents: list[int], kept: Any = None) -> None:
        self.buffer, self.low, self.extents = buffer, low, extents
        self.kept = list(range(len(low))) if kept is None else kept

    @staticmethod
    def of(buffer: Memory, items: Any) -> Region:
        """Return the region that an index names."""
        low, extents, kept = [], [], []
        for d, n in enumerate(buffer.shape):
            item = items[d] if d < len(items) else slice(None)
            if isinstance(item, slice):
                start = 0 if item.start is None else int(item.start)
                kept.append(d)
                low.append(start)
                extents.append((n if item.stop is None else int(item.stop)) - start)
            else:
                low.append(int(item))
                extents.append(1)
        return Region(buffer, low, extents, kept)

    def read(self) -> Any:
        """Return the elements as an array of numbers."""
        out, buffer, low = np.empty(self.extents, object), self.buffer, self.low
        if not self._is_inside():
            for at in np.ndindex(*self.extents):
                out[at] = buffer.read(tuple(a + b for a, b in zip(low, at, strict=True)))
            return out
        kind: Any = np.float64 if is_float(buffer.dtype) else buffer.data.dtype
        values = buffer.data[self._slices()].astype(kind).reshape(-1).tolist()
        flat = out.reshape(-1)
        for n, at in enumerate(np.ndindex(*self.extents)):
            position = tuple(a + b for a, b in zip(low, at, strict=True))
            flat[n] = Number(values[n], buffer.dtype, (buffer, position))
        return out

    def assign(self, value: Any) -> None:
        """Store a scalar or a tile; see ``plain.whole``."""
        raise NotImplementedError

    def write(self, values: Any) -> None:
        """Store numbers, an array of the same number of elements in row-major order."""
        flat, buffer = values.reshape(-1), self.buffer
        if self._is_inside():
            found = [convert(_scalar(x), buffer.dtype).value for x in flat]
            buffer.data[self._slices()] = stored_all(found, buffer).reshape(self.extents)
            return
        for n, at in enumerate(np.ndindex(*self.extents)):
            buffer[tuple(a + b for a, b in zip(self.low, at, strict=True))] = flat[n]

    def _is_inside(self) -> bool:
        ends = zip(self.low, self.extents, self.buffer.shape, strict=True)
        return all(low >= 0 and low + n <= whole for low, n, whole in ends)

    def _slices(self) -> tuple[slice, ...]:
        return tuple(slice(low, low + n) for low, n in zip(self.low, self.extents, strict=True))


def _spread(items: Any, rank: int) -> Any:
    """Return the items of an index with slices for an ellipsis."""
    at = next((n for n, i in enumerate(items) if i is Ellipsis), None)
    if at is None:
        return items
    missing = rank - sum(i is not None and i is not Ellipsis for i in items)
    return (*items[:at], *[slice(None)] * missing, *items[at + 1 :])


class Variable:
    """A scalar variable: the one of ``T.alloc_var``."""

    def __init__(self, dtype: str, first: Any) -> None:
        self.dtype = dtype
        self.set(first)

    def set(self, value: Any) -> None:
        """Assign."""
        self.value = convert(_scalar(value), self.dtype)

    def get(self) -> Number:
        """Return the present value."""
        return self.value


def allocate(shape: Any, dtype: str, scope: str) -> Memory:
    """Return a buffer full of zeros: legal programs read only what they wrote."""
    dims = tuple(int(d) for d in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    kind: Any = object if DTYPES[dtype].is_packed or DTYPES[dtype].is_reduced else DTYPES[dtype].numpy()
    data = np.zeros(dims, kind)
    if kind is object:
        data[...] = 0.0 if is_float(dtype) else 0
    return Memory(data, dtype, scope)


def stored(value: Any, dtype: str) -> Any:
    """Return a number as NumPy stores it."""
    kind = DTYPES[dtype].numpy()
    if dtype in BITS or dtype == "bool" or DTYPES[dtype].is_packed or DTYPES[dtype].is_reduced:
        return value
    with np.errstate(all="ignore"):
        return np.float64(value).astype(kind)


def stored_all(values: list[Any], buffer: Memory) -> Any:
    """Return numbers of a buffer's type as NumPy stores them, in one array."""
    if buffer.data.dtype == object:
        made = np.empty(len(values), object)
        made[:] = values
        return made
    if not is_float(buffer.dtype):
        return np.array(values, buffer.data.dtype)
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(buffer.data.dtype)


def _scalar(value: Any) -> Any:
    return value.get() if isinstance(value, (Variable, Memory)) else value
