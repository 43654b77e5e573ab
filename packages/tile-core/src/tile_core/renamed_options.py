"""Renamed options of backends: old names work for one minor version, with a warning."""

from __future__ import annotations

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")
_FIELD = "RENAMED_OPTIONS"
_NONE: Mapping[str, str] = MappingProxyType({})
_warned: set[tuple[type[Any], str]] = set()


class RenamedOption(DeprecationWarning):
    """An option is given by its old name."""


def renamed_options(**new: str) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass of options accept old names of its fields.

    Parameters
    ----------
    new
        The field, by old name.
    """

    def decorate(kind: type[T]) -> type[T]:
        names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
        if not names.issuperset(new.values()) or not names.isdisjoint(new):
            raise TypeError(f"old names of {kind.__name__} stand for its fields: {new}")
        made: Callable[..., None] = kind.__init__

        @functools.wraps(made)
        def init(self: T, *args: Any, **given: Any) -> None:
            made(self, *args, **current_names(kind, given))

        setattr(kind, _FIELD, MappingProxyType(new))
        kind.__init__ = init  # type: ignore[method-assign, assignment]
        return kind

    return decorate


def renamed_of(kind: type[Any] | None) -> Mapping[str, str]:
    """Return the current name of each renamed option, by old name."""
    found: Mapping[str, str] = getattr(kind, _FIELD, _NONE)
    return found


def current_names(kind: type[Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by their current names; warn of each old name once per process.

    Parameters
    ----------
    kind
        The backend's options type.
    given
        Values by old or current name; other names stay.

    Raises
    ------
    ValueError
        If an option is given by both names.
    """
    new = renamed_of(kind)
    old = [name for name in given if name in new] if new else []
    for name in old:
        if new[name] in given or sum(new[n] == new[name] for n in old) > 1:
            raise ValueError(f"{new[name]} only: option {name} is now {new[name]}")
        if kind is not None and (kind, name) not in _warned:
            _warned.add((kind, name))
            warnings.warn(f"option {name} is now {new[name]}", RenamedOption, stacklevel=_depth())
    return {new.get(name, name): value for name, value in given.items()}


def _depth() -> int:
    """Return the ``stacklevel`` of the innermost caller outside tile's packages."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("tile_"):
        frame, depth = frame.f_back, depth + 1
    return depth
