"""The address of an element in every lane, as an argument of an instruction."""

from __future__ import annotations

import numpy as np

from machine.scope import Region
from tile_core.compat.types import Array

__all__ = ["Address"]


class Address:
    """Memory of a buffer from an element on, as it lies there.

    It may lie outside the buffer in lanes that neither read nor write there.

    Attributes
    ----------
    region
        The buffer.
    at
        The index of the element in every lane.
    array, indices
        The array that holds the buffer, and the index of every lane's element in it.
    """

    def __init__(self, region: Region, at: list[Array], array: Array, indices: tuple[Array, ...]) -> None:
        self.region, self.at, self.array, self.indices = region, at, array, indices
        self.count = len(indices[0])
        # A view with strides of its own begins where the memory begins that it shows.
        memory = self.array if self.array.flags.c_contiguous else self.array.base
        self.bytes: Array = memory.reshape(-1).view(np.uint8)
        self.offsets: Array = np.zeros(self.count, np.int64)
        for index, step in zip(self.indices, self.array.strides, strict=True):
            self.offsets = self.offsets + index.astype(np.int64) * step
        #: Bytes that one lane may access: its registers, or all of the memory.
        self.extent = memory[0].nbytes if region.private else len(self.bytes)

    def read(self, size: int, on: Array, align: int = 0) -> Array:
        """Return the next bytes, a row per lane; rows of inactive lanes are undefined."""
        return self.bytes[self._spread(size, on, align)]

    def write(self, data: Array, on: Array, align: int = 0) -> None:
        """Write rows of bytes, in the lanes that are ``on``."""
        self.bytes[self._spread(data.shape[1], on, align)[on]] = data[on]

    def registers(self, count: int, on: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return the lanes' register array, and the index of ``count`` registers in it."""
        start = self.at[0]
        assert (start[on] + count <= self.array.shape[1]).all(), f"beyond {self.region.name}"
        return self.array, (np.arange(self.count)[:, None], np.where(on, start, 0)[:, None] + np.arange(count))

    def _spread(self, size: int, on: Array, align: int) -> Array:
        start, align = self.offsets, align or size
        low = np.arange(self.count) * (self.extent if self.region.private else 0)
        inside = (start >= low) & (start + size <= low + self.extent)
        assert inside[on].all(), f"{size} bytes of {self.region.name} at {start[on & ~inside][:4]}: outside"
        aligned = self.region.private or not (start[on] % align).any()
        assert aligned, f"{size} bytes of {self.region.name} at {start[on][:4]}: misaligned"
        return np.where(on, start, 0)[:, None] + np.arange(size)
