"""Several tiles of one layout, one after another: the slots of a pipelined buffer."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.types import Coordinate, Expr
from tile_core.layout.base import LayoutMap
from tile_core.layout.swizzle import PYTHON_OPS, Ops


class StackedLayout(LayoutMap):
    """A layout onto memory, repeated.

    Parameters
    ----------
    inner
        The layout of one tile.
    count
        Tiles; which one is the first index.
    """

    def __init__(self, inner: LayoutMap, count: int) -> None:
        self.inner, self.count = inner, count
        self.shape = (count, *inner.shape)
        self.note = getattr(inner, "note", "")

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return ("memory",)

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return 1

    @property
    def span(self) -> int:
        """See ``LayoutMap.span``."""
        return self.count * self.inner.span

    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """See ``LayoutMap.at``."""
        within = self.inner.at(ops.mod(flat, self.inner.numel), replica, ops)
        return self._placed(ops.floordiv(flat, self.inner.numel), within, ops)

    def _apply(self, coordinate: Sequence[Expr], replica: Coordinate, ops: Ops) -> dict[str, Expr]:
        first, *rest = coordinate
        return self._placed(first, self.inner.apply(*rest, replica=replica, ops=ops), ops)

    def _placed(self, slot: Expr, within: dict[str, Expr], ops: Ops) -> dict[str, Expr]:
        return {"memory": ops.add(ops.mul(slot, self.inner.span), within["memory"])}

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        one, span = self.inner.tables()["memory"], self.inner.span
        return {"memory": [slot * span + position for slot in range(self.count) for position in one]}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StackedLayout):
            return NotImplemented
        return (self.count, self.inner) == (other.count, other.inner)

    def __hash__(self) -> int:
        return hash((self.count, self.inner))

    def __repr__(self) -> str:
        return f"{self.count} x {self.inner!r}"
