"""Names of ``tilelang.utils`` that scripts use."""

from __future__ import annotations

from tile_tilelang.host import cdiv, next_power_of_2, target_of
from tile_tilelang.supply import TensorSupplyType

__all__ = ["TensorSupplyType", "cdiv", "determine_target", "next_power_of_2"]


def determine_target(target: object = "auto", return_object: bool = False) -> str:
    """Return the name of the target that kernels are compiled for on this machine."""
    from tile_core.plugins.manager import installed

    return installed().resolve_target(target_of(target)).text
