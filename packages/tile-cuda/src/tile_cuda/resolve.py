"""From a string, or the device of this machine, to a target."""

from __future__ import annotations

from tile_core.target import Target, split_target
from tile_cuda.target import make_target
from tile_cuda_runtime import api
from tile_cuda_runtime.architectures import FALLBACK, KIND, arch_for
from tile_cuda_runtime.errors import NoDriver
from tile_cuda_runtime.faults import typed


def parse_target(text: str) -> Target | None:
    """Return the target of a string; ``cuda`` alone is the current device, or ``FALLBACK``.

    Raises
    ------
    UnknownArchitecture
        Naming the nearest one that is known.
    """
    parts = split_target(text)
    if parts.kind != KIND:
        return None
    if not parts.arch:
        return detect() or make_target(FALLBACK)
    return make_target(parts.arch)


def detect(strict: bool = False) -> Target | None:
    """Return the target of the current device; ``None`` without a device or driver.

    Parameters
    ----------
    strict
        Raise if there is a driver that does not work, instead of ``None``.

    Raises
    ------
    NoDriver, DriverFailed, DeviceFault
        With what the driver reports.
    """
    try:
        compute = api.current_compute()
    except (api.Broken, api.Failed) as error:
        if not strict:
            return None
        if isinstance(error, api.Failed):
            raise typed(error) from error
        raise NoDriver(kernel="the search for a device", target=KIND, reason=str(error)) from error
    return None if compute is None else make_target(arch_for(compute))
