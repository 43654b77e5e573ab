"""Loading and launching: ``adapter`` dispatches by arrays to ``mlx`` and ``mps``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.target import Target


def adapters(target: Target) -> tuple[RuntimeAdapter, ...]:
    """Return a target's runtimes: one that dispatches by arrays, and one per library."""
    from tile_metal.runtime.adapter import MetalAdapter

    return (
        MetalAdapter(target),
        MetalAdapter(target, "mlx", libraries=("mlx",)),
        MetalAdapter(target, "torch", libraries=("torch",)),
    )
