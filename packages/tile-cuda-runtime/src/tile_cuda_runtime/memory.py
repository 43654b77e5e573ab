"""Guarded arrays in driver memory, copied from and to the host: no array library."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tile_cuda_runtime.api import Driver, Failed
from tile_cuda_runtime.faults import typed
from tile_runtime.texts.guarded import GuardedArray

if TYPE_CHECKING:
    from tile_runtime.texts.guarded import Array

_ON_DEVICE = 2  # kDLCUDA
_READY = (None, -1, 1)  # streams of a consumer that is after the legacy default stream as it is


class DeviceArray(GuardedArray):
    """A guarded copy of a NumPy array on the current device, see `tile_runtime.texts.guarded`.

    Parameters
    ----------
    driver
        The driver.
    array
        What to copy, of any strides.

    Attributes
    ----------
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
        super().__init__(array)
        self._driver = driver
        with _typed():
            self.device = (_ON_DEVICE, driver.current())
            with driver.entered(self.device[1]):
                self._memory = _DeviceMemory(driver, self.device[1], self._image.nbytes)
        self.upload(self._image)
        self.pointer = self._memory.address + self.offset

    def upload(self, image: Array) -> None:
        """See `GuardedArray.upload`."""
        with _typed(), self._driver.entered(self.device[1]):
            self._driver.upload(self._memory.address, image.ctypes.data, image.nbytes)

    def download(self) -> Array:
        """Return the bytes of the memory after all work on the device.

        Raises
        ------
        DeviceFault, DriverFailed
            The device reports a fault.
        """
        found = np.empty_like(self._image)
        with _typed():
            self._driver.synchronize(self.device[1])
            with self._driver.entered(self.device[1]):
                self._driver.download(found.ctypes.data, self._memory.address, found.nbytes)
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def settle(self, stream: int | None) -> None:
        """Wait for the device, unless the stream already follows the legacy default stream."""
        if stream not in _READY:
            with _typed():
                self._driver.synchronize(self.device[1])

    def exported(self) -> tuple[int, int, object]:
        """See `GuardedArray.exported`."""
        return self.pointer, 0, self._memory

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype.name}{self.shape} on device {self.device[1]})"


class _DeviceMemory:
    """Memory that is freed with the last of its users."""

    def __init__(self, driver: Driver, ordinal: int, size: int) -> None:
        self.address = driver.allocate(size)
        weakref.finalize(self, _release, driver, ordinal, self.address)


def _release(driver: Driver, ordinal: int, address: int) -> None:
    # After a fault nothing can be freed, and the fault has been reported.
    with contextlib.suppress(Failed), driver.entered(ordinal):
        driver.release(address)


@contextlib.contextmanager
def _typed() -> Iterator[None]:
    """Raise what the driver refuses as an error of the catalogue."""
    try:
        yield
    except Failed as error:
        raise typed(error) from error
