"""Memory of a block: global arrays, shared buffers with layouts and offsets, race detection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from machine.scope import Held, Numbers, Region
from machine.values import element_of, poisoned
from tile_core.compat.types import Array, BufferVar, Stmt
from tile_core.ir.attributes import OFFSET

__all__ = ["Memory", "Races"]


class Memory:
    """Memory visible to all threads of a block.

    Attributes
    ----------
    arrays
        By buffer, in the buffer's shape; flat for buffers with a layout. They are changed.
    layouts
        By buffer where its layout puts elements.
    """

    def __init__(self, numbers: Numbers, arrays: Mapping[BufferVar, Array]) -> None:
        self.arrays, self.layouts = Held(numbers), Held(numbers)
        self.arrays.update(arrays)
        self._arena: Any = None

    def allocate(self, statement: Stmt) -> None:
        """Allocate a shared buffer at its offset, if it has one, and poison it."""
        buffer = statement.buffer
        offset = (statement.annotations or {}).get(OFFSET)
        shape, kind = tuple(int(n) for n in buffer.shape), element_of(buffer)
        if offset is None:
            self.arrays[buffer] = poisoned(shape, kind)
        elif buffer not in self.arrays:
            if self._arena is None:
                self._arena = poisoned((1 << 16,), np.dtype(np.uint8))
            size = int(np.prod(shape)) * kind.itemsize
            self.arrays[buffer] = self._arena[int(offset) : int(offset) + size].view(kind).reshape(shape)

    def put(self, buffer: Any, values: Any, layout: Any = None) -> None:
        """Fill a shared buffer with the elements in ``layout``, by default row-major."""
        if layout is None:
            self.arrays[buffer] = values.copy()
            return
        flat = poisoned((layout.span,), values.dtype)
        flat[np.asarray(layout.tables()["memory"])] = values.reshape(-1)
        self.arrays[buffer], self.layouts[buffer] = flat, layout

    def get(self, buffer: Any) -> Any:
        """Return the elements of a buffer in its own shape."""
        layout = self.layouts.get(buffer)
        if layout is None:
            return self.arrays[buffer]
        return self.arrays[buffer][np.asarray(layout.tables()["memory"])].reshape(layout.shape)

    def extents(self, region: Region) -> tuple[int, ...]:
        """Return the shape of a buffer, of symbolic sizes those of its array."""
        layout = self.layouts.held.get(region.number)
        return self.arrays.held[region.number].shape if layout is None else tuple(layout.shape)

    def indices(self, region: Region, at: list[Array]) -> tuple[Array, ...]:
        """Return the index into a buffer's array of the elements at ``at``, which lie inside."""
        layout = self.layouts.held.get(region.number)
        return tuple(at) if layout is None else (np.asarray(layout.apply(*at)["memory"]) + np.zeros_like(at[0]),)


class Races:
    """Accesses since the last barrier, by element and thread."""

    def __init__(self) -> None:
        self._writers: dict[int, Any] = {}
        self._readers: dict[int, Any] = {}

    def clear(self) -> None:
        """Forget all accesses: the threads synchronize here."""
        self._writers, self._readers = {}, {}

    def touch(self, region: Region, shape: tuple[int, ...], indices: Any, threads: Array, store: bool) -> None:
        """Raise if two threads access one element, unless both read.

        ``indices`` has one element per thread.
        """
        if region.number not in self._writers:
            size = max(1, int(np.prod(shape)))
            self._writers[region.number], self._readers[region.number] = np.full(size, -1), np.full(size, -1)
        writers, readers = self._writers[region.number], self._readers[region.number]
        flat = np.ravel_multi_index(indices, shape) if indices else np.zeros(len(threads), dtype=int)
        _only(writers[flat], threads, f"race on {region.name}")
        seen = readers[flat]
        order = np.argsort(flat, kind="stable")
        same = flat[order][1:] == flat[order][:-1]
        if store:
            _only(seen, threads, f"race on {region.name}: written after a read")
            assert not same.any(), f"race on {region.name}: two threads write"
            writers[flat] = threads
            return
        readers[flat] = np.where((seen == -1) | (seen == threads), threads, -2)
        readers[flat[order][1:][same]] = -2


def _only(known: Array, threads: Array, message: str) -> None:
    assert ((known == -1) | (known == threads)).all(), message
