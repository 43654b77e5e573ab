"""Guarded arrays in device memory, for checks without an array library.

A runtime states how bytes are copied to its device and back; everything else is here. The memory of an array is one
*image*: the elements at their strides, the gaps between them, and guards on both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tile_runtime.calls.arrays import Unreadable, facts_of
from tile_runtime.calls.dlpack import export
from tile_runtime.errors.launch import MemoryDamaged, NotProvided, UnsupportedArray
from tile_runtime.records import dataclass
from tile_runtime.types import Argument

if TYPE_CHECKING:
    from mmap import mmap

    import numpy.typing as npt

    Array = npt.NDArray[Any]

GUARD = 256
"""Bytes on both sides of an array that must not change."""

ALIGN = 16
"""Device and host addresses are equal modulo this, the alignment of NumPy's memory."""

_POISON = 0xFF  # NaN in floats: reads from a guard become visible


@dataclass(frozen=True)
class Footprint:
    """The memory of a NumPy array, from its lowest byte to its highest.

    Attributes
    ----------
    shape, strides, dtype
        Of the array; strides are in bytes.
    address
        Of the lowest byte.
    bytes
        Up to the highest, gaps between elements included.
    first
        Bytes from the lowest to the first element, which differ if strides are negative.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    bytes: int
    first: int

    @classmethod
    def of(cls, array: Array) -> Footprint:
        """Return the footprint of an array."""
        start = int(array.__array_interface__["data"][0])
        reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
        below, above = -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + array.itemsize
        if not array.size:
            below = above = 0
        return cls(array.shape, array.strides, array.dtype, start - below, below + above, below)

    def elements(self, memory: mmap | memoryview, start: int) -> Array:
        """Return a view with the array's strides and its lowest byte at ``start``."""
        return np.ndarray(self.shape, self.dtype, memory, start + self.first, self.strides)

    def covers(self, marks: Array, start: int) -> Array:
        """Return a view of the marks, a ``bool`` per byte, of the bytes of elements."""
        shape, strides = (*self.shape, self.dtype.itemsize), (*self.strides, 1)
        return np.ndarray(shape, bool, marks.data, start + self.first, strides)


class GuardedArray(ABC):
    """A guarded device copy of a NumPy array, which kernels take as a DLPack array.

    The bytes around the elements, and those between them if they are not contiguous, must be unchanged when the
    array is read back. A runtime states the methods without a body.

    Parameters
    ----------
    array
        What to copy, of any strides.

    Attributes
    ----------
    shape, strides, dtype
        As those of the NumPy array: strides are in bytes.
    element_strides
        In elements.
    offset
        Bytes from the start of the memory to the first element.

    Raises
    ------
    UnsupportedArray
        Its strides or elements cannot be described.
    """

    def __init__(self, array: Array) -> None:
        self.element_strides = _strides_of(array)
        self._footprint = placed = Footprint.of(array)
        self.shape, self.strides, self.dtype = placed.shape, placed.strides, placed.dtype
        self._front = GUARD + placed.address % ALIGN
        self.offset = self._front + placed.first
        self._image = np.full(self._front + placed.bytes + GUARD, _POISON, np.uint8)
        self._elements(self._image)[...] = array

    @abstractmethod
    def upload(self, image: Array) -> None:
        """Copy the whole image of a new or changed array to the device.

        Parameters
        ----------
        image
            ``uint8``, contiguous.
        """

    @abstractmethod
    def download(self) -> Array:
        """Return a new array of the whole memory's bytes after all work on it."""

    @abstractmethod
    def exported(self) -> tuple[int, int, object]:
        """Return where the memory is, as `dlpack.export` takes it.

        Returns
        -------
        tuple
            The address or the handle of a buffer, the bytes from there to the first element, and what owns the memory.
        """

    @abstractmethod
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and device number."""

    @abstractmethod
    def settle(self, stream: int | None) -> None:
        """Let a consumer's stream, as DLPack numbers it, wait for the work on the memory."""

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("it is exported where it is, without a copy")
        self.settle(stream)
        pointer, offset, keep = self.exported()
        where = (pointer, self.__dlpack_device__(), self.shape, self.element_strides, self.dtype.name, keep)
        return export(*where, max_version=max_version, byte_offset=offset)

    def get(self) -> Array:
        """Return a copy as a NumPy array with equal strides, after the work on it.

        Raises
        ------
        MemoryDamaged
            Bytes around the elements were written.
        TileError
            Errors of the runtime, where the device reports a fault.
        """
        found = self.download()
        self._check(found)
        return self._elements(found)

    def fill_bytes(self, byte: int) -> None:
        """Set every byte of every element."""
        view = np.empty(self.shape, self.dtype)
        view.reshape(-1).view(np.uint8)[...] = byte
        self._elements(self._image)[...] = view
        self.upload(self._image)

    def _elements(self, image: Array) -> Array:
        """Return the elements in an image of the memory."""
        return self._footprint.elements(image.data, self._front)

    def _check(self, found: Array) -> None:
        changed = found != self._image
        if changed.any():
            self._footprint.covers(changed, self._front)[...] = False
        at = np.flatnonzero(changed)
        if not at.size:
            return
        first, end = int(at[0]), self._image.size - GUARD
        position = f"{first - self._front} bytes behind the start" if first >= self._front else ""
        position = f"{self._front - first} bytes before the start" if first < self._front else position
        position = f"{first - end} bytes behind the end" if first >= end else position
        raise MemoryDamaged(array=f"{self.dtype.name}{self.shape}", count=at.size, position=position)


_Guarded = TypeVar("_Guarded", bound=GuardedArray)


def require_own(array: Argument, kind: type[_Guarded], target: str) -> _Guarded:
    """Return an array that ``from_host`` of a runtime made.

    Parameters
    ----------
    kind
        Of the runtime's arrays.
    target
        For the message.

    Raises
    ------
    NotProvided
        It was not made by this runtime.
    """
    if isinstance(array, kind):
        return array
    reason, advice = f"from_host() did not make this {type(array).__name__}", "let its own library copy it"
    raise NotProvided(kernel="a copy", action="to_host()", target=target, reason=reason, advice=advice)


def _strides_of(array: Array) -> tuple[int, ...]:
    """Return an array's strides in elements."""
    try:
        strides = facts_of(array).strides
    except Unreadable as reason:
        raise UnsupportedArray(kernel="from_host", name="array", found=str(reason)) from None
    if strides is None:
        found = f"its strides {array.strides} are not a multiple of the element size"
        raise UnsupportedArray(kernel="from_host", name="array", found=found)
    return strides
