"""What the toolchain says of a kernel's binary, where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.emit.facts import KernelText
from tile_core.errors import TileError
from tile_core.runtime.adapter import RuntimeAdapter

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.plugins.manager import Plugins


def built_facts(lowered: Any, ctx: Context, plugins: Plugins) -> dict[str, bool | int | float | str]:
    """Return the numbers of what the target's own runtime builds of a text; nothing where it cannot build here.

    Parameters
    ----------
    lowered
        The note ``"lowered"`` of a plan.
    ctx, plugins
        What it is compiled for. No device is asked.
    """
    adapter = next(iter(plugins.runtimes(ctx.target)), None)
    if not isinstance(lowered, KernelText) or adapter is None or type(adapter).build is RuntimeAdapter.build:
        return {}
    built = lowered.built
    if built is None or built.runtime != adapter.name:
        try:
            built = adapter.build(lowered) if adapter.toolchain() else None
        except TileError:
            # A report is about the passes; who runs the kernel is told why it cannot be built.
            built = None
    return {} if built is None else dict(built.facts)
