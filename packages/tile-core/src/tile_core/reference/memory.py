"""Memory of a launch: tensors, block scratch, lane-private arrays, and views of them.

A ``Root`` is one storage, a ``LaneMemory`` a buffer of the program that shows it with a type and a shape.
Private memory has one slot per lane, consecutively. An access finds flat indices; what lies outside the shape
reads as the fill value and is not written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.reference.elements import holder
from tile_core.reference.lanes import LaneSet

__all__ = ["LaneMemory", "Root", "row_major"]


class Root:
    """One storage.

    Parameters
    ----------
    data
        A flat array; the slots of private memory follow each other.
    home
        The lanes that own a slot each; ``None`` for memory that all of a block share.
    valid
        Which units have been written; ``None`` if not watched.
    unit
        Bytes of a unit: of the smallest element that a view has.
    name, scope
        As the program declares.

    Attributes
    ----------
    members
        The buffers that show it.
    touched
        In a private array inside a parallel loop around which it was allocated: which elements were written.
    shared
        Whether it is global memory that the program may write.
    track
        Reads and writes since the lanes last synchronized, see ``sanitizer``.
    """

    def __init__(
        self, data: Array, home: LaneSet | None, valid: Array | None, unit: int, name: str, scope: str
    ) -> None:
        self.data, self.home, self.valid, self.unit = data, home, valid, unit
        self.name, self.scope = name, scope
        self.members: list[LaneMemory] = []
        self.touched: Any = None
        self.track: Any = None
        self.shared = False

    @property
    def units(self) -> int:
        """How many units there are in all slots."""
        return int(self.data.size * self.data.dtype.itemsize // self.unit)

    def rebind(self, data: Array, home: LaneSet | None, valid: Array) -> None:
        """Replace the storage by another one with equal bytes per slot."""
        self.data, self.home, self.valid = data, home, valid
        for member in self.members:
            member.flat = data.view(member.kind)


class LaneMemory:
    """A buffer of the program.

    Parameters
    ----------
    root
        Its storage.
    dtype
        Element type.
    shape, strides
        Extents, and strides in elements.
    table
        For a tensor with an annotated layout: the place in memory of each element in row-major order.

    Attributes
    ----------
    flat
        All of the storage as elements.
    size
        Elements of the shape.
    slot_size
        Elements of one slot.
    ratio
        Units of an element.
    """

    def __init__(
        self,
        root: Root,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        table: Array | None = None,
    ) -> None:
        self.root, self.dtype, self.kind, self.table = root, dtype, holder(dtype), table
        self.shape = tuple(shape)
        self.strides = row_major(self.shape) if strides is None else tuple(strides)
        self.size = math.prod(self.shape)
        self.slot_size = self.size
        self.dense = strides is None and table is None
        self.flat = root.data if root.data.dtype == self.kind else root.data.view(self.kind)
        self.ratio = self.kind.itemsize // root.unit
        root.members.append(self)

    @property
    def block(self) -> Array:
        """The block's memory in the buffer's shape, if no stride repeats elements."""
        if self.dense:
            return self.flat[: self.size].reshape(self.shape)
        step = self.kind.itemsize
        return np.lib.stride_tricks.as_strided(self.flat, self.shape, [s * step for s in self.strides])

    @property
    def block_valid(self) -> Array:
        """The validity of each element as ``block``, with an axis for its units, or ``None``."""
        return None if self.root.valid is None else self.shown(self.root.valid)

    def shown(self, units: Array) -> Array:
        """Return per-unit values in the buffer's shape, with an axis for an element's units."""
        if self.dense:
            whole = units[: self.size * self.ratio]
            return whole.reshape(self.shape if self.ratio == 1 else (*self.shape, self.ratio))
        size = units.itemsize
        return np.lib.stride_tricks.as_strided(units, self.shape, [s * size for s in self.strides])

    def coordinates(self, flat: int) -> list[int]:
        """Return the coordinates of a flat index, where strides do not repeat elements."""
        if self.table is not None:
            flat = int(np.flatnonzero(self.table == flat % self.slot_size)[0])
        at = []
        rest = flat % self.slot_size if self.dense or self.table is not None else flat
        for extent, stride in zip(self.shape, self.strides, strict=True):
            at.append(rest // stride % extent if stride else 0)
            rest -= at[-1] * stride
        return at

    def locate(self, indices: Sequence[Array], slot: Array) -> tuple[Array, Array | None]:
        """Return flat indices and their validity: ``None`` all, ``False`` none, or bools.

        Parameters
        ----------
        indices
            A scalar or an array of the lanes per dimension.
        slot
            Number of the slot (or 0 for memory of the block), a scalar or an array.
        """
        flat: Array = 0
        inside: Array | None = None
        for index, extent, stride in zip(indices, self.shape, self.strides, strict=True):
            if not isinstance(index, np.ndarray) or index.ndim == 0:
                at = int(index)
                if not 0 <= at < extent:
                    return 0, False
                flat = flat + at * stride
                continue
            wide = index.astype(np.int64)
            good = (wide >= 0) & (wide < extent)
            if not good.all():
                inside = good if inside is None else inside & good
                wide = np.where(good, wide, 0)
            flat = flat + wide * stride
        if inside is not None and not inside.any():
            return 0, False
        if self.table is not None:
            flat = self.table[flat]
        if not isinstance(slot, int) or slot:
            flat = flat + slot * self.slot_size
        return flat, inside


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of contiguous memory, in elements."""
    strides, step = [], 1
    for extent in reversed(tuple(shape)):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
