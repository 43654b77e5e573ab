"""Compile operands of a tile call, and bind them to memory at execution."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.ir.attributes import Attrs
from tile_core.ops.base import View
from tile_core.records import dataclass
from tile_core.reference.expressions import compile_expression
from tile_core.reference.ops.regions import MemoryRegion
from tile_core.reference.scope import CompileScope
from tile_core.reference.state import State


@dataclass(frozen=True)
class BoundCall:
    """A tile call whose operands are known.

    Attributes
    ----------
    args
        ``MemoryRegion`` for regions, values for others.
    types
        Element types of the operands.
    attrs
        Compile-time arguments.
    where
        The user's line.
    """

    args: tuple[Any, ...]
    types: tuple[str, ...]
    attrs: Attrs = field(default_factory=dict)
    where: Where | None = None


class RegionOperand:
    """A region operand: a buffer by number, and functions for its corner and extents."""

    def __init__(self, view: View, scope: CompileScope) -> None:
        self.number, self.dtype, self.where = scope.buffer(view.buffer), view.dtype, scope.where
        self.mins = [compile_expression(m, scope) for m in view.mins]
        self.extents = [compile_expression(e, scope) for e in view.extents]

    def corner(self, state: State) -> list[Array]:
        """Return the corner, whose entries may differ between lanes."""
        return [m(state) for m in self.mins]

    def bound(self, state: State) -> MemoryRegion | None:
        """Return the region, or ``None`` if it is not the same memory for all lanes."""
        home = state.memories[self.number].root.home
        corner, extents = self.corner(state), [e(state) for e in self.extents]
        if (home is not None and home.count > 1) or any(isinstance(x, np.ndarray) for x in (*corner, *extents)):
            return None
        mins, sizes = tuple(int(m) for m in corner), tuple(int(e) for e in extents)
        return MemoryRegion(state, self.number, mins, sizes, self.dtype, self.where)
