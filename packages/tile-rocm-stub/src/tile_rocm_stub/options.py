"""Options of the ROCm backend."""

from __future__ import annotations

from tile_core.numerics.levels import NumericsOptions
from tile_core.records import dataclass


@dataclass(frozen=True)
class RocmOptions(NumericsOptions):
    """How the ROCm backend compiles; ``numerics="fast"`` is ``"standard"`` here."""
