"""Warnings about avoidable costs, each given once: products in plain loops or in a row, spills, much memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan

#: Ops for which devices have dedicated units; without these they are many times slower.
PRODUCTS = frozenset({"gemm", "gemm_sp", "gemm_scaled", "fp8_scaled_matmul"})

_SPILLS, _SET_ASIDE = "spills", "sets aside"
_said: set[str] = set()


class SlowPath(UserWarning):
    """A kernel is correct, but far slower than its target allows."""


class Spills(SlowPath):
    """A kernel spills registers to memory."""


class TakesMemory(SlowPath):
    """A launch of a kernel takes much of the device's memory."""


def slow_code(built: Mapping[str, object]) -> tuple[str, ...]:
    """Return a sentence for each way in which a binary is slow.

    Parameters
    ----------
    built
        The toolchain's statistics (``Built.facts``): ``spill_bytes`` and ``registers`` of a thread, and
        ``serialized_products``, which should be 0.
    """
    found = []
    size, registers = built.get("spill_bytes"), built.get("registers")
    if isinstance(size, int) and size:
        held = f" beside its {registers} registers" if isinstance(registers, int) else ""
        found.append(
            f"every thread keeps {size:,} bytes in memory{held} ({_SPILLS}); use more threads, or smaller tiles"
        )
    if built.get("serialized_products"):
        found.append("the assembler makes each asynchronous product wait for the one before; use smaller tiles")
    return tuple(found)


def warn_of_slow_code(kernel: str, target: str, built: Mapping[str, object], stacklevel: int = 2) -> None:
    """Warn of these, once per process and kernel."""
    for sentence in slow_code(built):
        text = f"{kernel} for {target}: {sentence}"
        if text not in _said:
            _said.add(text)
            warnings.warn(text, Spills if _SPILLS in sentence else SlowPath, stacklevel=stacklevel)


def slow_ops(plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each product that is lowered by the slow fallback without being requested to.

    And what the backend says about the kernel.

    Parameters
    ----------
    plan
        A plan whose variants are chosen.
    """
    return tuple(dict.fromkeys([*(_sentence(choice) for choice in plan.choices if _is_slow(choice)), *plan.slow]))


def warn_of_slow(plan: Plan, ctx: Context) -> None:
    """Warn of each of these ops, once per process and kernel."""
    for sentence in slow_ops(plan):
        text = f"{plan.program.name} for {ctx.target.text}: {sentence}"
        if text not in _said:
            _said.add(text)
            category = TakesMemory if _SET_ASIDE in sentence else SlowPath
            warnings.warn(text, category, stacklevel=6)


def _is_slow(choice: OpChoice) -> bool:
    selection = choice.selection
    return choice.call.name in PRODUCTS and selection.variant.fallback and not selection.forced


def _sentence(choice: OpChoice) -> str:
    call, selection = choice.call, choice.selection
    place = "" if call.where is None else f" ({PurePath(call.where.file).name}:{call.where.line})"
    why = "; ".join(f"{name}: {reason}" for name, reason in selection.rejected) or "the target has nothing better"
    return f"{call.name}{place} takes the slow way {selection.variant.name}, because {why}"
