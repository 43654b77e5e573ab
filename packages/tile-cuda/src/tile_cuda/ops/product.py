"""GEMMs on matrix instructions: the elements of a lane, and the main loop."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.operand import MmaLoader, MmaOperand
from tile_cuda.ops.plan import KStep, MmaPlan
from tile_cuda.ops.steps import RowByRow, StepByStep, Work, rolled

#: Number of steps beyond which the loop over K is not unrolled.
_MOST_STEPS = 16


class MmaProduct(RegisterProduct[MmaPlan]):
    """Makes the statement of a product, see `RegisterProduct`.

    Parameters
    ----------
    plan, call
        The product.
    make_metadata
        For a sparse product, a function from (lane, first row of the warp) to a ``MmaMetadata``.
    """

    lane_names = ("lane", "lane_g", "lane_t")

    def __init__(self, plan: MmaPlan, call: SimtCall, make_metadata: Any = None) -> None:
        super().__init__(plan, call)
        self.metadata = make_metadata(self.lane, self.rows) if make_metadata else None

    def lane_coordinates(self, number: Var) -> tuple[Expr, Expr]:
        """Return the row of 8, and which of its four groups of adjacent elements."""
        return tirx.floordiv(number, 4), tirx.floormod(number, 4)

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """Groups of 8 rows, and the two columns that a lane holds of each."""
        return ("half", self.plan.family.halves), ("pair", 2)

    def element(self, i: Expr, j: Expr, *within: Var) -> tuple[Expr, ...]:
        """See `RegisterProduct.element`."""
        s, f, (half, pair) = self.plan.split, self.plan.family, within
        register = ((i * s.atoms_n + j) * f.halves + half) * 2 + pair
        row = self.rows + i * f.rows + half * 8 + self.lane.row
        return register, row, self.columns + j * 8 + self.lane.column * 2 + pair

    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the K steps, with movable parts in a loop around a ``whole`` product."""
        p, f = self.plan.problem, self.plan.family
        depth = p.k // 2 if f.sparse else p.k
        a = MmaOperand(**self.operand(0, guarded), dtype=f.a, family=f, depth=depth, halves=f.halves)
        b = MmaOperand(**self.operand(1, guarded), dtype=f.b, family=f, depth=p.k, halves=1)
        work = Work(
            self.plan, self.call, MmaLoader(a, self.lane, "a"), MmaLoader(b, self.lane, "b"), totals, self.metadata
        )
        steps = self._steps(a)
        if self.metadata is not None:
            order: RowByRow | StepByStep = RowByRow(work, steps)
        elif len(steps) > _MOST_STEPS:
            return rolled(work, steps)
        else:
            order = StepByStep(work, steps)
        self.in_parts = whole and order.can_rotate
        return order.in_parts(self.head()) if self.in_parts else order.plain()

    def _steps(self, a: MmaOperand) -> list[KStep]:
        """Return the steps along K."""
        shapes, at = self.plan.family.shapes, 0
        found: list[KStep] = []
        while at < a.blocks:
            many = [] if self.metadata is None else self.metadata.steps(at, a.blocks)
            found += many or [KStep(at, next((x for x in shapes if x <= a.blocks - at), shapes[-1]))]
            at = max(s.first + s.of_a[-1] for s in found) + 1
        return found
