"""Driver errors as errors of the catalogue."""

from __future__ import annotations

from tile_cuda_runtime.api import Failed
from tile_cuda_runtime.errors import DriverFailed
from tile_runtime.abi.kernel_text import LaunchFacts
from tile_runtime.errors.base import TileError
from tile_runtime.errors.launch import DeviceFault

FAULTS = frozenset({700, 702, 710, *range(714, 720)})
"""The driver's error codes for faults of a kernel, after which the context is lost."""


def typed(error: Failed, facts: LaunchFacts | None = None) -> TileError:
    """Return the error of the catalogue for a call of the driver that failed.

    Parameters
    ----------
    error
        What failed.
    facts
        Of the kernel that is launched or loaded; ``None`` when work of several kernels is waited for.
    """
    kernel, where = ("the kernels before", None) if facts is None else (facts.kernel, facts.where)
    if error.code in FAULTS:
        reason = f"{error.reason}; this process cannot use the device any more"
        return DeviceFault(kernel=kernel, reporter="the device", reason=reason, where=where)
    return DriverFailed(kernel=kernel, call=error.call, reason=error.reason, where=where)
