"""The accumulators of a product on matrix instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.simt.memory import contiguity
from tile_core.simt.register_loops import choose, unrolled

if TYPE_CHECKING:
    from tile_cuda.ops.product import _Lower


class Totals:
    """The accumulators: the registers of C itself, or others that are filled from C and stored to it."""

    def __init__(self, lower: _Lower) -> None:
        self.lower, self.plan = lower, lower.plan
        self.per = 2 * self.plan.family.halves
        self.count = self.plan.split.atoms_m * self.plan.split.atoms_n * self.per

    def statements(self) -> tuple[Any, list[Any], list[Any]]:
        """Return the accumulators' array, the statements before and those after the product."""
        p, total = self.plan.problem, self.plan.family.total
        array = self.lower.call.places.arrays.get(p.c.buffer)
        if array is not None and nodes.element_type(array) == total:
            return array, self._cleared(array), []
        totals, new = nodes.alloc([self.count], total, "totals", "local")
        if array is not None:
            begin = self._each(lambda r, *_: self._begin(totals, r, nodes.load(array, [r])))
            end = self._each(lambda r, *_: nodes.store(array, self._out(nodes.load(totals, [r])), [r]))
        else:
            begin = self._each(lambda r, i, j: self._begin(totals, r, self._read(i, j)))
            end = self._each(lambda r, i, j: self._write(nodes.load(totals, [r]), i, j))
        return totals, [new, begin], [end]

    def _cleared(self, array: Any) -> list[Any]:
        clear = self.plan.problem.clear
        if clear is False:
            return []
        zero = self._each(lambda r, *_: nodes.store(array, nodes.zero(self.plan.family.total), [r]))
        return [zero if clear is True else tirx.IfThenElse(clear, zero, None, self.lower.call.span)]

    def _begin(self, totals: Any, register: Any, held: Any) -> Any:
        clear, total = self.plan.problem.clear, self.plan.family.total
        if clear is True:
            return nodes.store(totals, nodes.zero(total), [register])
        value = convert(held, total)
        if clear is not False:
            value = tirx.if_then_else(clear, nodes.zero(total), value)
        return nodes.store(totals, value, [register])

    def _out(self, value: Any) -> Any:
        return convert(value, self.plan.problem.c.dtype)

    def _read(self, i: Any, j: Any) -> Any:
        c = self.plan.problem.c
        at = matrix(c, False, i, j)
        return choose([*self._real(i, j), *contiguity.inside(c, at, self.lower.call.ranges)], nodes.load(c.buffer, at))

    def _write(self, value: Any, i: Any, j: Any) -> Any:
        c = self.plan.problem.c
        at = matrix(c, False, i, j)
        stored = nodes.store(c.buffer, self._out(value), at, self.lower.call.span)
        limits = [*self._real(i, j), *contiguity.inside(c, at, self.lower.call.ranges)]
        return tirx.IfThenElse(tirx.all(*limits), stored, None) if limits else stored

    def _real(self, i: Any, j: Any) -> list[Any]:
        """Return the conditions under which an element is not in the padding."""
        p, s, f = self.plan.problem, self.plan.split, self.plan.family
        rows, columns = s.warps_m * s.atoms_m * f.rows, s.warps_n * s.atoms_n * 8
        return [*([i < p.m] if rows != p.m else []), *([j < p.n] if columns != p.n else [])]

    def _each(self, body: Any) -> Any:
        """Return loops over the accumulators: ``body`` gets the register, and the row and column of C."""
        lower, s, f = self.lower, self.plan.split, self.plan.family

        def one(mi: Any, ni: Any, half: Any, pair: Any) -> Any:
            register = ((mi * s.atoms_n + ni) * f.halves + half) * 2 + pair
            row = lower.rows + mi * f.rows + half * 8 + lower.lanes.g
            return body(register, row, lower.columns + ni * 8 + lower.lanes.t * 2 + pair)

        return unrolled("row_tile", s.atoms_m, lambda mi: unrolled(
            "column_tile", s.atoms_n, lambda ni: unrolled(
                "half", f.halves, lambda half: unrolled("pair", 2, lambda pair: one(mi, ni, half, pair)))))  # fmt: skip
