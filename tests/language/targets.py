"""Run a program on every executable target: the CPU, and texts in the emulator."""

from __future__ import annotations

from typing import Any

import tile_core as tile

#: The processor, and two targets whose texts differ in all that they leave to their language.
TARGETS = ("cpu", "cuda:sm_80", "metal")


def compiled(program: Any, target: str, **how: Any) -> Any:
    """Return a kernel that runs here."""
    if target != "cpu":
        how["runtime"] = "emulator"
    return tile.compile(program, target, **how)
