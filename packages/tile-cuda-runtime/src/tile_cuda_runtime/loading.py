"""The loader of exported kernels, for tile-runtime."""

from __future__ import annotations

from tile_runtime.abi.adapter import RuntimeAdapter


def make(target: str) -> RuntimeAdapter:
    """Return the runtime of a target, by its text; ``cuda`` alone is the current device.

    Raises
    ------
    ValueError
        The text names no target of this package.
    UnknownArchitecture
        Naming the nearest one that is known.
    """
    from tile_cuda_runtime import api
    from tile_cuda_runtime.architectures import FALLBACK, KIND, arch_for, record_of
    from tile_cuda_runtime.driver import DriverAdapter

    kind, _, arch = target.partition(":")
    if kind != KIND:
        raise ValueError(f"{target} is not a target of tile-cuda-runtime")
    if not arch:
        compute = api.current_compute()
        arch = FALLBACK if compute is None else arch_for(compute)
    return DriverAdapter(record_of(arch))
