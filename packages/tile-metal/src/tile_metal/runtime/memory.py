"""Arrays of a library's own memory, for checks that need no array library of the user: copied, and guarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.errors.launch import UnsupportedArray
from tile_core.runtime.arrays import Unreadable, facts_of
from tile_core.runtime.dlpack import export
from tile_metal.errors import MemoryDamaged

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

GUARD = 256
"""Bytes on both sides of an array that must not change."""

ALIGN = 16
"""An offset in the buffer is the address on the host modulo this; buffers begin at a page."""

DEVICE = (8, 0)
"""kDLMetal."""

_POISON = 0xFF  # NaN in floats: what is read from a guard shows


class Guarded:
    """A guarded copy of a NumPy array on the device; a kernel takes it like any DLPack array.

    The bytes around the elements, and those between them if they are not contiguous, must be what they were when the
    array is read back.

    Parameters
    ----------
    library
        ``"mlx"`` or ``"torch"``: whose memory it is.
    module
        That library.
    array
        What to copy, of any strides.

    Attributes
    ----------
    memory
        A flat array of bytes of the library. A launch through MLX replaces it.
    offset
        Of the first element in it.
    shape, strides, dtype
        As those of the NumPy array: strides are in bytes.

    Raises
    ------
    UnsupportedArray
        Its strides or elements cannot be described.
    """

    def __init__(self, library: str, module: Any, array: Array) -> None:
        try:
            facts = facts_of(array)
        except Unreadable as reason:
            raise UnsupportedArray(kernel="from_host", name="array", found=str(reason)) from None
        if facts.strides is None:
            found = f"its strides {array.strides} are no whole number of elements"
            raise UnsupportedArray(kernel="from_host", name="array", found=found)
        low, high = facts.address_range
        self.library, self._module = library, module
        self.shape, self.strides, self.dtype = facts.shape, array.strides, array.dtype
        self._element_strides = facts.strides
        self._front = GUARD + low % ALIGN
        self.offset = self._front + facts.pointer - low
        self._image = np.full(self._front + high - low + GUARD, _POISON, np.uint8)
        self._elements(self._image)[...] = array
        self.memory = self._uploaded()

    def get(self) -> Array:
        """Return a copy as a NumPy array of the same strides, after the work on it.

        Raises
        ------
        MemoryDamaged
            Something around the elements was written.
        """
        memory = self.memory.cpu().numpy() if self.library == "torch" else self.memory
        found = np.array(memory, np.uint8)
        self._check(found)
        return self._elements(found)

    def fill_bytes(self, byte: int) -> None:
        """Set every byte of every element."""
        view = np.empty(self.shape, self.dtype)
        view.reshape(-1).view(np.uint8)[...] = byte
        self._elements(self._image)[...] = view
        self.memory = self._uploaded()

    def __dlpack_device__(self) -> tuple[int, int]:
        return DEVICE

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        del stream  # there are none in DLPack's sense: who takes it waits for the library first
        if copy or dl_device not in (None, DEVICE):
            raise BufferError("it is exported where it is, without a copy")
        memory = facts_of(self.memory)
        where = (memory.handle, DEVICE, self.shape, self._element_strides, self.dtype.name, (self.memory, memory))
        return export(*where, max_version=max_version, byte_offset=memory.pointer + self.offset)

    def __repr__(self) -> str:
        return f"Guarded({self.dtype.name}{self.shape} of {self.library})"

    def _uploaded(self) -> Any:
        if self.library == "torch":
            return self._module.from_numpy(self._image.copy()).to("mps")
        return self._module.array(self._image)

    def _elements(self, image: Array) -> Array:
        """Return the elements in an image of the memory."""
        return np.ndarray(self.shape, self.dtype, image.data, self.offset, self.strides)

    def _check(self, found: Array) -> None:
        changed = found != self._image
        if changed.any():
            inside = np.ndarray((*self.shape, self.dtype.itemsize), bool, changed.data, self.offset, (*self.strides, 1))
            inside[...] = False
        at = np.flatnonzero(changed)
        if not at.size:
            return
        first, end = int(at[0]), self._image.size - GUARD
        place = f"{first - self._front} bytes behind the start" if first >= self._front else ""
        place = f"{self._front - first} bytes before the start" if first < self._front else place
        place = f"{first - end} bytes behind the end" if first >= end else place
        raise MemoryDamaged(array=f"{self.dtype.name}{self.shape}", count=at.size, place=place)
