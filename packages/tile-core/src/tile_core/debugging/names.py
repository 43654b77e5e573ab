"""The values of a program's names during an observed execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.reference.elements import decode

if TYPE_CHECKING:
    from tile_core.reference.memory import LaneMemory
    from tile_core.reference.observe import Site
    from tile_core.reference.state import State

__all__ = ["VisibleNames", "numbers_of"]


class VisibleNames:
    """The variables and tiles that a statement may use, with their present values.

    Parameters
    ----------
    state
        The execution.
    site
        The statement.
    types
        Types of variables by their number.
    """

    def __init__(self, state: State, site: Site, types: dict[int, str]) -> None:
        self.state, self.site, self._types = state, site, types

    def __iter__(self) -> Any:
        return iter(self.tiles + self.variables)

    @property
    def tiles(self) -> list[str]:
        """VisibleNames of the buffers that exist."""
        return [name for name, n in self.site.tiles.items() if self.state.memories[n] is not None]

    @property
    def variables(self) -> list[str]:
        """VisibleNames of the variables that have a value."""
        return [name for name, n in self.site.names.items() if self.state.values[n] is not None]

    def memory(self, name: str) -> LaneMemory | None:
        """Return the memory of a tile; ``None`` for other names."""
        number = self.site.tiles.get(name)
        return None if number is None else self.state.memories[number]

    def value(self, name: str) -> Array | None:
        """Return the numbers of a tile, or of a variable.

        A variable that differs between lanes is an array of these.
        """
        memory = self.memory(name)
        if memory is not None:
            return numbers_of(memory, self.state)
        number = self.site.names.get(name)
        value = None if number is None else self.state.values[number]
        return None if number is None or value is None else decode(value, self._types.get(number, ""))


def numbers_of(memory: LaneMemory, state: State) -> Array:
    """Return the numbers of a tile as an array of its shape.

    Private arrays of several threads have an axis more, in front. Of an array that the iterations of a parallel loop
    are writing, each element is that of the first iteration that wrote it.
    """
    root = memory.root
    if memory.table is not None:
        values = memory.flat[memory.table.reshape(memory.shape)]
    elif root.home is None or root.home.count == 1:
        values = memory.block.copy()
    else:
        slots = memory.flat[: root.home.count * memory.slot_size].reshape(root.home.count, memory.slot_size)
        if root.touched is None:
            values = slots.reshape(root.home.count, *memory.shape).copy()
        else:
            units = root.touched[: slots.size * memory.ratio].reshape(root.home.count, memory.slot_size, memory.ratio)
            first = units.any(axis=2).argmax(axis=0)
            values = slots[first, np.arange(memory.slot_size)].reshape(memory.shape)
    return np.asarray(decode(values, memory.dtype))
