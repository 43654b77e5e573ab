"""Variables and buffers by index, resolved once when a body is prepared."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from machine.values import element_of
from tile_core.compat.types import Array, BufferVar, Expr, Var
from tile_core.ir import nodes
from tile_core.records import dataclass

__all__ = ["Held", "Numbers", "Region"]


@dataclass(frozen=True)
class Region:
    """The static facts of a buffer.

    Attributes
    ----------
    private
        Whether every thread has one of its own.
    """

    number: int
    name: str
    kind: Any
    private: bool


class Numbers:
    """Numbers of variables and buffers, in the order in which they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[Expr, int] = {}
        self._regions: dict[int, Region] = {}

    def __getitem__(self, var: Var) -> int:
        return self._numbers.setdefault(var, len(self._numbers))

    def region(self, buffer: BufferVar) -> Region:
        """Return the static facts of a buffer."""
        number = self[buffer]
        found = self._regions.get(number)
        if found is None:
            private = bool(nodes.scope_of(buffer).startswith("local"))
            found = self._regions[number] = Region(number, str(buffer.name), element_of(buffer), private)
        return found


class Held(MutableMapping[Any, Any]):
    """The storage of variables or buffers.

    Attributes
    ----------
    held
        The same by number.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers, self._keys = numbers, dict[int, Any]()
        self.held: dict[int, Any] = {}

    def __getitem__(self, var: BufferVar) -> Array:
        return self.held[self._numbers[var]]

    def __setitem__(self, var: Var, value: Array) -> None:
        number = self._numbers[var]
        self.held[number], self._keys[number] = value, var

    def __delitem__(self, var: Any) -> None:
        del self.held[self._numbers[var]]

    def __iter__(self) -> Iterator[Any]:
        return (self._keys[number] for number in self.held if number in self._keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)
