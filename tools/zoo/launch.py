"""Common parts of zoo runs: texts, arguments by name, and errors of results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.compiler import lower
from tile_core.context import Context
from tile_core.dtypes import DTYPES
from tile_core.plugins.manager import installed

from .case import Case


def lowered(program: Any, context: Context) -> KernelText:
    """Return the text of a program."""
    found: KernelText = lower(program, context, installed()).lowered
    return found


def text_for(case: Case, context: Context) -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    found = lowered(case.program, context)
    values = values_of(case, found)
    if any(values[param] % by for param, by in found.facts.divides.items()):
        assert found.general is not None
        general = found.general()
        assert general is not None, "a case whose sizes a kernel refuses has no text"
        return general
    return found


def values_of(case: Case, text: KernelText) -> dict[str, Any]:
    """Return the arguments by their names in the text: arrays, then symbols."""
    symbols: dict[str, int] = {}
    for param, value in zip(case.program.params, case.args, strict=True):
        for dim, extent in zip(param.shape or (), np.shape(value), strict=False):
            if isinstance(dim, str):
                symbols[dim] = extent
    names = [p.name for p in text.facts.given]
    facts = zip(text.facts.params, case.args, strict=False)
    values = {p.name: _stored(v, p.dtype) if p.kind == "pointer" else v for p, v in facts}
    return values | {name: symbols[name] for name in names[len(case.args) :]}


def _stored(array: Any, dtype: str) -> Any:
    """Return an array in the text's types: integers for floats without a type."""
    return array.view(dtype) if array.dtype.itemsize * 8 == DTYPES[dtype].bits else array


def wrong(case: Case, text: KernelText, result: tile_emulator.RunResult) -> list[str]:
    """Return the differences from NumPy, one line per array."""
    found = []
    for wanted in case.wanted:
        given, name = case.args[wanted.index], text.facts.params[wanted.index].name
        got = result.outputs[name].view(given.dtype).reshape(given.shape)
        if not wanted.holds(got):
            found.append(f"{name}: error {wanted.error(got):.3g}, allowed {wanted.tolerance:.3g}")
    return found


def edited(text: KernelText, new: str) -> KernelText:
    """Return another text with the facts of a kernel."""
    return dataclasses.replace(text, text=new, general=None)
