"""Loading and launching: ``adapter`` chooses by the arrays, ``mlx`` and ``mps`` launch through one library each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.target import Target


def adapters(target: Target) -> tuple[RuntimeAdapter, ...]:
    """Return the runtimes of a target: one that chooses by the arrays of a call, and one for each library."""
    from tile_metal.runtime.adapter import MetalAdapter

    return (
        MetalAdapter(target),
        MetalAdapter(target, "mlx", libraries=("mlx",)),
        MetalAdapter(target, "torch", libraries=("torch",)),
    )
