"""User names in messages: the IR distinguishes variables of one name by numbers."""

from __future__ import annotations

import functools
import linecache
import re

from tile_core.errors import Where

_NUMBERED = re.compile(r"\b[A-Za-z_]\w*_\d+\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


def as_written(text: str, where: Where | None) -> str:
    """Return a message with ``i`` for the IR's ``i_2``, unless the user has that name.

    Parameters
    ----------
    text
        A message, or a part of one, about a program.
    where
        The user's line that it is about.
    """
    if where is None or not (source := tuple(linecache.getlines(where.file))):
        return text
    known = _names_in(source)

    def written(match: re.Match[str]) -> str:
        name = match.group(0)
        while name not in known and _NUMBERED.fullmatch(name):
            name = name.rpartition("_")[0]
        return name if name in known else match.group(0)

    return _NUMBERED.sub(written, text)


@functools.lru_cache(maxsize=4)
def _names_in(source: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for line in source for name in _NAME.findall(line))
