"""Host costs of a compiled kernel's call, and of its parts.

    python benchmarks/launch.py [--seconds 2] [--export FOLDER | --artefacts FOLDER] [--json FILE]

Demand: a call with two torch tensors takes at most 4 microseconds of the host, and one that allocates its output 6. It
can only be measured where there is a device. Everywhere else the parts before the driver are: torch's tensors of the
host stand in for those of a device, and functions of C that do nothing for the driver's, so that all of the way runs
except the driver itself. It needs torch and a C compiler (``cc``), and for a device without TVM kernels from files.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sides import Row, at_most, run

import tile_core as tile
import tile_core.language as T
from tile_core.abi.adapter import Location
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.abi.signature import Param, Signature
from tile_core.runtime.kernel import Kernel
from tile_cuda_runtime.api import open_driver
from tile_cuda_runtime.launch import Launcher
from tile_cuda_runtime.repeat import _memory
from tile_cuda_runtime.streams import Streams
from tile_runtime.files.artefact import from_bytes
from tile_runtime.texts.constants import LaunchConstants

_CALLS = 2000
_NAMES = ("launch_double", "launch_add", "launch_sum")
_DRIVER = """
static volatile long seen;
int cuLaunchKernelEx(void *config, void *function, void **values, void **extra) { seen += (long)values[0]; return 0; }
"""
_LOOP = """
typedef int (*launch_t)(void *config, void *function, void **values, void **extra);
void loop(launch_t launch, void *config, void *function, void **values, int count) {
  for (int i = 0; i < count; ++i) launch(config, function, values, 0);
}
"""


class StandIn:
    """A driver of one device whose launches are calls of C that do nothing."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "driver.c", Path(folder) / "driver.so"
            source.write_text(_DRIVER)
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
            loaded = ctypes.CDLL(str(library)).cuLaunchKernelEx
        self.launch_config = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.cast(loaded, ctypes.c_void_p).value)
        self.launch = lambda *arguments: (0,)
        self.read_current = lambda: (0, 0)

    def count(self) -> int:
        """Return the number of devices."""
        return 1


class OnHost:
    """An adapter that takes host tensors as if they were on device 0."""

    name = "stand-in"
    devices = frozenset({1})
    convention = "pointers"

    def __init__(self, launch: Any) -> None:
        self._launch = launch

    def __call__(self, values: Any, location: Location) -> None:
        """Launch."""
        self._launch(values, Location((2, 0), location.library))

    def repeat(self, values: Any, location: Location, moving: Any) -> Any:
        """Return the short way."""
        return self._launch.repeat(values, Location((2, 0), location.library), moving)

    def allocate(self, *of_an_output: Any) -> None:
        """Leave it to torch."""


class Nothing:
    """A launch that ends where an adapter begins."""

    def __call__(self, values: Any, location: Location) -> None:
        """Do nothing."""

    def repeat(self, values: Any, location: Location, moving: Any) -> Any:
        """Return nothing, as a function."""
        from tile_runtime.calls.repeat import Repeat

        return Repeat(lambda a, b, c: None)


def stand_in() -> Launcher:
    """Return the launcher of a kernel with three arrays on the stand-in."""
    names = ("A", "B", "C")
    facts = LaunchFacts("main", tuple(ParamFact(n, "pointer", "float32") for n in names), (4, 4, 1), (128, 1, 1))
    streams = Streams()
    streams._of["torch"] = _no_stream()
    launcher = Launcher(KernelText("", facts), "sm_90a", StandIn(), streams, set())  # type: ignore[arg-type]
    launcher._functions[0] = 1
    launcher._constants[0] = LaunchConstants(facts, lambda param, placed: b"")
    return launcher


def _no_stream() -> Callable[[int], int]:
    """Return a function as short as torch's own that returns 0."""
    return {0: 0}.__getitem__


def kernel(launch: Any) -> Kernel:
    """Return a kernel with three arrays, the last one written, that ends in a launch."""
    arrays = (Param("A", "tensor", "float32", (128, 128)), Param("B", "tensor", "float32", (128, 128)))
    signature = Signature("main", (*arrays, Param("C", "tensor", "float32", (128, 128), access="write")))
    adapter = OnHost(launch)
    return Kernel(signature, adapter, adapter=adapter)  # type: ignore[arg-type]


def seconds(call: Callable[..., object], arguments: tuple[Any, ...], budget: float) -> float:
    """Return the processor time of a call: the least mean of many series."""
    least, end = float("inf"), time.perf_counter() + budget
    again = range(_CALLS)
    while time.perf_counter() < end:
        start = time.process_time()
        for _ in again:
            call(*arguments)
        least = min(least, (time.process_time() - start) / _CALLS)
    return least


def kernels(arguments: argparse.Namespace) -> list[Any]:
    """Return small kernels for the device: two tensors, three, one allocated.

    They are compiled or loaded.
    """
    if arguments.artefacts is not None:
        return [tile.load(arguments.artefacts / f"{name}.tile") for name in _NAMES]

    @T.prim_func
    def add(
        A: T.Tensor((128, 128), "float32"), B: T.Tensor((128, 128), "float32"), C: T.Tensor((128, 128), "float32")
    ) -> None:
        with T.Kernel(128, threads=128) as row:
            for i in T.Parallel(128):
                C[row, i] = A[row, i] + B[row, i]

    @T.prim_func
    def double(A: T.Tensor((128, 128), "float32"), C: T.Tensor((128, 128), "float32")) -> None:
        with T.Kernel(128, threads=128) as row:
            for i in T.Parallel(128):
                C[row, i] = A[row, i] + A[row, i]

    target = "auto" if arguments.export is None else "cuda:sm_90a"
    more = ({}, {}, {"out_idx": -1})
    return [tile.compile(x, target=target, **m) for x, m in zip((double, add, add), more, strict=True)]


def on_device(arguments: argparse.Namespace) -> list[Row]:
    """Return call times of small kernels on the device, with given and allocated outputs."""
    import torch

    tensors = tuple(torch.ones(128, 128, device="cuda") for _ in range(3))
    sides = [
        ("a call with 2 tensors on the device", tensors[:2], 4.0),
        ("a call with 3 tensors on the device", tensors, 5.0),
        ("one with 2 that allocates the third", tensors[:2], 6.0),
    ]
    made = kernels(arguments)
    rows = [
        _row(name, _least(kernel, given, arguments.seconds), most)
        for (name, given, most), kernel in zip(sides, made, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        loaded = arguments.artefacts and arguments.artefacts / f"{_NAMES[0]}.tile"
        file = loaded or made[0].export(Path(folder) / "kernel.tile")
        alone = driver_alone(file, [t.data_ptr() for t in tensors[:2]], arguments.seconds)
    return [*rows, _row("the driver alone, from a loop in C", alone, None)]


def driver_alone(file: Path, addresses: list[int], budget: float) -> float:
    """Return the seconds of a kernel launch by the driver alone."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
        source.write_text(_LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        loop = ctypes.CDLL(str(library)).loop
    text = from_bytes(file.read_bytes(), file).text
    launcher = Launcher(text, "sm_90a", open_driver(), Streams(), set(), text.built)
    function = launcher.prepare(launcher._driver.current())
    shape = (*(launcher._grid(addresses) or ()), *launcher._shape)
    _, given = _memory(function, shape, launcher._packer.codes, addresses, ())()
    launch = ctypes.cast(launcher._driver.launch_config, ctypes.c_void_p)  # type: ignore[arg-type]
    least, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        torch.cuda.synchronize()
        start = time.perf_counter()
        loop(launch, *given[:3], 500)
        least = min(least, (time.perf_counter() - start) / 500)
    return least


def _least(call: Callable[..., object], arguments: tuple[Any, ...], budget: float) -> float:
    import torch

    least, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(500):  # fewer than the driver queues
            call(*arguments)
        least = min(least, (time.perf_counter() - start) / 500)
    return least


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per part."""
    if arguments.export is not None:
        arguments.export.mkdir(parents=True, exist_ok=True)
        for name, made in zip(_NAMES, kernels(arguments), strict=True):
            made.export(arguments.export / f"{name}.tile")
        return []
    import torch

    tensors = tuple(torch.ones(128, 128) for _ in range(3))
    addresses = tuple(t.data_ptr() for t in tensors)
    budget = arguments.seconds
    launcher = stand_in()
    binder = seconds(kernel(Nothing()), tensors, budget)
    location = Location((2, 0), "torch")
    short = launcher.repeat(addresses, location, (0, 1, 2))
    assert short is not None
    adapter = seconds(short.launch, addresses, budget)
    null = ctypes.c_void_p(addresses[0])
    driver = seconds(launcher._driver.launch_config, (null, null, null, None), budget)  # type: ignore[arg-type]
    rows = [
        _row("binder: 3 tensors checked, their addresses", binder, None),
        _row("adapter: stream, values, call of a driver that does nothing", adapter, None),
        _row("of that the call", driver, None),
        _row("all of it", seconds(kernel(launcher), tensors, budget), None),
        _row("adapter, the long way", seconds(lambda: launcher(addresses, location), (), budget), None),
    ]
    return rows + (on_device(arguments) if torch.cuda.is_available() else [])


def _row(name: str, found: float, most: float | None) -> Row:
    demand = None if most is None else at_most(found * 1e6, most)
    return {"what": name, "unit": "us", "min": found * 1e6, "demand": demand}


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write the device's kernels to files")
    parser.add_argument("--artefacts", type=Path, metavar="FOLDER", help="load them instead of compiling")


if __name__ == "__main__":
    run("launch", measure, options)
