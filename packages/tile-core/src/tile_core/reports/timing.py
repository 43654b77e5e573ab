"""Timing of the passes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tile_core.errors import TileError

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.passes.spine import Plan
    from tile_core.plugins.manager import Plugins


def timed(program: Program, ctx: Context, plugins: Plugins) -> Plan:
    """Run all passes of a target and record the time of each.

    Raises
    ------
    TileError
        The refusal of a pass, at the kernel's line.
    """
    from tile_core.passes.spine import SPINE, Plan

    seconds: list[tuple[str, float]] = []
    last = time.perf_counter()

    def watch(name: str, plan: Plan) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds.append((name, now - last))
        last = now

    spine = plugins.pipeline(ctx.target, SPINE)
    plan = Plan.of(program, plugins.lowerings(ctx.target))
    last = time.perf_counter()
    try:
        plan = spine.run(plan, ctx, watch)
    except TileError as error:
        raise error.at(program.where) from error.__cause__
    return plan.replace(seconds=tuple(seconds))
