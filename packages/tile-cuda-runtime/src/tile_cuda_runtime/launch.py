"""Prepared launches of a kernel: a launch takes a few microseconds.

No call allocates, waits, or loads anything once a text has run on a device, so that launches can be captured in graphs;
the first call on a device may be captured too.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence

from tile_cuda_runtime.api import Device, Driver, Failed, Handle
from tile_cuda_runtime.architectures import DEPENDENT, GRID_LIMITS, KIND, arch_for, code_runs_on, record_of, runs_on
from tile_cuda_runtime.errors import DriverTooOld, NoDevice, NoNvrtc, OtherArchitecture
from tile_cuda_runtime.faults import typed
from tile_cuda_runtime.map_constants import constants_of
from tile_cuda_runtime.pack import SlotPacker
from tile_cuda_runtime.repeat import short_launch
from tile_cuda_runtime.streams import Streams
from tile_runtime.abi.adapter import Built, Location
from tile_runtime.abi.kernel_text import KernelText, LaunchFacts
from tile_runtime.calls.repeat import Repeat
from tile_runtime.errors.launch import GridTooLarge, TooMuchShared
from tile_runtime.loaders import builder
from tile_runtime.texts.constants import LaunchConstants
from tile_runtime.texts.launch_grid import Extents, grid_of, grid_positions, require_whole_clusters
from tile_runtime.types import Argument

_ON_DEVICE = 2  # kDLCUDA
_REFUSED_CODE = (200, 209, 218, 222, 223, 300)  # invalid image, no binary, PTX, versions


class Launcher:
    """A text, on all devices that it is launched on.

    Parameters
    ----------
    kernel
        The text.
    arch
        The architecture of its target.
    driver
        The driver.
    streams
        Where launches go.
    used
        Receives the numbers of the devices that the text is loaded on.
    built
        Machine code for ``arch``, if there is any.
    """

    def __init__(
        self,
        kernel: KernelText,
        arch: str,
        driver: Driver,
        streams: Streams,
        used: set[int],
        built: Built | None = None,
    ) -> None:
        self.kernel, self.facts, self.arch = kernel, kernel.facts, arch
        self._driver, self._stream, self._used, self._built = driver, streams.current, used, built
        self._streams = streams
        self._lock = threading.Lock()
        self._functions: dict[int, Handle] = {}
        self._libraries: dict[str, object] = {}
        self._packer = SlotPacker(self.facts)
        self._constants: dict[int, LaunchConstants] = {}
        self._shape = (*self.facts.block, self.facts.shared_bytes)
        dependent = bool(self.facts.attributes.get(DEPENDENT))
        self._launch = driver.launch_early if dependent else driver.launch
        self._attributes = driver.early() if dependent else 0
        self._grid = grid_of(self.facts, functools.partial(checked, self.facts))

    def __call__(self, values: Sequence[Argument], location: Location) -> None:
        """Launch on the current stream of the place's library; returns when the work is queued."""
        grid = self._grid(values)
        if grid is None:
            return
        kind, ordinal = location.device
        driver = self._driver
        if kind != _ON_DEVICE or location.library == "numpy":
            ordinal = driver.current()
        function = self._functions.get(ordinal)
        if function is None:
            function = self.prepare(ordinal)
        packer = self._packer
        stream = self._stream(location.library, ordinal)
        pack = packer.take()
        try:
            given = values if packer.plain else packer.encode(values)
            constants = self._constants[ordinal]
            packer.write(pack.values, 0, *given, *(constants(values) if constants else ()))
            shape = self._shape
            code, current = driver.read_current()
            if not code and int(current) == ordinal:
                (code,) = self._launch(function, *grid, *shape, stream, pack.addresses, 0)
            else:
                with driver.entered(ordinal):
                    (code,) = self._launch(function, *grid, *shape, stream, pack.addresses, 0)
        except Failed as error:
            raise typed(error, self.facts) from error
        finally:
            packer.put(pack)
        if code:
            raise typed(driver.failure("cuLaunchKernel", int(code)), self.facts)

    def repeat(self, values: Sequence[Argument], location: Location, moving: Sequence[int]) -> Repeat | None:
        """Return the fast path for launches like a previous one, see `tile_runtime.calls.repeat`."""
        kind, ordinal = location.device
        packer, function = self._packer, self._functions.get(ordinal)
        deciding = {*grid_positions(self.facts), *packer.encoded}
        if kind != _ON_DEVICE or location.library == "numpy" or function is None or deciding.intersection(moving):
            return None
        grid, constants = self._grid(values), self._constants[ordinal].by_value(values, moving)
        if grid is None or constants is None:
            return None
        given = list(values)

        def otherwise(*now: Argument) -> None:
            mine = list(given)
            for i, value in zip(moving, now, strict=True):
                mine[i] = value
            self(mine, location)

        def failed(code: int) -> Exception:
            return typed(self._driver.failure("cuLaunchKernelEx", code), self.facts)

        fixed = given if packer.plain else packer.encode(given)
        shape, stream = (*grid, *self._shape), self._streams.short(location.library)
        codes = packer.codes
        return short_launch(
            self._driver, function, shape, codes, fixed, moving, constants, stream, ordinal, otherwise, failed,
            self._attributes,
        )  # fmt: skip

    def prepare(self, ordinal: int) -> Handle:
        """Load the text on a device, at most once, and return its function.

        Raises
        ------
        NoDevice, OtherArchitecture, TooMuchShared, DriverTooOld, DriverFailed
            The device cannot run it.
        """
        with self._lock:
            try:
                if ordinal not in self._functions:
                    function = self._prepared(ordinal)
                    self._constants[ordinal] = constants_of(self.facts, self._driver, ordinal)
                    self._functions[ordinal] = function
                    self._used.add(ordinal)
                return self._functions[ordinal]
            except Failed as error:
                raise typed(error, self.facts) from error

    def _prepared(self, ordinal: int) -> Handle:
        facts, driver = self.facts, self._driver
        count = driver.count()
        if not 0 <= ordinal < count:
            raise NoDevice(kernel=facts.kernel, found=ordinal, count=count, where=facts.where)
        device = driver.device(ordinal)
        check_device(facts, self.arch, device)
        arch = arch_of(self.arch, device)
        if arch not in self._libraries:
            self._libraries[arch] = self._load(arch)
        function = driver.function(self._libraries[arch], facts.entry)
        driver.prepare(function, ordinal, facts.shared_bytes)
        return function

    def _load(self, arch: str) -> object:
        """Load the code for an architecture; it stays loaded, since a graph may hold it."""
        code = self._built.data if self._built is not None and serves(self._built.arch, arch) else self._compiled(arch)
        try:
            return self._driver.load(code)
        except Failed as error:
            if error.code not in _REFUSED_CODE:
                raise
            found = builder(KIND)
            compiler = "the compiler that built it" if found is None else f"NVRTC {found.version()}"
            raise DriverTooOld(
                kernel=self.facts.kernel, driver=self._driver.version(), compiler=compiler, reason=error.reason,
                where=self.facts.where,
            ) from error  # fmt: skip

    def _compiled(self, arch: str) -> bytes:
        """Compile the text for an architecture.

        Raises
        ------
        NoNvrtc
            The compiler is not installed, and the binary is for devices of another major version.
        """
        found = builder(KIND)
        if found is None:
            reason = f"its binary is for {self._built.arch}" if self._built is not None else "it has no binary"
            raise NoNvrtc(
                target=f"{KIND}:{arch}", reason=f"{reason}, and tile-cuda is not installed",
                advice=f"build the kernel for {KIND}:{arch} beforehand, or install tile-cuda", where=self.facts.where,
            )  # fmt: skip
        try:
            return found.code_of(self.kernel, arch)
        except NoNvrtc:
            if self._built is None or not code_runs_on(self._built.arch, arch):
                raise
            return self._built.data


def check_device(facts: LaunchFacts, arch: str, device: Device) -> None:
    """Refuse a device that cannot run a text.

    Parameters
    ----------
    facts
        Of the text.
    arch
        The architecture that it was made for.
    device
        The device.

    Raises
    ------
    OtherArchitecture, TooMuchShared
        With the target to compile for instead.
    """
    near = f"cuda:{arch_for(device.compute)}"
    if not runs_on(arch, device.compute):
        found = "{}{}".format(*device.compute)
        shown: dict[str, object] = {"kernel": facts.kernel, "device": device.ordinal, "name": device.name, "near": near}
        raise OtherArchitecture(target=f"cuda:{arch}", found=found, where=facts.where, **shown)
    if facts.shared_bytes > device.shared_bytes:
        memory = {"found": facts.shared_bytes, "limit": device.shared_bytes}
        name = f"device {device.ordinal} ({device.name})"
        or_else = f", or compile for {near}, whose limit is checked when compiling"
        raise TooMuchShared(kernel=facts.kernel, device=name, or_else=or_else, where=facts.where, **memory)


def arch_of(arch: str, device: Device) -> str:
    """Return the architecture to build for: the text's own, or that of the device."""
    record = record_of(arch)
    return arch if record.compute == device.compute else "sm_{}{}".format(*device.compute)


def serves(built: str, arch: str) -> bool:
    """Whether a launch on an architecture uses existing machine code instead of a compiler."""
    return built == arch or (builder(KIND) is None and code_runs_on(built, arch))


def checked(facts: LaunchFacts, grid: Extents) -> Extents | None:
    """Return the grid of a launch, or ``None`` if it has no blocks.

    Raises
    ------
    GridTooLarge, GridNotInClusters
        It is over the limit; its blocks make no whole clusters.
    """
    require_whole_clusters(facts, grid)
    for axis, found, limit in zip("xyz", grid, GRID_LIMITS, strict=True):
        if found > limit:
            shown = {"runtime": "the driver", "unit": "blocks", "axis": axis, "found": found, "limit": limit}
            raise GridTooLarge(kernel=facts.kernel, where=facts.where, **shown)
    return None if min(grid) <= 0 else grid
