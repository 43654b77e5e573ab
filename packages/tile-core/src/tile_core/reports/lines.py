"""The user's lines that a report is about."""

from __future__ import annotations

import inspect
import linecache
import tokenize
from collections.abc import Iterable

from tile_core.errors import Where
from tile_core.records import dataclass


@dataclass(frozen=True)
class SourceLine:
    """A line of a file; ``location`` is ``file:line``."""

    location: str
    text: str


def source_of(where: Where | None, locations: Iterable[str]) -> tuple[SourceLine, ...]:
    """Return the lines of a function, and of locations outside of it.

    Parameters
    ----------
    where
        The line of its ``def``.
    locations
        Other lines, as ``file:line``; empty texts are left out.
    """
    found = dict(_definition(where)) if where is not None else {}
    for location in sorted(dict.fromkeys(locations), key=_by_line):
        file, _, number = location.rpartition(":")
        if file and location not in found:
            found[location] = linecache.getline(file, int(number)).rstrip()
    return tuple(SourceLine(location, text) for location, text in found.items())


def _definition(where: Where) -> Iterable[tuple[str, str]]:
    lines, first = linecache.getlines(where.file), where.line - 1
    while 0 < first < len(lines) and lines[first - 1].lstrip().startswith("@"):
        first -= 1
    try:
        block = inspect.getblock(lines[first:])
    except (SyntaxError, tokenize.TokenError):  # the file has changed
        block = []
    return ((f"{where.file}:{first + 1 + n}", text.rstrip()) for n, text in enumerate(block))


def _by_line(location: str) -> tuple[str, int]:
    file, _, number = location.rpartition(":")
    return file, int(number) if number.isdigit() else 0
