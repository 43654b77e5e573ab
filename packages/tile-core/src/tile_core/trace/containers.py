"""Detect changes of Python containers during a block that is traced once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from tile_core.errors.language import ChangedInBlock

_CONTAINERS = (list, dict, set, deque)


class Containers:
    """A snapshot of the containers that are reachable from names.

    Parameters
    ----------
    names
        The names of the running function, with those of its closure.
    """

    def __init__(self, names: Mapping[str, object]) -> None:
        self._held: dict[int, tuple[str, object, tuple[object, ...]]] = {}
        for name, value in names.items():
            if isinstance(value, _CONTAINERS):
                self._add(name, value)

    def _add(self, name: str, container: object) -> None:
        if id(container) in self._held:
            return
        items = tuple(_items(container))
        self._held[id(container)] = (name, container, items)
        for item in items:
            if isinstance(item, _CONTAINERS):
                self._add(name, item)

    def check(self, kind: str) -> None:
        """Refuse changes: the block runs never or often, and Python changed the container once.

        Raises
        ------
        ChangedInBlock
            Naming the container.
        """
        for name, container, before in self._held.values():
            after = tuple(_items(container))
            if len(after) != len(before) or any(a is not b for a, b in zip(after, before, strict=True)):
                raise ChangedInBlock(name=name, type=type(container).__name__, kind=kind)


def _items(container: object) -> Iterator[object]:
    if isinstance(container, dict):
        for key, value in container.items():
            yield key
            yield value
    elif isinstance(container, (list, set, deque)):
        yield from container
