"""Operands of a tile op: regions of memory that are read and written as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.errors.execution import OutsideScratch, ReadUnwritten
from tile_core.reference.access import bits, fill

if TYPE_CHECKING:
    from tile_core.reference.blocks import BlockWatch
    from tile_core.reference.memory import LaneMemory
    from tile_core.reference.state import State

__all__ = ["MemoryRegion"]


class MemoryRegion:
    """A region of a buffer that all lanes agree about.

    Parameters
    ----------
    state
        The execution.
    number
        The buffer.
    mins, extents
        Corner, which may lie outside, and extents: ints, one per dimension of the buffer.
    dtype
        Element type.
    where
        The user's line.
    """

    def __init__(
        self,
        state: State,
        number: int,
        mins: tuple[int, ...],
        extents: tuple[int, ...],
        dtype: str,
        where: Where | None,
    ) -> None:
        self.state, self.number, self.dtype, self.where = state, number, dtype, where
        self.mins, self.extents = mins, extents
        self.memory: LaneMemory = state.memories[number]
        self.inside, self.part = _overlap(self.memory.shape, mins, extents)

    @property
    def whole(self) -> bool:
        """Whether all of it lies inside the buffer."""
        return all(s.stop - s.start == e for s, e in zip(self.part, self.extents, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents that are not 1, or ``(1,)``."""
        return tuple(e for e in self.extents if e != 1) or (1,)

    def exists(self) -> Array:
        """Return for each element whether it lies inside the buffer."""
        mask = np.zeros(self.extents, np.bool_)
        mask[self.part] = True
        return mask

    def at(self, mins: tuple[int, ...], extents: tuple[int, ...]) -> MemoryRegion:
        """Return another region of the same buffer."""
        return MemoryRegion(self.state, self.number, mins, extents, self.dtype, self.where)

    def read(self, needed: Array | None = None) -> Array:
        """Return a copy of its elements, the fill value for those outside the buffer.

        Parameters
        ----------
        needed
            Which elements matter, as bools of its extents; all by default.

        Raises
        ------
        ReadUnwritten
            A relevant element is uninitialized, and memory is watched.
        """
        self._check_bounds("read")
        self._check_written(needed)
        memory = self.memory
        self._compare("read")
        if memory.table is not None:
            values = memory.flat[memory.table.reshape(memory.shape)[self.inside]]
        else:
            values = memory.block[self.inside]
        if self.whole:
            result = np.array(values).reshape(self.extents)
        else:
            result = np.full(self.extents, fill(self.state, self.number), memory.kind)
            result[self.part] = values
        observer = self.state.observer
        if observer is not None and observer.tracker is not None:
            observer.tracker.read(result, self.dtype)
        return result

    def pick(self, indices: tuple[Array, ...], needed: Array) -> Array:
        """Return the elements at arrays of indices relative to the corner, where ``needed``."""
        shape, wanted = np.shape(needed), np.flatnonzero(needed)
        at = [np.ravel(x)[wanted] + low for x, low in zip(indices, self.mins, strict=True)]
        memory, result = self.memory, np.full(needed.size, fill(self.state, self.number))
        flat, inside = memory.locate(at, 0)
        if inside is not False:
            wanted, flat = (wanted, flat) if inside is None else (wanted[inside], flat[inside])
            valid = memory.root.valid
            if valid is not None and not valid[flat[:, None] * memory.ratio + np.arange(memory.ratio)].all():
                raise ReadUnwritten(buffer=memory.root.name, index=[], where=self.where)
            blocks = self._watched()
            if blocks is not None:
                blocks.access("read", memory, (flat[:, None] * memory.ratio + np.arange(memory.ratio)), self.where)
            result[wanted] = memory.flat[flat]
        return result.reshape(shape)

    def numbers(self, dtype: str, needed: Array | None = None) -> Array:
        """Return its elements converted to a type."""
        return self.state.converted(self.read(needed), self.dtype, dtype)

    def write(self, values: Array) -> None:
        """Write elements of its own type and extents; those outside the buffer are dropped."""
        self._check_bounds("written")
        memory, values = self.memory, np.broadcast_to(values, self.extents)[self.part]
        self._compare("write", values)
        observer = self.state.observer
        if observer is not None and observer.tracker is not None:
            observer.tracker.write(self, values)
        if memory.table is not None:
            memory.flat[memory.table.reshape(memory.shape)[self.inside]] = values
        else:
            memory.block[self.inside] = values
        valid = memory.root.valid
        if valid is None:
            return
        if memory.table is not None:
            valid[memory.table.reshape(memory.shape)[self.inside]] = True
        else:
            memory.block_valid[self.inside] = True
        touched = memory.root.touched
        assert touched is None, "private memory of lanes is written by loops"

    def _watched(self) -> BlockWatch | None:
        """Return the checker of block accesses for this memory, if any."""
        watch = self.state.sanitizer
        return watch.blocks if watch is not None and self.memory.root.shared and watch.blocks.several else None

    def _compare(self, kind: str, values: Array | None = None) -> None:
        """Check an access of the region against other blocks; a write has ``values``."""
        blocks, memory = self._watched(), self.memory
        if blocks is None:
            return
        table = memory.table
        shaped = table is None
        index: Any = self.inside if table is None else table.reshape(memory.shape)[self.inside]

        def same() -> Array:
            equal = bits(memory.block[index] if shaped else memory.flat[index]) == bits(values)
            return equal[..., None] if shaped and memory.ratio > 1 else equal

        blocks.access(kind, memory, index, self.where, shaped, None if values is None else same)

    def _check_written(self, needed: Array | None) -> None:
        memory = self.memory
        if memory.root.valid is None:
            return
        if memory.table is not None:
            good = memory.root.valid[memory.table.reshape(memory.shape)[self.inside]]
        else:
            good = memory.block_valid[self.inside]
            if memory.ratio > 1:
                good = good.all(axis=-1)
        if good.all():
            return
        if needed is not None:
            good = good | ~needed[self.part]
        if not good.all():
            at = [int(i) + s.start for i, s in zip(np.argwhere(~good)[0], self.inside, strict=True)]
            raise ReadUnwritten(buffer=memory.root.name, index=at, where=self.where)

    def _check_bounds(self, action: str) -> None:
        watch = self.state.sanitizer
        if watch is None or not watch.bounds or self.memory.root.scope == "global" or self.whole:
            return
        raise OutsideScratch(
            buffer=self.memory.root.name,
            shape=self.memory.shape,
            action=action,
            index=list(self.mins),
            where=self.where,
        )


def _overlap(
    shape: tuple[int, ...], mins: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the part of a region inside a shape, as buffer and region slices."""
    inside, part = [], []
    for extent, low, size in zip(shape, mins, extents, strict=True):
        start, stop = max(low, 0), min(low + size, extent)
        if stop <= start:
            start = stop = min(start, extent)
            part.append(slice(0, 0))
        else:
            part.append(slice(start - low, stop - low))
        inside.append(slice(start, stop))
    return tuple(inside), tuple(part)
