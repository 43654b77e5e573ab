"""The driver, reduced to what launching needs; the only place that talks to it.

All calls go through ``cuda.bindings.driver``, except that of a short launch, see `tile_cuda_runtime.repeat`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tile_cuda_runtime.tensor_map import BYTES, SWIZZLES, TensorMap
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.records import dataclass

Handle = int
"""Of a library, function, stream, event, graph or context: an address that only the driver understands."""

LEGACY_STREAM: Handle = 0
"""The default stream, which is ordered with all blocking streams of its context."""

SUCCESS = 0
_SHARED_OPTIN = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


class DriverUnusable(Exception):
    """Why there is no working driver."""


class Broken(DriverUnusable):
    """There is a driver that does not start, although there is a device."""


class Failed(Exception):
    """A call of the driver failed.

    Parameters
    ----------
    call
        Its name.
    code
        The driver's number for the reason.
    reason
        The driver's words for it.
    """

    def __init__(self, call: str, code: int, reason: str) -> None:
        super().__init__(f"{call}: {reason}")
        self.call, self.code, self.reason = call, code, reason


ZEROS = 256
"""Bytes of a device that are always zero."""


@dataclass(frozen=True)
class Device:
    """Properties of a device that a launch needs.

    Attributes
    ----------
    ordinal
        Its number in this process.
    name
        As the driver calls it.
    compute
        Compute capability.
    shared_bytes
        Shared memory of a block at most, with opt-in.
    """

    ordinal: int
    name: str
    compute: tuple[int, int]
    shared_bytes: int


class Driver:
    """The calls of a launch and of loading, for all devices; errors are `Failed`.

    Parameters
    ----------
    bound
        The module ``cuda.bindings.driver``, initialised.
    """

    def __init__(self, bound: Any) -> None:
        self._bound = bound
        self._contexts: dict[int, Any] = {}
        self._zeros: dict[int, int] = {}
        self._lock = threading.Lock()
        self.launch: Callable[..., tuple[Any]] = bound.cuLaunchKernel
        """Returns the driver's number for what went wrong, 0 if nothing did."""
        self.read_current: Callable[[], tuple[Any, Any]] = bound.cuCtxGetDevice
        """Returns such a number, and the device of this thread's current context."""
        self.launch_config: Callable[..., int] | None = self._function(b"cuLaunchKernelEx", 11080)
        """Takes four pointers: ``CUlaunchConfig``, function, addresses of values, ``None``. Returns such a number."""

    def early(self) -> int:
        """Return the address of the launch attribute for programmatic dependent launch.

        0 if the driver does not support it: launches then run one after the other, which is also correct.
        """
        return 0 if self.launch_config is None else ctypes.addressof(_EARLY)

    def launch_early(self, function: Handle, *shape: Any) -> tuple[Any]:
        """Launch as `launch` does, with the attribute of `early`."""
        *numbers, stream, addresses, _ = shape
        if self.launch_config is None:
            return self.launch(function, *shape)
        config = ctypes.create_string_buffer(struct.pack("<7I4xQQI4x", *numbers, int(stream), self.early(), 1))
        handle = ctypes.byref(ctypes.c_char.from_address(function))
        table = ctypes.byref(ctypes.c_char.from_address(addresses))
        return (self.launch_config(ctypes.byref(config), handle, table, None),)

    # --- devices ---

    def version(self) -> str:
        """Return the newest CUDA version that the driver supports, for example ``"13.0"``."""
        number = self._do("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"

    def count(self) -> int:
        """Return the number of devices."""
        return int(self._do("cuDeviceGetCount"))

    def current(self) -> int:
        """Return the device of this thread's current context; 0 if it has none."""
        code, device = self.read_current()
        return 0 if code else int(device)

    @functools.cache  # noqa: B019 - there is one driver in a process
    def device(self, ordinal: int) -> Device:
        """Return the properties of a device, without making a context on it."""
        handle = self._do("cuDeviceGet", ordinal)
        kinds = self._bound.CUdevice_attribute
        major, minor, shared = (
            int(self._do("cuDeviceGetAttribute", kinds(kind), handle)) for kind in (_MAJOR, _MINOR, _SHARED_OPTIN)
        )
        name = self._do("cuDeviceGetName", 128, handle).split(b"\0")[0].decode(errors="replace")
        return Device(ordinal, name, (major, minor), shared)

    @contextlib.contextmanager
    def entered(self, ordinal: int) -> Iterator[None]:
        """Make a device's primary context current, unless the current context is on that device."""
        code, device = self.read_current()
        if not code and int(device) == ordinal:
            yield
            return
        with self._lock:
            if ordinal not in self._contexts:
                self._contexts[ordinal] = self._do("cuDevicePrimaryCtxRetain", self._do("cuDeviceGet", ordinal))
        self._do("cuCtxPushCurrent", self._contexts[ordinal])
        try:
            yield
        finally:
            self._do("cuCtxPopCurrent")

    def synchronize(self, ordinal: int) -> None:
        """Wait for all work on a device."""
        with self.entered(ordinal):
            self._do("cuCtxSynchronize")

    # --- memory of the current device ---

    def allocate(self, size: int) -> int:
        """Return the address of new memory, a multiple of 256."""
        return int(self._do("cuMemAlloc", size))

    def release(self, address: int) -> None:
        """Free memory, after all work on it."""
        self._do("cuMemFree", address)

    def upload(self, address: int, source: int, size: int) -> None:
        """Copy from the host, after all work on the default stream."""
        self._do("cuMemcpyHtoD", address, source, size)

    def download(self, target: int, address: int, size: int) -> None:
        """Copy to the host, after all work on the default stream."""
        self._do("cuMemcpyDtoH", target, address, size)

    def zeros(self, ordinal: int) -> int:
        """Return the address of `ZEROS` zero bytes on a device; legal during stream capture."""
        with self._lock:
            found = self._zeros.get(ordinal)
        if found is None:
            with self.entered(ordinal), self._relaxed(), self.stream() as stream:
                found = self.allocate(ZEROS)
                self._do("cuMemsetD8Async", found, 0, ZEROS, stream)
                self._do("cuStreamSynchronize", stream)
            with self._lock:
                self._zeros[ordinal] = found
        return found

    # --- functions ---

    def load(self, code: bytes) -> Any:
        """Load machine code for all devices that it fits; return the library."""
        return self._do("cuLibraryLoadData", code, [], [], 0, [], [], 0)

    def function(self, library: Any, name: str) -> Handle:
        """Return a function of a library; it can be launched on every device."""
        return int(self._do("cuLibraryGetKernel", library, name.encode()))

    def prepare(self, function: Handle, ordinal: int, shared_bytes: int) -> None:
        """Load a function on a device ahead of its launches, with its shared memory.

        Legal while a stream is captured.
        """
        kernel = self._bound.CUkernel(function)
        with self.entered(ordinal), self._relaxed():
            kind = self._bound.CUfunction_attribute(_MAX_DYNAMIC_SHARED)
            self._do("cuKernelSetAttribute", kind, shared_bytes, kernel, self._do("cuDeviceGet", ordinal))
            self._do("cuFuncLoad", self._do("cuKernelGetFunction", kernel))

    @contextlib.contextmanager
    def _relaxed(self) -> Iterator[None]:
        """Allow calls that stream capture would forbid in this thread; none belongs to a capture."""
        before = self._do("cuThreadExchangeStreamCaptureMode", self._bound.CUstreamCaptureMode(_RELAXED))
        try:
            yield
        finally:
            self._do("cuThreadExchangeStreamCaptureMode", before)

    def encode_map(self, fields: TensorMap) -> bytes:
        """Return a tensor map. The driver needs a current context (undocumented).

        Parameters
        ----------
        fields
            They keep `tile_cuda_runtime.tensor_map.RULES`.
        """
        bound = self._bound
        # One dimension has no stride, but the driver requires an array of strides.
        u64, u32 = bound.cuuint64_t, bound.cuuint32_t
        made = self._do(
            "cuTensorMapEncodeTiled", bound.CUtensorMapDataType(fields.code), len(fields.extents), fields.address,
            [u64(n) for n in fields.extents], [u64(n) for n in fields.strides or (16,)], [u32(n) for n in fields.box],
            [u32(1) for _ in fields.box], bound.CUtensorMapInterleave(0),
            bound.CUtensorMapSwizzle(SWIZZLES[fields.swizzle]), bound.CUtensorMapL2promotion(fields.promotion),
            bound.CUtensorMapFloatOOBfill(int(fields.nan)),
        )  # fmt: skip
        return ctypes.string_at(int(made.getPtr()), BYTES)

    # --- timing ---

    @contextlib.contextmanager
    def stream(self) -> Iterator[Handle]:
        """Create a stream of the current device that is not ordered with any other."""
        stream = self._do("cuStreamCreate", _NON_BLOCKING)
        try:
            yield int(stream)
        finally:
            self._do("cuStreamDestroy", stream)

    @contextlib.contextmanager
    def recorded(self, stream: Handle, queue: Callable[[], None]) -> Iterator[Any]:
        """Record the launches of ``queue`` on a stream as a graph."""
        mode = self._bound.CUstreamCaptureMode(_RELAXED)
        self._do("cuStreamBeginCapture", stream, mode)
        try:
            queue()
        finally:
            graph = self._do("cuStreamEndCapture", stream)
        try:
            ready = self._do("cuGraphInstantiate", graph, 0)
            try:
                yield ready
            finally:
                self._do("cuGraphExecDestroy", ready)
        finally:
            self._do("cuGraphDestroy", graph)

    def seconds(self, stream: Handle, graph: Any, times: int) -> float:
        """Return the device time of repeated launches of a recorded graph.

        The graph runs once before, so that the device is busy while the host queues the timed launches.
        """
        begin, end = self._do("cuEventCreate", 0), self._do("cuEventCreate", 0)
        try:
            self._do("cuGraphLaunch", graph, stream)
            self._do("cuEventRecord", begin, stream)
            for _ in range(times):
                self._do("cuGraphLaunch", graph, stream)
            self._do("cuEventRecord", end, stream)
            self._do("cuEventSynchronize", end)
            return float(self._do("cuEventElapsedTime", begin, end)) / 1e3
        finally:
            self._do("cuEventDestroy", begin)
            self._do("cuEventDestroy", end)

    # --- errors ---

    def failure(self, call: str, code: int) -> Failed:
        """Return the error for a number that `launch` returned."""
        return Failed(call, code, self.reason(code))

    def reason(self, code: int) -> str:
        """Return the driver's words for one of its numbers."""
        try:
            result = self._bound.CUresult(code)
        except ValueError:
            return f"error {code}"
        _, name = self._bound.cuGetErrorName(result)
        _, text = self._bound.cuGetErrorString(result)
        return f"{(name or b'').decode()} ({(text or b'').decode()})"

    def _function(self, name: bytes, since: int) -> Callable[..., int] | None:
        """Return a driver function on plain ``ctypes`` values; ``None`` if it is missing."""
        code, address, _ = self._bound.cuGetProcAddress(name, since, 0)
        return ctypes.CFUNCTYPE(ctypes.c_int)(int(address)) if int(code) == SUCCESS and int(address) else None

    def _do(self, call: str, *arguments: Any) -> Any:
        """Call the driver and return its one result, or ``None``."""
        code, *results = getattr(self._bound, call)(*arguments)
        if int(code) != SUCCESS:
            raise self.failure(call, int(code))
        return results[0] if results else None


#: One ``CUlaunchAttribute`` of cuda.h: ``CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`` is allowed.
_EARLY = ctypes.create_string_buffer(struct.pack("<I4xi60x", 6, 1), 72)
_ABSENT = (34, 100)  # a stub in place of the library; no device


@functools.cache
def open_driver() -> Driver:
    """Return the driver, initialised. A failure is not kept: the next call tries again.

    Raises
    ------
    DriverUnusable
        There is no driver, or (`Broken`) it does not work.
    """
    try:
        from cuda.bindings import driver as bound
    except ImportError as error:
        raise DriverUnusable(
            f'cuda-bindings cannot be imported ({error}): pip install "cuda-bindings>=13,<14"'
        ) from error
    try:
        (code,) = bound.cuInit(0)
    except Exception as error:  # whatever the search for a library ends with
        passed_on(error)
        raise DriverUnusable(f"the driver's library is not found ({str(error).splitlines()[0]})") from error
    driver = Driver(bound)
    if int(code) != SUCCESS:
        kind = DriverUnusable if int(code) in _ABSENT else Broken
        raise kind(f"the driver does not start: {driver.reason(int(code))}")
    return driver


def current_compute() -> tuple[int, int] | None:
    """Return the compute capability of the current device; ``None`` without a device or driver.

    Raises
    ------
    Broken, Failed
        There is a driver, but it does not work.
    """
    try:
        driver = open_driver()
        return driver.device(driver.current()).compute if driver.count() else None
    except Broken:
        raise
    except DriverUnusable:
        return None
