"""Checks of ``tile doctor`` for NVIDIA devices: compiler, headers, driver, devices, array libraries."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.cli.checks import Check, Status
from tile_core.errors import TileError
from tile_cuda import build
from tile_cuda_runtime.api import Driver, DriverUnusable, Failed, open_driver
from tile_cuda_runtime.architectures import FALLBACK, RECORDS, arch_for, runs_on

LIBRARIES = ("torch", "cupy")


def checks() -> Iterator[Check]:
    """Yield the checks; the entry point of the group ``tile.checks``."""
    yield compiler()
    yield headers()
    yield from driver()
    yield from libraries()


def compiler() -> Check:
    """Build a small kernel: works without a driver."""
    name = "cuda: NVRTC"
    try:
        archs = [arch for arch, record in RECORDS.items() if _number(record.compute) in build.known_archs()]
        made = build.build(_KERNEL, archs[-1])
    except TileError as error:
        # There is no NVRTC for macOS.
        status: Status = "note" if sys.platform == "darwin" else "missing"
        return Check(name, status, f"[{error.code}] {error.message}", error.help)
    size = len(made.data)
    return Check(
        name, "OK", f"{build.version()}, builds for {', '.join(archs)}; a kernel for {made.arch}: {size} bytes"
    )


def headers() -> Check:
    """Find NVIDIA's headers, which only source with a user's ``#include`` needs."""
    name, folder = "cuda: headers", build.headers()
    if folder is None:
        advice = 'pip install "nvidia-cuda-runtime>=13,<14" if your own code includes them'
        return Check(name, "note", "not installed; emitted text needs none", advice)
    return Check(name, "OK", str(folder))


def driver() -> Iterator[Check]:
    """Start the driver and list its devices."""
    name = "cuda: driver"
    try:
        found = open_driver()
        count = found.count()
        yield Check(name, "OK", f"supports CUDA {found.version()}, sees {count} device{'' if count == 1 else 's'}")
        yield from devices(found)
    except DriverUnusable as error:
        advice = f"install the NVIDIA driver to launch kernels; until then the target `cuda` means cuda:{FALLBACK}"
        yield Check(name, "note", str(error), advice)
    except Failed as error:
        yield Check(name, "missing", str(error), "`nvidia-smi` has details")


def devices(found: Driver) -> Iterator[Check]:
    """Report the best target for each device."""
    current = found.current()
    for ordinal in range(found.count()):
        device = found.device(ordinal)
        arch = arch_for(device.compute)
        name = f"cuda: device {ordinal}"
        shown = "{}, sm_{}{}, {} KiB of shared memory".format(device.name, *device.compute, device.shared_bytes >> 10)
        if runs_on(arch, device.compute):
            last = ", the current one" if ordinal == current else ""
            yield Check(name, "OK", f"{shown}: target cuda:{arch}{last}")
        else:
            yield Check(name, "note", f"{shown}: too old", f"use a device of {FALLBACK} or newer")


def libraries() -> Iterator[Check]:
    """Check which libraries can hold arrays on a device; imports none of them."""
    for name in LIBRARIES:
        distribution = _distribution(name)
        if distribution is not None:
            yield Check(f"cuda: {name}", "OK", f"{distribution}: kernels run on its current stream")
            return
    advice = "install PyTorch or CuPy to have arrays on a device; any other library with DLPack serves too"
    yield Check("cuda: arrays", "note", f"neither {' nor '.join(LIBRARIES)} is installed", advice)


_KERNEL = KernelText(
    'extern "C" __global__ void check(float* x) { x[threadIdx.x] = 1.0f; }',
    LaunchFacts("check", (ParamFact("x", "pointer", "float32", "write"),), (1, 1, 1), (32, 1, 1)),
)


def _number(compute: tuple[int, int]) -> int:
    return compute[0] * 10 + compute[1]


def _distribution(module: str) -> str | None:
    """Return name and version of the distribution that provides a module, if it is installed."""
    for found in importlib.metadata.distributions():
        name = str(found.metadata["Name"])
        if name == module or name.startswith(f"{module}-cuda"):
            return f"{name} {found.version}"
    return None
