"""``name=value`` on the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tile_core.errors.cli import BadPair

_WORDS = {"true": True, "false": False, "none": None}


def pairs(option: str, given: Iterable[str] | None, example: str) -> dict[str, object]:
    """Read ``name=value`` texts.

    Parameters
    ----------
    option
        The option's name, for messages.
    given
        The texts; a later one of the same name counts.
    example
        A pair that would be right, for messages.

    Returns
    -------
    dict
        Python literals (``128``, ``1e-3``, ``True``, ``(64, 32)``) as values, ``true``, ``false`` and ``none`` in any
        case as their values, anything else as text.

    Raises
    ------
    BadPair
        If a text has no ``=`` or no name.
    """
    found: dict[str, object] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals or not name.isidentifier():
            raise BadPair(option=option, found=text, example=example)
        found[name] = value_of(value.strip())
    return found


def value_of(text: str) -> object:
    """Return the value that a text stands for, see `pairs`."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
