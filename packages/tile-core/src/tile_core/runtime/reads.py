"""The values that a trace can read, and whether they are what they were.

`Reads` holds places, such as a name of a module or an item of a list, with the objects found there. A kernel is valid
while each place holds the same object, or an equal scalar. `runtime/readable.py` finds the places.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any

from tile_core.runtime.freeze import freeze

#: Of a place that holds nothing.
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()

_Item = tuple[Mapping[str, object], str, object]
_Member = tuple[Callable[[Any], object], object, object, str]
_Content = tuple[Collection[object], tuple[object, ...], str]
_Absent = tuple[Mapping[str, object], frozenset[str]]


class Reads:
    """Placement and the objects in them.

    Attributes
    ----------
    complete
        Whether these are all places; otherwise there were too many of them.
    """

    def __init__(self) -> None:
        self.complete = True
        self.items: dict[tuple[int, str], _Item] = {}
        self.members: dict[tuple[int, str], _Member] = {}
        self.contents: dict[tuple[int, str], _Content] = {}
        self.values: dict[tuple[int, str], _Member] = {}
        self.absent: dict[int, _Absent] = {}
        self._flat: tuple[list[Any], ...] | None = None

    def __len__(self) -> int:
        return len(self.items) + len(self.members) + len(self.contents) + len(self.values) + len(self.absent)

    def item(self, mapping: Mapping[str, object], key: str) -> object:
        """Add an item of a dictionary of attributes and return it, or ``MISSING``."""
        found = mapping.get(key, MISSING)
        self.items.setdefault((id(mapping), key), (mapping, key, found))
        return found

    def member(self, read: Callable[[Any], object], thing: object, name: str) -> object:
        """Add what a function reads of an object and return it, or ``MISSING``."""
        found = read(thing)
        self.members.setdefault((id(thing), name), (read, thing, found, name))
        return found

    def value(self, read: Callable[[Any], object], thing: object, name: str) -> None:
        """Add what a function makes of an object, which is compared by ``==``."""
        self.values.setdefault((id(thing), name), (read, thing, read(thing), name))

    def content(self, view: Collection[object], thing: object, name: str) -> None:
        """Add the elements of a collection."""
        self.contents.setdefault((id(thing), name), (view, tuple(view), name))

    def lacking(self, mapping: Mapping[str, object], names: frozenset[str]) -> None:
        """Add names that are no keys of a dictionary of attributes."""
        before = self.absent.get(id(mapping), (mapping, frozenset()))[1]
        self.absent[id(mapping)] = (mapping, before | (names - mapping.keys()))

    def joined(self, after: Reads) -> Reads:
        """Return these locations as they were, with those found after a trace."""
        made = Reads()
        made.complete = self.complete and after.complete
        made.items = {**after.items, **self.items}
        made.members = {**after.members, **self.members}
        made.contents = {**after.contents, **self.contents}
        made.values = {**after.values, **self.values}
        made.absent = dict(after.absent)
        for mapping, names in self.absent.values():
            known = made.absent.get(id(mapping), (mapping, frozenset()))[1]
            made.absent[id(mapping)] = (mapping, known | names)
        return made

    def changed(self) -> str | None:
        """Return the name of a place that holds something else now, or ``None``."""
        items, members, contents, values, absent = self._flat or self._flattened()
        for at, (mapping, key, value) in enumerate(items):
            now = mapping.get(key, MISSING)
            if now is not value:
                if not same(now, value):
                    return key
                items[at] = (mapping, key, now)
        for at, (read, thing, value, name) in enumerate(members):
            now = read(thing)
            if now is not value:
                if not same(now, value):
                    return name
                members[at] = (read, thing, now, name)
        for at, (view, before, name) in enumerate(contents):
            if len(view) != len(before) or not all(map(is_, view, before)):
                elements = tuple(view)
                if not same(elements, before):
                    return name
                contents[at] = (view, elements, name)
        for read, thing, value, name in values:
            if read(thing) != value:
                return name
        for mapping, names in absent:
            if not mapping.keys().isdisjoint(names):
                return min(names & mapping.keys())
        return None if self.complete else "more than can be compared"

    def _flattened(self) -> tuple[list[Any], ...]:
        kinds = (self.items, self.members, self.contents, self.values)
        self._flat = (*(list(kind.values()) for kind in kinds), [a for a in self.absent.values() if a[1]])
        return self._flat


def same(one: object, other: object) -> bool:
    """Whether two objects are one, or equal scalars or tuples of such."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple) and type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    return is_scalar(one) and freeze(one) == freeze(other)


def is_scalar(value: object) -> bool:
    """Whether a value is an immutable one that holds no other objects."""
    numpy = sys.modules.get("numpy")
    return type(value) in SCALARS or (numpy is not None and isinstance(value, numpy.generic))


#: Types of such values, besides those of NumPy.
SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...)})


def attribute(name: str) -> Callable[[Any], object]:
    """Return a C function that reads an attribute of a function, cell or slot."""
    return _ATTRIBUTES.setdefault(name, functools.partial(_attribute, name))


def _attribute(name: str, thing: Any) -> object:
    try:
        return getattr(thing, name)
    except (AttributeError, ValueError):  # an empty cell
        return MISSING


_ATTRIBUTES: dict[str, Callable[[Any], object]] = {}
