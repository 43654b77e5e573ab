"""Lower a program, run its text, and return its outputs; every fault raises."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from zoo import launch
from zoo.case import Case

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.plugins.contexts import make_context
from tile_metal.emulation import dialect

TARGETS = ("metal:metal3", "metal:metal4")


@functools.cache
def context(target: str) -> Any:
    return make_context(target)


def text(program: Any, target: str = TARGETS[0]) -> KernelText:
    """Return the text of a program."""
    return launch.lowered(program, context(target))


def right(program: Any, *args: Any, target: str = TARGETS[0], **how: Any) -> tuple[KernelText, dict[str, Any]]:
    """Return the text for a call's arguments, and its outputs in the caller's types."""
    case = Case(program, args, ())
    found = launch.text_for(case, context(target))
    result = tile_emulator.run(
        found.text, found.facts, launch.values_of(case, found), dialect(context(target).target), **how
    )
    assert result.ok, "\n".join(map(str, result.reports))
    given = {p.name: v for p, v in zip(found.facts.params, args, strict=False)}
    return found, {name: out.view(given[name].dtype).reshape(given[name].shape) for name, out in result.outputs.items()}


def numbers(shape: tuple[int, ...], dtype: Any = "float16", seed: int = 1) -> Any:
    """Return small integers, whose products and totals are exact in every type."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)
