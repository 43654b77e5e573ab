"""Copied and guarded arrays in a library's own memory, for checks without user arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_runtime.calls.arrays import facts_of
from tile_runtime.texts.guarded import GuardedArray

if TYPE_CHECKING:
    from tile_runtime.texts.guarded import Array

DEVICE = (8, 0)
"""kDLMetal."""


class Guarded(GuardedArray):
    """A guarded copy of a NumPy array on the device, see `tile_runtime.texts.guarded`.

    Buffers begin at a page.

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

    Raises
    ------
    UnsupportedArray
        Its strides or elements cannot be described.
    """

    def __init__(self, library: str, module: Any, array: Array) -> None:
        super().__init__(array)
        self.library, self._module = library, module
        self.upload(self._image)

    def upload(self, image: Array) -> None:
        """Replace the memory; see `GuardedArray.upload`."""
        if self.library == "torch":
            self.memory = self._module.from_numpy(image.copy()).to("mps")
        else:
            self.memory = self._module.array(image)

    def download(self) -> Array:
        """Return the bytes of the memory; the libraries wait for the work on it."""
        return np.array(self.memory.cpu().numpy() if self.library == "torch" else self.memory, np.uint8)

    def __dlpack_device__(self) -> tuple[int, int]:
        return DEVICE

    def settle(self, stream: int | None) -> None:
        """Do nothing: there are no DLPack streams, and the consumer synchronizes first."""

    def exported(self) -> tuple[int, int, object]:
        """See `GuardedArray.exported`."""
        memory = facts_of(self.memory)
        return memory.handle, memory.pointer + self.offset, (self.memory, memory)

    def __repr__(self) -> str:
        return f"Guarded({self.dtype.name}{self.shape} of {self.library})"
