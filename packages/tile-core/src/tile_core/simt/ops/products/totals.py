"""The accumulators of a product in registers: C itself, or copies of C in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.products.plan import ProductPlan
from tile_core.simt.register_loops import choose, when
from tile_core.simt.variant import SimtCall

Each: TypeAlias = Callable[[Callable[[Any, Any, Any], Any]], Any]
"""Makes the loops over a thread's accumulators around a statement of (register, row, column of C)."""


class Totals:
    """Makes the statements before and after a product.

    Parameters
    ----------
    plan, call
        The product.
    each
        The loops over a thread's accumulators.
    clears
        Whether the product's instructions start from zero themselves.
    """

    def __init__(self, plan: ProductPlan, call: SimtCall, each: Each, clears: bool = False) -> None:
        self.plan, self.call, self.each = plan, call, each
        self.c, self.clear, self.total, self.clears = plan.problem.c, plan.problem.clear, plan.total, clears

    def statements(self) -> tuple[BufferVar, list[Stmt], list[Stmt]]:
        """Return the accumulators' array, and the statements before and after the product."""
        array = self.call.placement.arrays.get(self.c.buffer)
        if array is not None and nodes.element_type(array) == self.total:
            return array, self._cleared(array), []
        s = self.plan.split
        count = s.atoms_m * s.atoms_n * self.plan.instruction.accumulators
        totals, new = nodes.alloc([count], self.total, "totals", "local")

        def begin(r: Expr, i: Expr, j: Expr) -> Stmt:
            if self.clear is True:
                return nodes.store(totals, nodes.zero(self.total), [r])
            value = convert(nodes.load(array, [r]) if array is not None else self._read(i, j), self.total)
            if self.clear is not False:
                value = tirx.if_then_else(self.clear, nodes.zero(self.total), value)
            return nodes.store(totals, value, [r])

        def end(r: Expr, i: Expr, j: Expr) -> Stmt:
            value = convert(nodes.load(totals, [r]), self.c.dtype)
            return nodes.store(array, value, [r]) if array is not None else self._write(value, i, j)

        return totals, [new, self.each(begin)], [self.each(end)]

    def _cleared(self, array: BufferVar) -> list[Stmt]:
        if self.clear is False or self.clears:
            return []
        zero = self.each(lambda r, *_: nodes.store(array, nodes.zero(self.total), [r]))
        return [zero if self.clear is True else tirx.IfThenElse(self.clear, zero, None, self.call.span)]

    def _read(self, i: Expr, j: Expr) -> Expr:
        at = matrix(self.c, self.plan.problem.turned_c, i, j)
        return choose(self._limits(i, j, at), nodes.load(self.c.buffer, at))

    def _write(self, value: Expr, i: Expr, j: Expr) -> Stmt:
        at = matrix(self.c, self.plan.problem.turned_c, i, j)
        return when(self._limits(i, j, at), nodes.store(self.c.buffer, value, at, self.call.span))

    def _limits(self, i: Expr, j: Expr, at: list[Expr]) -> list[Expr]:
        """Return the conditions that an element is inside of the tile and the buffer."""
        p, s, instruction = self.plan.problem, self.plan.split, self.plan.instruction
        found = [i < p.m] if s.warps_m * s.atoms_m * instruction.m != p.m else []
        found += [j < p.n] if s.warps_n * s.atoms_n * instruction.n != p.n else []
        return [*found, *contiguity.inside(self.c, at, self.call.ranges)]
