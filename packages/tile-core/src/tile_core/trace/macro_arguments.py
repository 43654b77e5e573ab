"""Binding of macro parameters to arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from tile_core.trace.assign import read, settled
from tile_core.values.types import Ref
from tile_core.values.value import Value


def bound_arguments(
    fn: Callable[..., object], args: tuple[object, ...], keywords: Mapping[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments of a macro call, each evaluated once."""
    names = list(inspect.signature(fn).parameters)
    names += [names[-1]] * (len(args) - len(names)) if names else ["arg"] * len(args)
    notes = getattr(fn, "__annotations__", {})
    new = tuple(_bound(n, notes.get(n), a) for n, a in zip(names, args))  # noqa: B905 - Python reports too many
    return new, {k: _bound(k, notes.get(k), v) for k, v in keywords.items()}


def _bound(name: str, note: object, argument: object) -> object:
    if note is Ref or note in ("T.Ref", "Ref"):
        return argument
    value = read(argument)
    if isinstance(value, Value) and value.element is None:
        return settled(name, value)
    return value
