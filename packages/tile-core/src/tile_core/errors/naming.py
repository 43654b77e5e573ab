"""Make errors name the function that the user called, not one it is built on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from tile_core.errors.base import TileError

P = ParamSpec("P")
R = TypeVar("R")
_FACTS = ("op", "function", "loop")
"""Facts that name a function of ``T``, with ``T.`` in the template or in the fact."""
_TEXTS = {"what": re.compile(r"T\.\w+$"), "found": re.compile(r"T\.\w+(?=:)")}
"""Facts that begin with a function of ``T``, and the pattern of that prefix."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Make errors raised inside name ``T.<name>``; also a decorator."""
    try:
        yield
    except TileError as error:
        for fact in _FACTS:
            begun = str(error.facts.get(fact)).startswith("T.")
            if begun or f"T.{{{fact}}}" in error.template:
                error.facts[fact] = f"T.{name}" if begun else name
        for fact, pattern in _TEXTS.items():
            text = error.facts.get(fact)
            if isinstance(text, str):
                error.facts[fact] = pattern.sub(f"T.{name}", text) if pattern.match(text) else text
        error.args = (error.message,)
        raise


def alias(name: str, function: Callable[P, R]) -> Callable[P, R]:
    """Return a function under another name of ``T``, also in errors and documentation."""

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            with naming(name):
                return function(*args, **keywords)
        except TypeError as error:
            text, own = str(error), f"{function.__name__}() "
            if not text.startswith(own):
                raise
            raise TypeError(f"{name}() {text.removeprefix(own)}") from None

    called.__name__ = called.__qualname__ = name
    return called
