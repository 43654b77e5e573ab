"""Kernels of the zoo as texts, and texts run by the emulator on a case's arguments."""

from __future__ import annotations

import functools
from typing import Any

from zoo import launch
from zoo.case import Case

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.context import Context
from tile_core.plugins.contexts import make_context
from tile_metal.emulation import dialect

from .table import BY_NAME

METAL = "metal:metal3"
METAL4 = "metal:metal4"
ORDERS: tuple[dict[str, Any], ...] = ({}, {"order": "reverse"}, {"order": "random", "seed": 5})
"""In which order threads run: the first, the last, or any of those that can."""


@functools.cache
def context(target: str = METAL) -> Context:
    """Return the context of a target."""
    return make_context(target)


@functools.cache
def case_of(name: str) -> Case:
    """Return the case of a kernel of the zoo; its arguments are copied for every run."""
    return BY_NAME[name].make()


@functools.cache
def text_of(name: str, target: str = METAL) -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    return launch.text_for(case_of(name), context(target))


def run(case: Case, text: KernelText, target: str = METAL, **how: Any) -> tile_emulator.RunResult:
    """Run a text on copies of a case's arguments."""
    values = launch.values_of(case, text)
    return tile_emulator.run(text.text, text.facts, values, dialect(context(target).target), **how)
