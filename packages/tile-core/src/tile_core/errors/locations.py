"""Give errors of declarations, outside kernels, the line of the user's code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TypeVar

from tile_core.errors.base import TileError, Where

_Function = TypeVar("_Function", bound=Callable[..., object])


def placed(function: _Function) -> _Function:
    """Give errors of a declaration the location of its caller."""

    @functools.wraps(function)
    def call(*args: object, **keywords: object) -> object:
        try:
            return function(*args, **keywords)
        except TileError as error:
            raise error.at(_caller()) from error.__cause__

    return call  # type: ignore[return-value]


def _caller() -> Where | None:
    """Return the innermost line outside this package; nothing for code without a file."""
    frame = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(("tile_core.", "tile_runtime.")):
            file = frame.f_code.co_filename
            return None if file == "<string>" else Where(file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None
