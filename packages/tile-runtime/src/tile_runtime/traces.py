"""Short tracebacks: errors leave the public functions without the frames inside of tile."""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import PurePath
from types import TracebackType
from typing import ParamSpec, TypeVar

from tile_runtime.compat.packages import PACKAGES
from tile_runtime.errors.base import InternalError, TileError
from tile_runtime.errors.plugins import InvalidKnob
from tile_runtime.knobs import current

P = ParamSpec("P")
R = TypeVar("R")

#: Packages whose frames do not show a line of a user's program.
_INTERNAL = PACKAGES | {"IPython", "pluggy", "tvm", "tvm_ffi"}


def shorten(error: TileError) -> None:
    """Remove internal frames from an error that a public function raises again.

    Defects of tile keep all frames, and so do all errors with the setting ``full_traceback``.
    """
    if not _is_kept(error):
        for one in _chain(error):
            one.__traceback__ = of_user(one.__traceback__)


def short_traces(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function whose errors have no internal frames but one."""

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return function(*args, **keywords)
        except TileError as error:
            shorten(error)
            raise error

    return called


def rendered(error: TileError) -> list[str]:
    """Return the lines that IPython shows for an uncaught error."""
    shorten(error)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    for file in {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}:
        cell = cell_of(file)
        if cell is not None:
            text = text.replace(f'File "{file}", line', f"{cell}, line").replace(file, cell)
    return text.splitlines()


def short_name(file: str) -> str:
    """Return the name of a file without its folder, or IPython's name of a cell."""
    return cell_of(file) or PurePath(file).name


def cell_of(file: str) -> str | None:
    """Return IPython's name of a cell; ``None`` for other files."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(file)
    return None if named is None else " ".join(named)


TileError._render_traceback_ = rendered  # type: ignore[attr-defined]


def of_user(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of tile and of its libraries."""
    found: TracebackType | None = None
    for one in reversed(list(_frames(trace))):
        if str(one.tb_frame.f_globals.get("__name__", "")).partition(".")[0] not in _INTERNAL:
            found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_kept(error: TileError) -> bool:
    with contextlib.suppress(InvalidKnob):  # which the next compilation reports
        return isinstance(error, InternalError) or current().full_traceback
    return False


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error with its causes and contexts."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is seen for seen in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found
