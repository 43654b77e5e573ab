"""Checks of compile-time arguments shared by several functions of the language."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from tile_core.errors.language import BadArgument, UnknownHint
from tile_core.values.foreign_names import KEYWORDS
from tile_runtime.errors.guess import hint


def hints(function: str, given: Mapping[str, object], known: Iterable[str]) -> dict[str, object]:
    """Return keywords of other dialects that only steer their compiler, without ``None``.

    Raises
    ------
    UnknownHint
        For any other keyword: a misspelt argument would be ignored.
    BadArgument
        For annotations that are not a dict with text as keys.
    """
    known = tuple(known)
    for name in given:
        if name not in known:
            raise unknown_keyword(function, name, known)
    notes = given.get("annotations")
    if notes is not None and not (isinstance(notes, Mapping) and all(isinstance(k, str) for k in notes)):
        expected, instead = "a dict with text as keys", "leave it out"
        raise argument(function, "annotations", shown(notes), expected, instead)
    return {k: v for k, v in given.items() if v is not None}


def no_loop_layout(function: str, layout: object) -> None:
    """Refuse a layout of iterations, which no target implements.

    Raises
    ------
    BadArgument
        If there is one.
    """
    if layout is not None:
        instead = "leave it out; T.annotate_layout({tile: T.Fragment(...)}) sets a layout that loops follow"
        raise argument(function, "loop_layout", shown(layout), "None: loops have no layout", instead)


def int_lists(function: str, name: str, given: object) -> list[list[int]]:
    """Return a hint that lists statements of a loop's body, alone or in groups.

    Raises
    ------
    BadArgument
        If it holds anything else than Python ints.
    """
    groups = [g if isinstance(g, (list, tuple)) else [g] for g in given] if isinstance(given, (list, tuple)) else None
    numbers = None if groups is None else [[python_int(n) for n in group] for group in groups]
    if numbers is None or any(n is None for group in numbers for n in group):
        raise argument(
            function, name, shown(given), "a list of ints, or of lists of them", "leave it out: it is a hint"
        )
    return [[n for n in group if n is not None] for group in numbers]


def unknown_keyword(function: str, name: str, hints: Iterable[str] = ()) -> UnknownHint:
    """Return the error of a keyword that a function of the language does not have.

    Parameters
    ----------
    hints
        Keywords that the function accepts in addition to its signature.
    """
    own = arguments(function)
    taken = f"T.{function} takes {', '.join(own)}" if own else "leave it out"
    meant = [k for k in KEYWORDS.get(name, ()) if k in own]
    instead = f"did you mean {meant[0]}=?" if meant else hint(name, [*hints, *own], taken, "{}=")
    return UnknownHint(function=function, name=name, instead=instead)


def arguments(function: str) -> list[str]:
    """Return the names of the arguments of a function of the language."""
    from tile_core.vocabulary import NAMES, word

    found = word(function) if function in NAMES else None
    if not callable(found):
        return []
    collected = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [n for n, p in inspect.signature(found).parameters.items() if p.kind not in collected]


def python_int(x: Any) -> int | None:
    """Return an integer of Python or NumPy as an int; ``None`` for bools and others."""
    if isinstance(x, bool) or type(x).__name__ == "bool_" or isinstance(x, type):
        return None
    if type(x).__module__.startswith("tile_core.values"):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def flag(function: str, name: str, x: object) -> bool:
    """Return a flag that is known while tracing: a bool, 0 or 1.

    Raises
    ------
    BadArgument
        For anything else; runtime values have no truth value yet.
    """
    if is_flag(x):
        return bool(x)
    raise BadArgument(
        function=function, name=name, found=shown(x), expected="True or False",
        instead="pass a Python bool, known while the kernel is traced",
    )  # fmt: skip


def argument(function: str, name: str, found: str, expected: str, instead: str) -> BadArgument:
    """Return the error of an argument that a function cannot use."""
    return BadArgument(function=function, name=name, found=found, expected=expected, instead=instead)


def is_flag(x: object) -> bool:
    """Whether an object is a bool, 0 or 1."""
    return isinstance(x, bool) or type(x).__name__ == "bool_" or (type(x) is int and x in (0, 1))


def truth(function: str, x: object) -> bool:
    """Return the truth value of a Python condition.

    Raises
    ------
    BadArgument
        If it is not a number: the truth value of other objects (a slice, a function) is hardly what was meant.
    """
    if isinstance(x, (bool, int, float)) or (hasattr(x, "item") and getattr(x, "shape", None) == ()):
        return bool(x)
    raise BadArgument(
        function=function, name="condition", found=shown(x), expected="a condition",
        instead="compare values, for example A[i] > 0",
    )  # fmt: skip


def shown(x: object) -> str:
    """Return the text of an object for messages: short, on one line."""
    if isinstance(x, (int, float, str, bytes, type(None))):
        text = repr(x) if not isinstance(x, int) or abs(x) < 10**20 else f"an int of {x.bit_length()} bits"
        return text if len(text) <= 60 else text[:57] + "..."
    return f"an object of type {type(x).__name__}"
