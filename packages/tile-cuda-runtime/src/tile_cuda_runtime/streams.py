"""The stream of a launch: the current stream of the caller's library.

PyTorch and CuPy have a current stream per thread and device. So has tvm-ffi, whose callers set it: that of XLA is found
there. Every other library hands over its arrays through DLPack, whose consumer is the legacy default stream unless it
requests another one: the producer has made its own work wait-for there, so that is where kernels on such arrays run.
Kernels without arrays run there too.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tile_cuda_runtime.api import LEGACY_STREAM, Handle
from tile_runtime.types import Torch

StreamOf = Callable[[int], Handle]
"""Maps the number of a device to its current stream."""


class Streams:
    """The current streams of all libraries, and of threads that have selected one temporarily."""

    def __init__(self) -> None:
        self._chosen: dict[int, StreamOf] = {}
        self._of: dict[str, StreamOf] = {}

    def current(self, library: str, ordinal: int) -> Handle:
        """Return the stream on which a launch with arrays of a library runs.

        Parameters
        ----------
        library
            Name of the library of the arrays.
        ordinal
            The device.
        """
        if self._chosen:
            chosen = self._chosen.get(threading.get_ident())
            if chosen is not None:
                return chosen(ordinal)
        of = self._of.get(library)
        if of is None:
            of = self._of[library] = _stream_of(library)
        return of(ordinal)

    def short(self, library: str) -> tuple[StreamOf, dict[int, StreamOf]]:
        """Return the look-up of a library's current stream, and the streams that threads have selected."""
        return self._of.get(library) or _stream_of(library), self._chosen

    @contextlib.contextmanager
    def choose(self, stream: StreamOf) -> Iterator[None]:
        """Run all launches of this thread on the stream that a function returns."""
        thread = threading.get_ident()
        self._chosen[thread] = stream
        try:
            yield
        finally:
            del self._chosen[thread]


def _stream_of(library: str) -> StreamOf:
    if library == "torch":
        return _torch(sys.modules["torch"])
    if library == "cupy":
        return _cupy(sys.modules["cupy"])
    if library == "tvm_ffi":
        return _tvm_ffi(sys.modules["tvm_ffi"])
    return lambda ordinal: LEGACY_STREAM


def _torch(torch: Torch) -> StreamOf:
    # What torch's own compiler launches with: the number itself, without an object around it.
    raw: StreamOf | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw if raw is not None else lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream)


def _cupy(cupy: Any) -> StreamOf:
    def current(ordinal: int) -> Handle:
        with cupy.cuda.Device(ordinal):
            return int(cupy.cuda.get_current_stream().ptr)

    return current


def _tvm_ffi(tvm_ffi: Any) -> StreamOf:
    return lambda ordinal: int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", ordinal)))
