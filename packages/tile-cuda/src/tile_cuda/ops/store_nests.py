"""Nests that store accumulators element by element.

``C[row + i, column + j] = f(y[i, j])`` is a copy of a fragment with the values. With a condition, as for a tail of
rows, it is a store of such a fragment, whose lanes may exchange elements before it::

    for i, j: z[i, j] = f(y[i, j])                     a value that is only converted: nothing
    copy z to C                                        or: exchange z; for i, j: if i < rows: C[row + i, ...] = z[i, j]
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tile_core.analysis.flow import names_of
from tile_core.analysis.proofs import linear_parts
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, replace_for, role, substitute
from tile_core.ops.base import OpCall
from tile_core.records import dataclass


@dataclass(frozen=True)
class StoreNest:
    """A nest that stores one element of a tensor for each element of an accumulator.

    Attributes
    ----------
    loops
        Over rows and columns.
    conditions
        On rows, outermost first.
    store
        The store; neighbours of a row are adjacent in the tensor.
    accumulator
        The fragment.
    corner
        Of the stored tile if it is a rectangle of the tensor; otherwise of its first element.
    rectangle
        Whether it is one.
    """

    loops: tuple[Any, Any]
    conditions: tuple[Any, ...]
    store: Any
    accumulator: BufferVar
    corner: tuple[Any, ...]
    rectangle: bool

    @property
    def is_conversion(self) -> bool:
        """Whether the stored values are the accumulator, only converted."""
        value = self.store.value
        value = value.value if type(value) is tirx.Cast else value
        return type(value) is ir.TensorLoad and value.source.same_as(self.accumulator)

    @property
    def extents(self) -> list[int]:
        """Rows and columns."""
        return [int(nodes.as_int(s.extent)) for s in self.loops]

    def copied(self, source: BufferVar) -> Stmt:
        """Return the copy of a fragment to the rectangle."""
        tensor, (rows, columns) = self.store.buffer, self.extents
        extents = [rows if any(v.same_as(self.loops[0].loop_var) for v in _vars(i)) else 1 for i in self.store.indices]
        extents[-1] = columns
        there = nodes.region(tensor, list(self.corner), extents)
        here = nodes.region(source, [nodes.int_const(0)] * 2, self.extents)
        return tirx.Evaluate(nodes.tile_call("copy", [here, there], {"hints": {}}), self.store.span)

    def call(self, source: BufferVar) -> OpCall:
        """Return the copy of a fragment to the rectangle as a call."""
        return OpCall.decode(self.copied(source))

    def valued(self, to: BufferVar) -> Stmt:
        """Return the nest that computes the values; where a condition does not hold, zeros."""
        value, outside = self.store.value, loads_of(self.store.value)
        if any(not x.source.same_as(self.accumulator) for x in outside):
            for condition in reversed(self.conditions):
                value = tirx.if_then_else(condition, value, nodes.zero(nodes.dtype_of(value)))
        return self.around(nodes.store(to, value, [s.loop_var for s in self.loops], self.store.span))

    def stored(self, source: BufferVar) -> Stmt:
        """Return the nest that stores a fragment."""
        old = self.store
        value = nodes.load(source, [s.loop_var for s in self.loops])
        body: Stmt = tirx.BufferStore(old.buffer, value, list(old.indices), old.span)
        for condition in reversed(self.conditions):
            body = tirx.IfThenElse(condition, body, None, old.span)
        return self.around(body)

    def around(self, body: Stmt) -> Stmt:
        """Return a nest of these loops."""
        rows, columns = self.loops
        return replace_for(rows, replace_for(columns, body))


def store_nest(s: Stmt, accumulators: Collection[BufferVar]) -> StoreNest | None:
    """Return the store of a nest, or ``None`` if it is another statement."""
    loops: list[Any] = []
    while type(s) is tirx.For and role(s) == "parallel" and nodes.as_int(s.min) == 0:
        loops.append(s)
        s = s.body
    conditions: list[Any] = []
    while type(s) is tirx.IfThenElse and s.else_case is None:
        conditions.append(s.condition)
        s = s.then_case
    if type(s) is not tirx.BufferStore or len(loops) != 2 or nodes.scope_of(s.buffer) != "global":
        return None
    if any(map(nodes.is_tile_call, collect(s.value, ir.Call))):
        return None  # it may have an effect
    dtype = DTYPES[nodes.element_type(s.buffer)]
    (row, column), indices = (x.loop_var for x in loops), [nodes.int_const(0) + i for i in s.indices]
    own = [x for x in loads_of(s.value) if any(x.source.same_as(b) for b in accumulators)]
    source = own[0].source if own else None
    if source is None or dtype.is_reduced or any(column in names_of(e) for e in (*indices[:-1], *conditions)):
        return None
    here = all(len(x.indices) == 2 and x.indices[0].same_as(row) and x.indices[1].same_as(column) for x in own)
    parts = linear_parts(indices[-1], [column])
    if not here or list(nodes.shape_of(source)) != [nodes.as_int(x.extent) for x in loops] or not parts:
        return None
    if nodes.as_int(parts[0]) != 1 or row in names_of(indices[-1]):
        return None
    corner = [substitute(i, {row: nodes.int_const(0), column: nodes.int_const(0)}) for i in indices]
    by_row = [linear_parts(i, [row]) for i in indices[:-1] if row in names_of(i)]
    rectangle = not conditions and len(by_row) == 1 and bool(by_row[0]) and nodes.as_int(by_row[0][0]) == 1
    return StoreNest((loops[0], loops[1]), tuple(conditions), s, source, tuple(corner), rectangle)


def _vars(e: Expr) -> list[Any]:
    return list(names_of(nodes.int_const(0) + e))
