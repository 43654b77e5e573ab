"""Facts of devices, and estimates by them: ``tilelang.carver.arch`` and ``tilelang.tools.Analyzer``."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any

from tile_core.compiler import signature_of
from tile_core.errors import SetupError, UnsupportedError
from tile_core.ir.program import Program
from tile_core.records import dataclass
from tile_core.target import Target
from tile_core.tiling.work import work_of
from tile_tilelang.errors import NotOnHost
from tile_tilelang.host import every_target_name, runtime, target_of

__all__ = [
    "WorkAnalyzer",
    "AnalysisResult",
    "Arch",
    "check_hip_availability",
    "get_device_name",
    "get_num_sms",
    "get_shared_memory_per_block",
    "get_target_compute_version",
    "is_metal4",
    "target_is_gfx950",
]

_UNITS = {"bytes": 1, "kb": 1024, "mb": 1024**2}


def get_num_sms(device_id: int = 0) -> int:
    """Return how many blocks run side by side: multiprocessors of torch's device, else cores."""
    found = _properties(device_id)
    return int(found.multi_processor_count) if found else os.cpu_count() or 1


def get_device_name(device_id: int = 0) -> str | None:
    """Return the name of torch's device; ``None`` without one."""
    found = _properties(device_id)
    return str(found.name) if found else None


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """Return the shared memory of a block on torch's device, in ``"bytes"``, ``"kb"`` or ``"mb"``.

    Raises
    ------
    NotOnHost
        There is no such device.
    """
    found = _properties(device_id)
    if not found:
        instead = "`tile targets` lists the shared memory of each target"
        raise NotOnHost(name="get_shared_memory_per_block without a device", instead=instead)
    return int(found.shared_memory_per_block) // _UNITS[format]


def check_hip_availability() -> bool:
    """Return whether kernels are compiled for AMD's GPUs."""
    return every_target_name().startswith("rocm")


def target_is_gfx950(target: Any = None) -> bool:
    """Return whether a target, by default that of the script's kernels, is gfx950."""
    return "gfx950" in (every_target_name() if target is None else str(target_of(target)))


def is_metal4() -> bool:
    """Return whether kernels are compiled for Metal 4."""
    return "metal4" in every_target_name()


def get_target_compute_version(target: Any = None) -> str:
    """Return the compute capability of a target, by default that of the script's kernels.

    Raises
    ------
    NotOnHost
        The target is not one of NVIDIA's.
    """
    text = str(target_of("auto" if target is None else target))
    found = re.search(r"sm_(\d+)(\d)", text if ":" in text else every_target_name())
    if not found:
        raise NotOnHost(name=f"get_target_compute_version of {text}", instead="give --target cuda:sm_90a")
    return f"{found[1]}.{found[2]}"


class Arch:
    """The device of a target: ``CUDA("cuda")``, ``CDNA("hip")``.

    Attributes
    ----------
    target
        Tile's target.
    """

    def __init__(self, target: Any) -> None:
        from tile_core.plugins.manager import installed

        self.target: Target = installed().resolve_target(target_of(target))

    @property
    def compute_capability(self) -> str:
        """The digits of NVIDIA's architecture, ``"90"``; empty for other targets."""
        found = re.search(r"sm_(\d+)", self.target.text)
        return found[1] if found else ""

    sm_version = property(lambda self: int(self.compute_capability or -1))
    platform = property(lambda self: self.target.text.partition(":")[0].upper())


@dataclass(frozen=True)
class AnalysisResult:
    """The work of a launch, and its shortest time on a device.

    Attributes
    ----------
    total_flops
        Operations of matrix products.
    total_global_bytes
        Bytes of the tensors, each read or written once.
    estimated_time, expected_tflops, expected_bandwidth_GBps
        Seconds, and the device's rates; ``None`` where no runtime of the target knows them.
    """

    total_flops: int
    total_global_bytes: int
    estimated_time: float | None
    expected_tflops: float | None
    expected_bandwidth_GBps: float | None


class WorkAnalyzer:
    """Counts the work of a program."""

    @staticmethod
    def analysis(fn: Program, device: Arch) -> AnalysisResult:
        """Return the work of a program with constant sizes, and its time."""
        from tile_core.plugins.manager import installed
        from tile_core.plugins.runtimes import find_runtime

        work, peaks = work_of(fn, signature_of(fn), {}), dict[str, float]()
        with contextlib.suppress(SetupError, UnsupportedError):  # of a target that this machine does not have
            peaks = getattr(find_runtime(installed(), device.target, runtime()), "peaks", dict)()
        flops, rate, width = sum(work.products.values()), peaks.get(work.kind), peaks.get("bytes")
        seconds = max(flops / rate, work.moved / width) if rate and width else None
        return AnalysisResult(int(flops), work.moved, seconds, rate and rate / 1e12, width and width / 1e9)


def _properties(device: int) -> Any:
    torch = sys.modules.get("torch")
    # Not torch.cuda.is_available, which is answered for scripts in host memory.
    if torch is None or not getattr(torch._C, "_cuda_getDeviceCount", int)():
        return None
    return torch.cuda.get_device_properties(device)
