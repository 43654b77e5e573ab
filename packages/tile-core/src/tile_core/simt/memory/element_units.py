"""Arrays of 4-bit elements as arrays of units.

A unit holds several elements, and copies of whole units copy the same elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.memory.alignment import factor

__all__ = ["UseUnits", "ends_of", "in_units", "units_of"]


class UseUnits(StmtRewriter):
    """Replaces buffers by arrays of units in allocations and copies.

    Derived classes replace the elements in expressions.

    Parameters
    ----------
    buffers
        The array of units of each buffer.
    held
        Elements of a unit.
    group
        Elements at whose multiples a copy begins and ends.
    demands
        Attributes that a copy must not have.
    """

    def __init__(self, buffers: Mapping[Var, BufferVar], held: int, group: int, demands: Collection[str]) -> None:
        self.buffers, self.held, self.group, self.demands = buffers, held, group, frozenset(demands)
        #: Buffers that other statements use, too, or whose copies may begin within a group.
        self.refused: set[Var] = set()
        self.known: dict[Var, int] = {}

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        """Allocate the array of units."""
        new = self.buffers.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, s.annotations, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Note the divisors of an index."""
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.known[s.var] = factor(s.value, self.known)
        return super().visit_Bind(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Copy units."""
        views = [v for v in ends_of(s) if v.buffer in self.buffers]
        if not views:
            return super().visit_Evaluate(s)
        call = OpCall.decode(s)
        whole = (
            len(views) == len(call.args) == 2
            and views[0].dtype == views[1].dtype
            and not self.demands.intersection(call.attrs)
        )
        if not whole or not all(map(self._has_whole_groups, views)):
            self.refused |= {v.buffer for v in views}
            return s
        regions = [
            nodes.region(
                self.buffers[v.buffer],
                [*v.mins[:-1], in_units(v.mins[-1], self.held)],
                [*v.extents[:-1], v.extents[-1] // self.held],
            )
            for v in views
        ]
        return tirx.Evaluate(nodes.tile_call("copy", regions, dict(call.attrs)), s.span)

    def _has_whole_groups(self, view: View) -> bool:
        extent = view.extents[-1]
        return (
            isinstance(extent, int)
            and extent % self.group == 0
            and factor(nodes.int_const(0) + view.mins[-1], self.known) % self.group == 0
        )


def ends_of(s: Stmt) -> list[View]:
    """Return the tiles and tensors of a copy; none of other statements."""
    if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
        return []
    return [a for a in OpCall.decode(s).args if isinstance(a, View)]


def in_units(index: Expr, held: int) -> Expr:
    """Return the number of an element's unit."""
    if isinstance(index, int) or held == 1:
        return index // held if held > 1 else index
    return tirx.floordiv(index, nodes.int_const(held, nodes.dtype_of(index)))


def units_of(buffer: BufferVar, held: int, dtype: str) -> BufferVar:
    """Return the array of units of a buffer whose last extent is a constant."""
    *rows, last = buffer.shape
    shape = [*rows, nodes.int_const(int(last) // held, nodes.dtype_of(last))]
    size = DTYPES[dtype].bits // 8
    return tirx.decl_buffer(shape, dtype, buffer.name, scope=buffer.scope(), data_alignment=size, layout=None)
