"""The runtime ``cuda``: kernels on the device where their arrays are, launched through the driver."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from tile_cuda_runtime.api import LEGACY_STREAM, Driver, DriverUnusable, Failed, Handle, open_driver
from tile_cuda_runtime.architectures import KIND, runs_on
from tile_cuda_runtime.errors import NoDevice, NoDriver
from tile_cuda_runtime.faults import typed
from tile_cuda_runtime.launch import Launcher, arch_of, serves
from tile_cuda_runtime.streams import Streams
from tile_runtime.abi.adapter import Built, Location
from tile_runtime.abi.kernel_text import KernelText
from tile_runtime.calls.repeat import Repeat
from tile_runtime.loaders import builder
from tile_runtime.texts.choose import TextChoice
from tile_runtime.texts.text_adapter import NamedTarget, TextAdapter
from tile_runtime.types import Argument, Array

if TYPE_CHECKING:
    from tile_cuda_runtime.memory import DeviceArray

_RECORDED = 100
"""Launches of one graph when time is taken."""


class Named(NamedTarget, Protocol):
    """A target that names its architecture."""

    @property
    def arch(self) -> str:
        """Its architecture."""


class DriverAdapter(TextAdapter):
    """Launches on NVIDIA devices.

    Loading works on every machine, so that the source of a kernel can be inspected anywhere; only a launch needs a
    driver. Where there is a device that can run the kernel, loading prepares it for the current one.

    Parameters
    ----------
    target
        What kernels are compiled for: a target of the compiler, or its architecture.
    driver
        Returns the driver; replaced in tests.
    """

    name = "cuda"
    #: kDLCUDA; kDLCUDAHost, which the device reads at the same addresses; kDLCUDAManaged.
    devices = frozenset({2, 3, 13})
    convention = "pointers"
    library = __name__.partition(".")[0]

    def __init__(self, target: Named, driver: Callable[[], Driver] = open_driver) -> None:
        self.target = target
        self.arch = target.arch
        self._open = driver
        self._streams = Streams()
        self._used: set[int] = set()

    def launch_of(self, kernel: KernelText) -> _Chosen | _Direct:
        """Return the launch of a text, built for the current device if possible.

        Raises
        ------
        TextRefused, NoNvrtc
            The current device could run it, but its text cannot be built.
        """
        choice: TextChoice[Launcher] = TextChoice(kernel, self._launcher)
        self._warm(choice)
        return _Chosen(choice) if choice.assumes else _Direct(choice)

    def arrays(self) -> type[DeviceArray]:
        """Return the type of the arrays that `from_host` makes."""
        from tile_cuda_runtime.memory import DeviceArray

        return DeviceArray

    def device_name(self) -> str:
        """Return the name of the current device."""
        driver = self._open()
        return driver.device(driver.current()).name

    def refuses(self, built: Built) -> str:
        """Return why the current device cannot run the built code."""
        try:
            driver = self._open()
            if not driver.count():
                return "the driver sees no device"
            device = driver.device(driver.current())
        except DriverUnusable as error:
            return str(error)
        except Failed as error:
            raise typed(error) from error
        if not runs_on(built.arch or self.arch, device.compute):
            return "device {} ({}) has sm_{}{}".format(device.ordinal, device.name, *device.compute)
        arch = arch_of(self.arch, device)
        if not serves(built.arch, arch) and builder(KIND) is None:
            return f"its binary is for {built.arch}, and tile-cuda is not installed to compile it for {arch}"
        return ""

    def synchronize(self) -> None:
        """Wait for all work on the devices that kernels of this adapter were launched on."""
        try:
            for ordinal in sorted(self._used):
                self._open().synchronize(ordinal)
        except Failed as error:
            raise typed(error) from error

    def clock(self, launch: Callable[[], object], launches: int) -> float | None:
        """Record the launches as a graph and time it with events, without host overhead."""
        ordinal = self._device_of(launch)
        if ordinal is None:
            return None
        most = min(launches, _RECORDED)
        times, rest = divmod(launches, most)
        total = 0.0
        try:
            driver = self._open()
            driver.synchronize(ordinal)
            with driver.entered(ordinal), driver.stream() as stream:
                for count, repeat in ((most, times), (rest, 1)):
                    if count:
                        queue = functools.partial(self._queue, launch, count, stream)
                        with driver.recorded(stream, queue) as graph:
                            total += driver.seconds(stream, graph, repeat)
        except Failed as error:
            raise typed(error) from error
        return total

    def from_host(self, array: Array) -> Argument:
        """Copy a NumPy array to the current device, between guards; see `tile_cuda_runtime.memory`.

        Raises
        ------
        NoDriver, NoDevice
            There is no device.
        DriverFailed, DeviceFault, UnsupportedArray
            The driver refuses, or the array has no description.
        """
        try:
            driver = self._open()
            if not driver.count():
                raise NoDevice(kernel="from_host", found=0, count=0)
            return self.arrays()(driver, array)
        except DriverUnusable as error:
            raise NoDriver(kernel="from_host", target=self.target.text, reason=str(error)) from error
        except Failed as error:
            raise typed(error) from error

    def allocate(self, library: str, shape: tuple[int, ...], dtype: str, device: tuple[int, int]) -> Argument:
        """Allocate an output among arrays of `from_host`, on their device; other libraries allocate their own."""
        if library != self.library:
            return None
        with self._open().entered(device[1]):
            return super().allocate(library, shape, dtype, device)

    def _device_of(self, launch: Callable[[], object]) -> int | None:
        """Launch once and return the device; ``None`` if the launch has no blocks."""
        seen: list[int] = []

        def look(ordinal: int) -> Handle:
            seen.append(ordinal)
            return LEGACY_STREAM

        with self._streams.choose(look):
            launch()
        return seen[0] if seen else None

    def _queue(self, launch: Callable[[], object], count: int, stream: Handle) -> None:
        with self._streams.choose(lambda ordinal: stream):
            for _ in range(count):
                launch()

    def _warm(self, choice: TextChoice[Launcher]) -> None:
        """Load the preferred text on the current device, if it can run it."""
        try:
            driver = self._open()
            if not driver.count():
                return
            device = driver.device(driver.current())
        except (DriverUnusable, Failed):
            return  # the first launch reports it
        if runs_on(self.arch, device.compute):
            choice.loaded().prepare(device.ordinal)

    def _launcher(self, kernel: KernelText) -> Launcher:
        facts = kernel.facts
        try:
            driver = self._open()
        except DriverUnusable as error:
            target = self.target.text
            raise NoDriver(kernel=facts.kernel, target=target, reason=str(error), where=facts.where) from error
        built = kernel.built if kernel.built is not None and kernel.built.runtime == self.name else None
        return Launcher(kernel, self.arch, driver, self._streams, self._used, built)


class _Chosen:
    """The launch of a kernel whose text depends on the values."""

    def __init__(self, choice: TextChoice[Launcher]) -> None:
        self._choice = choice

    def __call__(self, values: tuple[float, ...], location: Location) -> None:
        self._choice(values)(values, location)

    def repeat(self, values: tuple[float, ...], location: Location, moving: Sequence[int]) -> Repeat | None:
        """Return the short way of launches that differ in the values at some positions."""
        found = self._choice.repeated(values, moving)
        if found is None:
            return None
        launcher, masks = found
        short = launcher.repeat(values, location, moving)
        return None if short is None else replace(short, masks=masks)


class _Direct(_Chosen):
    """The launch of source code that serves every call, without selection."""

    def __init__(self, choice: TextChoice[Launcher]) -> None:
        super().__init__(choice)
        self._found: Launcher | None = None

    def __call__(self, values: tuple[float, ...], location: Location) -> None:
        if self._found is None:
            self._found = self._choice.loaded()
        self._found(values, location)
