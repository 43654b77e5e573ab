"""The loader of exported kernels, for tile-runtime."""

from __future__ import annotations

from tile_core.abi.adapter import RuntimeAdapter


def make(target: str) -> RuntimeAdapter:
    """Return the runtime of a target, by its text.

    Raises
    ------
    ValueError
        The text names no target of this package.
    """
    from tile_cuda.resolve import parse_target
    from tile_cuda.runtime.driver import CudaAdapter

    found = parse_target(target)
    if found is None:
        raise ValueError(f"{target} is not a target of tile-cuda")
    return CudaAdapter(found)
