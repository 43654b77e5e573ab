"""The toolchain's build of a kernel, if installed: binary statistics and build time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from tile_core.abi.adapter import Built, RuntimeAdapter
from tile_core.abi.kernel_text import KernelText
from tile_core.compat.types import Expr
from tile_core.errors import TileError
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.plugins.manager import Plugins


@dataclass(frozen=True)
class Building:
    """The facts of a build.

    Attributes
    ----------
    facts
        Statistics of the binary.
    steps
        The steps of the builder and their seconds; empty for a binary found on disk.
    """

    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    steps: Sequence[tuple[str, float]] = ()


def building(lowered: Expr, ctx: Context, plugins: Plugins) -> Building:
    """Build a plan with the target's own runtime; empty facts if impossible here.

    Parameters
    ----------
    lowered
        The plan's ``lowered``.
    ctx, plugins
        The target, and the backends. No device is queried.
    """
    adapter = next(iter(plugins.runtimes(ctx.target)), None)
    if adapter is None or lowered is None:
        return Building()
    try:
        if isinstance(lowered, KernelText):
            return _of_text(lowered, adapter)
        return Building(steps=tuple(adapter.build_steps(lowered)))
    except TileError:
        # A report is about the passes; running the kernel reports why it cannot be built.
        return Building()


def _of_text(lowered: KernelText, adapter: RuntimeAdapter) -> Building:
    built = lowered.built
    if isinstance(built, Built) and built.runtime == adapter.name:
        return Building(dict(built.facts))
    if type(adapter).build is RuntimeAdapter.build or not adapter.toolchain():
        return Building()
    begin = time.perf_counter()
    built = adapter.build(lowered)
    seconds = time.perf_counter() - begin
    return Building() if built is None else Building(dict(built.facts), ((adapter.name, seconds),))
