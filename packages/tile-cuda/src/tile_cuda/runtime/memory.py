"""Arrays in memory of the driver, for checks that need no array library: copied from the host and back, and guarded."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.errors.launch import UnsupportedArray
from tile_core.runtime.arrays import Unreadable, facts_of
from tile_core.runtime.dlpack import export
from tile_cuda.errors import MemoryDamaged
from tile_cuda.runtime.api import Driver, Failed
from tile_cuda.runtime.faults import typed

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

GUARD = 256
"""Bytes on both sides of an array that must not change."""

ALIGN = 16
"""An address on the device is that on the host modulo this: NumPy's memory is aligned to no more."""

_ON_DEVICE = 2  # kDLCUDA
_POISON = 0xFF  # NaN in floats: what is read from a guard shows
_READY = (None, -1, 1)  # streams of a consumer that is after the legacy default stream as it is


class DeviceArray:
    """A guarded copy of a NumPy array on the current device; a kernel takes it like any DLPack array.

    The bytes around the elements, and those between them if they are not contiguous, must be what they were when the
    array is read back.

    Parameters
    ----------
    driver
        The driver.
    array
        What to copy, of any strides.

    Attributes
    ----------
    shape, strides, dtype
        As those of the NumPy array: strides are in bytes.
    pointer
        Address of the first element.

    Raises
    ------
    UnsupportedArray
        Its strides or elements cannot be described.
    DriverFailed, DeviceFault
        The driver refuses.
    """

    def __init__(self, driver: Driver, array: Array) -> None:
        try:
            facts = facts_of(array)
        except Unreadable as reason:
            raise UnsupportedArray(kernel="from_host", name="array", found=str(reason)) from None
        if facts.strides is None:
            found = f"its strides {array.strides} are no whole number of elements"
            raise UnsupportedArray(kernel="from_host", name="array", found=found)
        low, high = facts.address_range
        self.shape, self.strides, self.dtype = facts.shape, array.strides, array.dtype
        self._element_strides, self._driver = facts.strides, driver
        self._front = GUARD + low % ALIGN
        self._first = self._front + facts.pointer - low
        self._image = np.full(self._front + high - low + GUARD, _POISON, np.uint8)
        self._elements(self._image)[...] = array
        try:
            self.device = (_ON_DEVICE, driver.current())
            with driver.entered(self.device[1]):
                self._memory = _Memory(driver, self.device[1], self._image.nbytes)
                driver.upload(self._memory.address, self._image.ctypes.data, self._image.nbytes)
        except Failed as error:
            raise typed(error) from error
        self.pointer = self._memory.address + self._first

    def get(self) -> Array:
        """Return a copy as a NumPy array of the same strides, after all work on the device.

        Raises
        ------
        MemoryDamaged
            Something around the elements was written.
        DeviceFault, DriverFailed
            The device reports a fault.
        """
        found = np.empty_like(self._image)
        try:
            self._driver.synchronize(self.device[1])
            with self._driver.entered(self.device[1]):
                self._driver.download(found.ctypes.data, self._memory.address, found.nbytes)
        except Failed as error:
            raise typed(error) from error
        self._check(found)
        return self._elements(found)

    def fill_bytes(self, byte: int) -> None:
        """Set every byte of every element."""
        view = np.empty(self.shape, self.dtype)
        view.reshape(-1).view(np.uint8)[...] = byte
        self._elements(self._image)[...] = view
        try:
            with self._driver.entered(self.device[1]):
                self._driver.upload(self._memory.address, self._image.ctypes.data, self._image.nbytes)
        except Failed as error:
            raise typed(error) from error

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, self.device):
            raise BufferError("it is exported where it is, without a copy")
        if stream not in _READY:
            try:
                self._driver.synchronize(self.device[1])
            except Failed as error:
                raise typed(error) from error
        where = (self.pointer, self.device, self.shape, self._element_strides, self.dtype.name)
        return export(*where, self._memory, max_version=max_version)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype.name}{self.shape} on device {self.device[1]})"

    def _elements(self, image: Array) -> Array:
        """Return the elements in an image of the memory."""
        return np.ndarray(self.shape, self.dtype, image.data, self._first, self.strides)

    def _check(self, found: Array) -> None:
        changed = found != self._image
        if changed.any():
            inside = np.ndarray((*self.shape, self.dtype.itemsize), bool, changed.data, self._first, (*self.strides, 1))
            inside[...] = False
        at = np.flatnonzero(changed)
        if not at.size:
            return
        first, end = int(at[0]), self._image.size - GUARD
        place = f"{first - self._front} bytes behind the start" if first >= self._front else ""
        place = f"{self._front - first} bytes before the start" if first < self._front else place
        place = f"{first - end} bytes behind the end" if first >= end else place
        raise MemoryDamaged(array=f"{self.dtype.name}{self.shape}", count=at.size, place=place)


class _Memory:
    """Memory that is freed with the last of its users."""

    def __init__(self, driver: Driver, ordinal: int, size: int) -> None:
        self.address = driver.allocate(size)
        weakref.finalize(self, _release, driver, ordinal, self.address)


def _release(driver: Driver, ordinal: int, address: int) -> None:
    # After a fault nothing can be freed, and the fault has been reported.
    with contextlib.suppress(Failed), driver.entered(ordinal):
        driver.release(address)
