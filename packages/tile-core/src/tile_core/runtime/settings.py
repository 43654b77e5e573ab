"""Checks of the arguments of the package's own functions: programs, paths, counts, tolerances."""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.errors.launch import BadSetting
from tile_core.values.checks import python_int, shown

if TYPE_CHECKING:
    from tile_core.ir.program import Program

#: Upper limit on launches.
_MOST = 10**6


def program_of(function: str, x: object) -> Program:
    """Return a traced program.

    Raises
    ------
    BadSetting
        If it is something else. An object whose type has a method ``instead_of_program`` words the remedy.
    """
    from tile_core.ir.program import Program

    if isinstance(x, Program):
        return x
    instead = "decorate the kernel with @T.prim_func"
    if (remedy := getattr(type(x), "instead_of_program", None)) is not None:
        instead = remedy(x)
    elif isinstance(x, types.FunctionType):
        instead += f", or call the factory that makes it: {function}({call_text(x)})"
    raise _bad(function, "program", x, "what @T.prim_func returns", instead)


def call_text(function: Callable[..., object], attribute: str = "") -> str:
    """Return the text of a call with the arguments that have no defaults."""
    given = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return f"{function.__name__}{attribute}({', '.join(f'{name}=...' for name in given)})"


def path_of(function: str, name: str, x: object) -> Path:
    """Return a path."""
    if not isinstance(x, (str, os.PathLike)):
        raise _bad(function, name, x, "a path", "pass text or a pathlib.Path")
    if "\0" in os.fsdecode(x):
        raise _bad(function, name, x, "a path", "leave out the null character")
    return Path(os.fsdecode(x))


def text_of(function: str, name: str, x: object) -> str:
    """Return a name."""
    if not isinstance(x, str):
        raise _bad(function, name, x, "text", "pass a name in quotes")
    return x


def count_of(function: str, name: str, x: object, low: int) -> int:
    """Return a number of launches."""
    number = python_int(x)
    if number is None or not low <= number <= _MOST:
        raise _bad(function, name, x, f"an int from {low} to {_MOST}", f"nearest legal value: {low}")
    return number


def tolerance_of(function: str, name: str, x: object) -> float | None:
    """Return a tolerance; ``None`` means that of the element type."""
    if x is None:
        return None
    if not isinstance(x, (int, float)) or isinstance(x, bool) or not 0 <= x < float("inf"):
        raise _bad(function, name, x, "a number of at least 0", "leave it out for the tolerance of the element type")
    return float(x)


def _bad(function: str, name: str, x: object, expected: str, instead: str) -> BadSetting:
    return BadSetting(function=function, name=name, found=shown(x), expected=expected, instead=instead)
