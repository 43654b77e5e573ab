"""Performance warnings, each given once: products in plain loops, spills, memory of launches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tile_core.passes.performance import Kind, PerformanceNote
from tile_core.renamed_options import depth_of_caller
from tile_runtime.traces import short_name

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan

#: Ops for which devices have dedicated units; without these they are many times slower.
PRODUCTS = frozenset({"gemm", "gemm_sp", "gemm_scaled", "fp8_scaled_matmul"})


class SlowPath(UserWarning):
    """A kernel is correct, but far slower than its target allows."""


class SlowFallback(SlowPath):
    """Plain loops compute a product, as every better variant rejects it."""


class SerialLoop(SlowPath):
    """One thread of a block writes many elements."""


class SlowTiles(SlowPath):
    """Other tiles are estimated to be much faster."""


class Spills(SlowPath):
    """A kernel spills registers to memory."""


class TakesMemory(SlowPath):
    """A launch of a kernel takes much of the device's memory."""


_CLASSES: Mapping[Kind, type[SlowPath]] = {
    "fallback": SlowFallback, "serial": SerialLoop, "tiles": SlowTiles, "spills": Spills, "memory": TakesMemory,
    "serialized": SlowPath,
}  # fmt: skip
_given: set[tuple[str, str, PerformanceNote]] = set()


def notes_of_build(built: Mapping[str, object]) -> tuple[PerformanceNote, ...]:
    """Return the performance notes of a binary.

    Parameters
    ----------
    built
        The toolchain's statistics (``Built.facts``): ``spill_bytes`` and ``registers`` of a thread, and
        ``serialized_products``, which should be 0.
    """
    found = []
    size, registers = built.get("spill_bytes"), built.get("registers")
    if isinstance(size, int) and size:
        beside = f" beside its {registers} registers" if isinstance(registers, int) else ""
        found.append(
            PerformanceNote(
                "spills", f"each thread spills {size:,} bytes to memory{beside}; use more threads, or smaller tiles"
            )
        )
    if built.get("serialized_products"):
        text = "the assembler makes each asynchronous product wait for the one before; use smaller tiles"
        found.append(PerformanceNote("serialized", text))
    return tuple(found)


def notes_of_plan(plan: Plan) -> tuple[PerformanceNote, ...]:
    """Return the performance notes of a kernel: fallbacks, and notes of passes.

    Parameters
    ----------
    plan
        A plan whose variants are chosen.
    """
    return tuple(dict.fromkeys([*(_fallback(choice) for choice in plan.choices if _is_slow(choice)), *plan.slow]))


def warn_of_build(kernel: str, target: str, built: Mapping[str, object]) -> None:
    """Warn of a slow binary, once per process and kernel."""
    _warn(kernel, target, notes_of_build(built))


def warn_of_plan(plan: Plan, ctx: Context) -> None:
    """Warn of a slow kernel, once per process and kernel."""
    _warn(plan.program.name, ctx.target.text, notes_of_plan(plan))


def _warn(kernel: str, target: str, notes: Iterable[PerformanceNote]) -> None:
    for note in notes:
        if (kernel, target, note) not in _given:
            _given.add((kernel, target, note))
            warnings.warn(f"{kernel} for {target}: {note.text}", _CLASSES[note.kind], stacklevel=depth_of_caller())


def _is_slow(choice: OpChoice) -> bool:
    selection = choice.selection
    return choice.call.name in PRODUCTS and selection.variant.fallback and not selection.forced


def _fallback(choice: OpChoice) -> PerformanceNote:
    call, selection = choice.call, choice.selection
    line = "" if call.where is None else f" ({short_name(call.where.file)}:{call.where.line})"
    reasons = "; ".join(f"{name}: {reason}" for name, reason in selection.rejected) or "no other variant on this target"
    return PerformanceNote("fallback", f"{call.name}{line} uses the fallback {selection.variant.name}; {reasons}")
