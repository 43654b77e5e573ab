"""Loops over elements that one thread of a block executes while the others wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.errors import Where
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, role
from tile_core.passes.performance import PerformanceNote
from tile_core.records import dataclass
from tile_core.simt.placement.tile_uses import PARALLEL


@dataclass(frozen=True)
class ElementLoop:
    """A nest of sequential loops whose iterations write different elements.

    Attributes
    ----------
    extents
        Trip counts, outermost first.
    where
        The line of the access.
    """

    extents: tuple[int, ...]
    where: Where | None

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)

    def performance_note(self, threads: int) -> PerformanceNote:
        """Return the performance note: the line and the remedy."""
        line = "" if self.where is None else f" ({PurePath(self.where.file).name}:{self.where.line})"
        loop = ", ".join(map(str, self.extents))
        return PerformanceNote(
            "serial",
            f"one of {threads} threads writes {self.count:,} elements one after the other{line}; use "
            f"T.Parallel({loop}) where iterations are independent, T.cumsum or T.scan_with for recurrences",
        )


def element_loops(s: Stmt, outer: Sequence[tuple[Var, Expr, Expr]]) -> list[ElementLoop]:
    """Return the element loops of a statement that one thread executes.

    Parameters
    ----------
    s
        The statement.
    outer
        Loops around it: variable, start, extent. Loops whose extents are not constant are not counted.
    """
    inner = [x for x in collect(s, tirx.For) if role(x) not in (*PARALLEL, "grid")]
    # Nodes are collected from the innermost on.
    loops = [(var, extent) for var, _, extent in outer] + [(x.loop_var, x.extent) for x in reversed(inner)]
    known = ((var, nodes.as_int(extent)) for var, extent in loops)
    counts = {var: count for var, count in known if isinstance(count, int) and count > 1}
    if not counts:
        return []
    values = {x.var: x.value for x in collect(s, tirx.Bind)}
    found = []
    for access, indices in _writes(s):
        used = _variables(indices, values)
        extents = tuple(count for var, count in counts.items() if var in used)
        if extents:
            found.append(ElementLoop(extents, nodes.where_of(access)))
    return found


def _writes(s: Stmt) -> list[tuple[Stmt, list[Expr]]]:
    """Return stores and atomic instructions with their memory indices."""
    stores = [(x, list(x.indices)) for x in collect(s, tirx.BufferStore)]
    calls = [x for x in collect(s, tirx.Evaluate) if nodes.is_tile_call(x.value)]
    return stores + [(x, [i for load in loads_of(x.value) for i in load.indices]) for x in calls]


def _variables(expressions: Sequence[Expr], values: dict[Var, Expr]) -> set[Var]:
    found: set[Var] = set()
    pending = list(expressions)
    while pending:
        for var in collect(pending.pop(), tirx.Var):
            if var not in found:
                found.add(var)
                if var in values:
                    pending.append(values[var])
    return found
