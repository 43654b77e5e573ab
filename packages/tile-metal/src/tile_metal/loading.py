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
    from tile_metal.runtime import adapters
    from tile_metal.target import parse_target

    found = parse_target(target)
    if found is None:
        raise ValueError(f"{target} is not a target of tile-metal")
    return adapters(found)[0]
