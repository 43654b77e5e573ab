"""Numbers of a loop's iterations, counted over all executions of the loop by a role.

Slots and phases of barriers continue where the previous execution of a loop has left them. The count is a multiple of
the number of the tile if each tile has the same trip count. Otherwise each role keeps it in a variable, modulo the
iterations after which slot and parity repeat, so that it never overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import nodes


@dataclass(frozen=True)
class IterationCount:
    """The number of a loop's first iteration, in one role.

    Attributes
    ----------
    first
        The number.
    made
        Statements before all executions of the loop.
    advanced
        Statements after each execution.
    """

    first: Expr
    made: tuple[Stmt, ...] = ()
    advanced: tuple[Stmt, ...] = ()

    def of(self, iteration: Expr) -> Expr:
        """Return the number of an iteration of this execution of the loop."""
        return self.first + nodes.cast(iteration, "int32")


def of_tiles(tile_iteration: Expr, trips: int) -> IterationCount:
    """Return the count of a loop that each tile executes equally often."""
    return IterationCount(tile_iteration * nodes.int_const(trips))


class KeptCount:
    """A count in a variable of a role.

    Parameters
    ----------
    name
        Of the variable.
    stages
        Slots of the loop.
    """

    def __init__(self, name: str, stages: int) -> None:
        self.period, self.at = 2 * stages, [nodes.int_const(0)]
        self.cell, allocate = nodes.alloc([1], "int32", name, "local")
        self.made = (allocate, nodes.store(self.cell, nodes.int_const(0), self.at))

    def of(self, trips: Expr) -> IterationCount:
        """Return the count of a loop with a trip count, which may be negative."""
        kind = nodes.dtype_of(trips)
        known = nodes.as_int(trips)
        count = trips if isinstance(known, int) else tirx.Max(trips, nodes.int_const(0, kind))
        more = nodes.cast(tirx.floormod(count, nodes.int_const(self.period, kind)), "int32")
        # Clamped, so that range analysis knows the bounds.
        now = tirx.Max(tirx.Min(nodes.load(self.cell, self.at), nodes.int_const(self.period - 1)), nodes.int_const(0))
        first = nodes.fresh(f"{self.cell.name}_first")
        after = tirx.floormod(first + more, nodes.int_const(self.period))
        return IterationCount(first, (tirx.Bind(first, now),), (nodes.store(self.cell, after, self.at),))
