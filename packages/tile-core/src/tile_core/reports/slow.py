"""Products that a device computes in plain loops although it has something better: said once, never silent."""

from __future__ import annotations

import warnings
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import Choice
    from tile_core.passes.spine import Plan

#: Ops for which a device has units of their own; without these they are many times slower.
PRODUCTS = frozenset({"gemm", "gemm_sp", "fp8_scaled_matmul"})

_said: set[str] = set()


class SlowPath(UserWarning):
    """A kernel computes what it should, far slower than its target could."""


def slow_ops(plan: Plan, ctx: Context) -> tuple[str, ...]:
    """Return a sentence for each product that is lowered the slow way, which is always there, without being asked to.

    Parameters
    ----------
    plan
        A plan whose variants are chosen.
    ctx
        The compilation's context. Targets without lanes compute everything in plain loops: nothing is said.
    """
    if ctx.capabilities.execution_width is None:
        return ()
    return tuple(dict.fromkeys(_sentence(choice) for choice in plan.choices if _is_slow(choice)))


def warn_of_slow(plan: Plan, ctx: Context) -> None:
    """Warn of each of these ops, once per process."""
    for sentence in slow_ops(plan, ctx):
        if sentence not in _said:
            _said.add(sentence)
            warnings.warn(f"{plan.program.name} for {ctx.target.text}: {sentence}", SlowPath, stacklevel=7)


def _is_slow(choice: Choice) -> bool:
    selection = choice.selection
    return choice.call.name in PRODUCTS and selection.variant.fallback and not selection.forced


def _sentence(choice: Choice) -> str:
    call, selection = choice.call, choice.selection
    place = "" if call.where is None else f" ({PurePath(call.where.file).name}:{call.where.line})"
    why = "; ".join(f"{name}: {reason}" for name, reason in selection.rejected) or "the target has nothing better"
    return f"{call.name}{place} takes the slow way {selection.variant.name}, because {why}"
