"""Renamed and merged options: old names work for one minor version, with a warning."""

from __future__ import annotations

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
_FIELD = "RENAMED_OPTIONS"
_warned: set[tuple[type[Any], str]] = set()


class Merged(NamedTuple):
    """The field that replaces several options.

    Attributes
    ----------
    field
        Its name.
    value
        From the old option's value to the field's; ``None`` leaves the field at its default.
    order
        Values of the field: the last one applies if several old options are given.
    """

    field: str
    value: Callable[[Any], Any]
    order: Sequence[Any]


Replacement: TypeAlias = "str | Merged"
_NONE: Mapping[str, Replacement] = MappingProxyType({})


class RenamedOption(DeprecationWarning):
    """An option is given by its old name."""


def renamed_options(**new: Replacement) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass of options accept old names of its fields.

    Parameters
    ----------
    new
        The field, by old name.
    """

    def decorate(kind: type[T]) -> type[T]:
        names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
        if not names.issuperset(map(_field, new.values())) or not names.isdisjoint(new):
            raise TypeError(f"old names of {kind.__name__} stand for its fields: {new}")
        made: Callable[..., None] = kind.__init__

        @functools.wraps(made)
        def init(self: T, *args: Any, **given: Any) -> None:
            made(self, *args, **current_names(kind, given))

        setattr(kind, _FIELD, MappingProxyType(new))
        kind.__init__ = init  # type: ignore[method-assign, assignment]
        return kind

    return decorate


def renamed_of(kind: type[Any] | None) -> Mapping[str, Replacement]:
    """Return the replacement of each old option, by old name."""
    found: Mapping[str, Replacement] = getattr(kind, _FIELD, _NONE)
    return found


def current_names(kind: type[Any] | None, given: Mapping[str, Any], *, warn: bool = True) -> dict[str, Any]:
    """Return options by their current names; warn of each old name once per process.

    Parameters
    ----------
    kind
        The backend's options type.
    given
        Values by old or current name; other names stay.
    warn
        Whether to warn.

    Raises
    ------
    ValueError
        If an option is given by both names.
    """
    new = renamed_of(kind)
    old = [name for name in given if name in new] if new else []
    found = {name: value for name, value in given.items() if name not in old}
    for name in old:
        instead, field = new[name], _field(new[name])
        others = [n for n in old if n != name and _field(new[n]) == field and not isinstance(instead, Merged)]
        if field in given or others:
            raise ValueError(f"{field} only: option {name} is now {field}")
        value = instead.value(given[name]) if isinstance(instead, Merged) else given[name]
        if warn and kind is not None and (kind, name) not in _warned:
            _warned.add((kind, name))
            stated = f"{field}={value!r}" if isinstance(instead, Merged) and value is not None else field
            warnings.warn(f"option {name} is now {stated}", RenamedOption, stacklevel=depth_of_caller())
        if not isinstance(instead, Merged):
            found[field] = value
        elif value is not None:
            found[field] = max(value, found.get(field, value), key=instead.order.index)
    return found


def _field(new: Replacement) -> str:
    return new.field if isinstance(new, Merged) else new


def depth_of_caller() -> int:
    """Return the ``stacklevel`` of the innermost caller outside tile's packages."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("tile_"):
        frame, depth = frame.f_back, depth + 1
    return depth
