"""Kernels of the zoo as texts, and texts run by the emulator on a case's arguments."""

from __future__ import annotations

import functools
from typing import Any

from zoo import launch
from zoo.case import Case

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.plugins.contexts import make_context
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .table import BY_NAME


@functools.cache
def case_of(name: str) -> Case:
    """Return the case of a kernel of the zoo; its arguments are copied for every run."""
    return BY_NAME[name].make()


def lowered(program: Any, arch: str = "sm_80") -> KernelText:
    """Return the text of a program."""
    return launch.lowered(program, make_context(f"cuda:{arch}"))


@functools.cache
def text_of(name: str, arch: str = "sm_80") -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    return launch.text_for(case_of(name), make_context(f"cuda:{arch}"))


def run(case: Case, text: KernelText, arch: str = "sm_80", **how: Any) -> tile_emulator.RunResult:
    """Run a text on copies of a case's arguments."""
    how = {"completion": "late", **how}
    return tile_emulator.run(text.text, text.facts, launch.values_of(case, text), dialect_of(Arch.of(arch)), **how)
