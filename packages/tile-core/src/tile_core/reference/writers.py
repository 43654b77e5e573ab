"""Which statement of a program, in which block, wrote an element of a parameter last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.records import dataclass
from tile_core.reference.nonfinite import block_of, block_text
from tile_core.reference.observe import Observer, Site

if TYPE_CHECKING:
    from tile_core.reference.state import State

__all__ = ["WrittenBy", "Writers"]


@dataclass(frozen=True)
class WrittenBy:
    """The statement that wrote an element.

    Attributes
    ----------
    where
        The user's line.
    block
        Indices of the block.
    """

    where: Where | None
    block: tuple[int, ...]

    def __str__(self) -> str:
        line = "" if self.where is None else f" in line {self.where.line}"
        return f"written by block {block_text(self.block)}{line}"


class Writers(Observer):
    """Finds the last statement that changed each of some elements.

    Parameters
    ----------
    elements
        An index by the position of a parameter.

    Attributes
    ----------
    found
        By position, for the elements that the program changed.
    """

    def __init__(self, elements: Mapping[int, tuple[int, ...]]) -> None:
        self.elements = elements
        self.found: dict[int, WrittenBy] = {}
        self._bits: dict[int, bytes] = {}
        self._roots: dict[int, int] = {}

    def start(self, compiled: Any, state: State) -> None:
        """Read the elements before the launch."""
        scope = compiled.scope
        self._base, self._numbers = scope.base, {n: compiled.params[n][1] for n in self.elements}
        for n in self.elements:
            self._bits[n] = self._read(state, n)

    def after(self, state: State, site: Site) -> None:
        """Compare the elements of what a statement may have written."""
        bases = {self._base[number] for number in site.writes}
        for n, number in self._numbers.items():
            if number in bases:
                now = self._read(state, n)
                if now != self._bits[n]:
                    self._bits[n], self.found[n] = now, WrittenBy(site.where, block_of(state))

    def _read(self, state: State, position: int) -> bytes:
        memory = state.memories[self._numbers[position]]
        index = self.elements[position]
        element: Array = (
            memory.flat[memory.table.reshape(memory.shape)[index]]
            if memory.table is not None
            else (memory.block[index])
        )
        return np.asarray(element).tobytes()
