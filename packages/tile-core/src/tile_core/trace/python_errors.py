"""Translation of Python's errors into errors about the kernel."""

from __future__ import annotations

import re
from types import FrameType

from tile_core.errors import TileError, Where
from tile_core.errors.language import PythonError
from tile_core.values.checks import arguments, unknown_keyword
from tile_core.vocabulary import word

_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")

_TAKES = re.compile(r"([\w.]+)\(\) (?:takes|missing) ")


def python_error(error: Exception, where: Where | None) -> TileError:
    """Return the catalogue's error for one that Python raised while a kernel's body ran."""
    fix: dict[str, str] = {}
    if isinstance(error, RecursionError):
        fix["fix"] = "what calls itself is traced without an end: write a loop, or end the recursion by a Python value"
    elif taken := _TAKES.match(str(error)) if isinstance(error, TypeError) else None:
        function = taken.group(1).removesuffix(".__init__")
        if arguments(function) and not _user_defines(function, _caller(error)):
            fix["fix"] = f"T.{function} takes {', '.join(arguments(function))}"
    detail = str(error) or "no message"
    return _keyword(error, where) or PythonError(kind=type(error).__name__, detail=detail, where=where, **fix)


def _keyword(error: Exception, where: Where | None) -> TileError | None:
    """Return the error for an unknown keyword of a language function, if this is one."""
    found = _KEYWORD.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return None
    function = found.group(1).removesuffix(".__init__")
    if not arguments(function) or _user_defines(function, _caller(error)):
        return None
    return unknown_keyword(function, found.group(2)).at(where)


def _user_defines(name: str, frame: FrameType | None) -> bool:
    """Whether, at the call, a user's function shadows one of the language."""
    named = frame is not None and (frame.f_locals.get(name) or frame.f_globals.get(name))
    return bool(named) and named is not word(name)


def _caller(error: BaseException) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame
