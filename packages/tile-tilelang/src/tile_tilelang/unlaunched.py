"""The runtime ``unlaunched``: kernels of any target, compiled to text, whose launches do nothing.

With it a script is carried from kernel to kernel without a device: calls are checked, outputs allocated, and no element
is computed. Reports of whole folders use it, see `tile_tilelang.report`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.abi.adapter import HOST_DEVICE, RuntimeAdapter
from tile_core.target import Target

NAME = "unlaunched"


def runtime(target: Target, dialect: object) -> Unlaunched:
    """Make the runtime for a target: the entry point of the group ``tile.runtimes``."""
    return Unlaunched()


class Unlaunched(RuntimeAdapter):
    """Takes arrays of host memory, and leaves them as they are."""

    name = NAME
    devices = frozenset({HOST_DEVICE})
    convention = "packed"
    launches = False

    def load(self, artefact: object) -> Callable[..., Any]:
        """Return a launch without effect."""
        return lambda *values: None

    def synchronize(self) -> None:
        """Nothing to wait for."""
