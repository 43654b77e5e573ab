"""A point: a statement of a program with its enclosing statements and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ReferenceType

from tile_core.compat.structural import size
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Node, Stmt
from tile_core.errors import InternalError
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import role
from tile_core.records import dataclass

Conditions = tuple[tuple[Expr, bool], ...]
"""Conditions, outermost first, each with the value that it must have."""

KINDS: Mapping[Any, str] = {
    tirx.For: "for", tirx.While: "while", tirx.IfThenElse: "if", tirx.AttrStmt: "mark", tirx.Break: "break",
    tirx.Continue: "continue",
}  # fmt: skip
"""The kinds of points, by statement; all others are ``plain``."""


class Parts(list["list[Point]"]):
    """The points of a statement's bodies, in order.

    They refer to the points around them, which refer to them only through the flow: programs in reference cycles would
    fill the memory, and the processor's caches, until Python collects such cycles.
    """


@dataclass(eq=False)
class Point:
    """A statement in its place.

    Attributes
    ----------
    stmt
        The statement; never a sequence.
    kind
        ``plain``, ``for``, ``while``, ``if``, ``mark``, ``break`` or ``continue``.
    path
        The points around it, outermost first.
    role
        The mark of the role that executes it; nothing for the whole block.
    side
        In which part of that: 1 in the second side of a branch, otherwise 0.
    order
        Its number, in program order.
    last
        The number of the last point inside of it; its own if there is none.
    bodies
        Leads to ``parts`` as long as their flow lives; nothing without bodies.
    loops
        The loops around it, outermost first.
    conditions
        The conditions of the branches around it, each with whether it holds.
    """

    stmt: Stmt
    kind: str
    path: tuple[Point, ...]
    role: Stmt | None
    side: int
    order: int
    last: int = -1
    bodies: ReferenceType[Parts] | None = None
    loops: tuple[Point, ...] = ()
    conditions: Conditions = ()

    @property
    def parts(self) -> list[list[Point]]:
        """The points of its bodies, in order.

        Raises
        ------
        InternalError
            If their flow is gone.
        """
        if self.bodies is None:
            return []
        found = self.bodies()
        if found is None:
            detail = "parts of a point requested after its flow is gone"
            raise InternalError(stage="analysis of control flow", detail=detail)
        return found

    @property
    def own(self) -> list[Node]:
        """The expressions that it evaluates itself: bounds, a condition, or a plain statement."""
        s = self.stmt
        if self.kind == "for":
            return [s.min, s.extent]
        if self.kind in ("while", "if"):
            return [s.condition]
        return [s.value] if self.kind == "mark" else [s]

    @property
    def around(self) -> Point | None:
        """The point whose part it is in, if any."""
        return self.path[-1] if self.path else None

    def contains(self, other: Point) -> bool:
        """Whether another point is inside of it, or itself."""
        return self.order <= other.order <= self.last

    def within(self, outer: Point | None) -> list[Point]:
        """Return the points around it that are inside of ``outer``, outermost first."""
        return [p for p in self.path if outer is None or (outer.contains(p) and p is not outer)]

    def is_part(self) -> bool:
        """Whether only some threads of the block execute what is inside, each for itself (``calls.only``)."""
        return self.kind == "mark" and self.stmt.attr_key == attributes.ONLY and size(self.stmt.node) == 3

    def is_role(self) -> bool:
        """Whether some threads of the block share the work inside (``calls.only`` with a variable)."""
        return self.kind == "mark" and self.stmt.attr_key == attributes.ONLY and size(self.stmt.node) == 4

    def is_step(self) -> bool:
        """Whether the threads do not depend on each other inside (``calls.step``)."""
        return self.kind == "mark" and bool(self.stmt.attr_key == attributes.STEP)


def is_grid(p: Point) -> bool:
    """Whether a loop is over the blocks of a grid, which have no order."""
    return p.kind == "for" and role(p.stmt) == "grid"


def may_repeat(loop: Point) -> bool:
    """Whether a loop may run more than once."""
    return loop.kind == "while" or (not is_grid(loop) and nodes.as_int(loop.stmt.extent) not in (0, 1))


def runs(loop: Point) -> bool:
    """Whether a loop runs at least once: a positive extent, or the grid."""
    if loop.kind == "while":
        return False
    extent = nodes.as_int(loop.stmt.extent)
    return is_grid(loop) or (isinstance(extent, int) and extent > 0)
