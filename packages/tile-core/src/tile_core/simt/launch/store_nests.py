"""Nests that store accumulators element by element.

``C[row + i, column + j] = f(y[i, j])`` is a copy of a fragment with the values. With a condition, as for a tail of
rows, it is a store of such a fragment, whose lanes may exchange elements before it::

    for i, j: z[i, j] = f(y[i, j])                     a value that is only converted: nothing
    copy z to C                                        or: exchange z; for i, j: if i < rows: C[row + i, ...] = z[i, j]

``C[column + j, row + i]`` is a copy of a tile in shared memory, which the nest transposes. Several stores are a nest
for each, since iterations are independent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.analysis.flow import names_of
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect, loads_of, replace_for, role, statements, substitute
from tile_core.ops.base import OpCall
from tile_core.records import dataclass


@dataclass(frozen=True)
class StoreNest:
    """A nest that stores one element of a tensor for each element of an accumulator.

    Attributes
    ----------
    loops
        Over rows and columns, in any order.
    at
        Their variables, in the order of the accumulator's dimensions.
    conditions
        On rows, outermost first.
    names
        Bindings that the value uses.
    store
        The store; neighbours of a row are adjacent in the tensor, those of a column if it is transposed.
    accumulator
        The fragment.
    corner
        Of the stored tile if it is a rectangle of the tensor; otherwise of its first element.
    rectangle
        Whether it is one.
    transposed
        Whether columns of the accumulator are rows of the tensor.
    """

    loops: tuple[Any, ...]
    at: tuple[Var, Var]
    conditions: tuple[Any, ...]
    names: tuple[Any, ...]
    store: Any
    accumulator: BufferVar
    corner: tuple[Any, ...]
    rectangle: bool
    transposed: bool

    @property
    def is_conversion(self) -> bool:
        """Whether the stored values are the accumulator, only converted."""
        load = _loaded(self.store.value)
        return load is not None and load.source.same_as(self.accumulator) and not self.transposed

    @property
    def extents(self) -> list[int]:
        """Rows and columns of the stored tile."""
        shape = list(map(int, nodes.shape_of(self.accumulator)))
        return shape[::-1] if self.transposed else shape

    def copied(self, source: BufferVar) -> Stmt:
        """Return the copy of a tile to the rectangle."""
        outer = self.at[self.transposed]
        extents = [self.extents[0] if outer in names_of(i) else 1 for i in self.store.indices]
        extents[-1] = self.extents[1]
        there = nodes.region(self.store.buffer, list(self.corner), extents)
        here = nodes.region(source, [nodes.int_const(0)] * 2, self.extents)
        return tirx.Evaluate(nodes.tile_call("copy", [here, there], {attributes.HINTS: {}}), self.store.span)

    def call(self, source: BufferVar) -> OpCall:
        """Return the copy of a tile to the rectangle as a call."""
        return OpCall.decode(self.copied(source))

    def valued(self, to: BufferVar) -> Stmt:
        """Return the nest that computes the values; where a condition does not hold, zeros."""
        values = [*(s.value for s in self.names), self.store.value]
        if any(not x.source.same_as(self.accumulator) for value in values for x in loads_of(value)):
            for condition in reversed(self.conditions):
                values = [tirx.if_then_else(condition, v, nodes.zero(nodes.dtype_of(v))) for v in values]
        names = [tirx.Bind(s.var, value, s.span) for s, value in zip(self.names, values, strict=False)]
        at = list(self.at[::-1] if self.transposed else self.at)
        return self.around(nodes.seq([*names, nodes.store(to, values[-1], at, self.store.span)]))

    def stored(self, source: BufferVar) -> Stmt:
        """Return the nest that stores a fragment."""
        old = self.store
        body: Stmt = tirx.BufferStore(old.buffer, nodes.load(source, list(self.at)), list(old.indices), old.span)
        for condition in reversed(self.conditions):
            body = tirx.IfThenElse(condition, body, None, old.span)
        return self.around(body)

    def direct(self) -> Stmt:
        """Return the nest of this store alone."""
        body = nodes.seq([*self.names, self.store])
        for condition in reversed(self.conditions):
            body = tirx.IfThenElse(condition, body, None, self.store.span)
        return self.around(body)

    def around(self, body: Stmt) -> Stmt:
        """Return a nest of these loops."""
        outer, inner = self.loops
        return replace_for(outer, replace_for(inner, body))


def store_nests(s: Stmt, accumulators: Collection[BufferVar]) -> list[StoreNest]:
    """Return the stores of a nest of accumulators; none if it has another statement."""
    loops: list[Any] = []
    while type(s) is tirx.For and role(s) == "parallel" and nodes.as_int(s.min) == 0:
        loops.append(s)
        s = s.body
    parts = _Parts()
    if len(loops) != 2 or not parts.take(s, (), ()) or not parts.are_apart():
        return []
    found = [_store_nest(loops, part, accumulators, again > 0) for again, part in enumerate(parts.stores)]
    return [] if None in found else [nest for nest in found if nest is not None]


class _Parts:
    """The stores of an iteration, each with its conditions and the bindings before it."""

    def __init__(self) -> None:
        self.stores: list[tuple[Any, tuple[Expr, ...], tuple[Any, ...]]] = []
        #: Buffers that conditions and bindings read: a store of one may change them for another store.
        self.read: set[BufferVar] = set()

    def take(self, s: Stmt, conditions: tuple[Expr, ...], names: tuple[Any, ...]) -> bool:
        """Add a statement's stores; return false for other statements than bindings and conditions."""
        for part in statements(s):
            head = getattr(part, "condition" if type(part) is tirx.IfThenElse else "value", None)
            if head is None or any(map(nodes.is_tile_call, collect(head, ir.Call))):
                return False  # it may have an effect
            if type(part) is tirx.BufferStore:
                self.stores.append((part, conditions, names))
                continue
            self.read |= {x.source for x in loads_of(head)}
            if type(part) is tirx.Bind:
                names = (*names, part)
                continue
            if type(part) is not tirx.IfThenElse or part.else_case is not None:
                return False
            if not self.take(part.then_case, (*conditions, _inlined(head, names)), names):
                return False
        return not any(store.buffer in self.read for store, _, _ in self.stores)

    def are_apart(self) -> bool:
        """Whether no store reads what another one writes."""
        for store, _, _ in self.stores:
            read = {x.source for x in loads_of(store)}
            if any(other is not store and other.buffer in read for other, _, _ in self.stores):
                return False
        return True


def _store_nest(
    loops: Sequence[Any], part: tuple[Any, tuple[Expr, ...], tuple[Any, ...]], accumulators: Collection[BufferVar],
    again: bool,
) -> StoreNest | None:  # fmt: skip
    """Return a store of a nest; ``again`` if another one uses its names."""
    store, conditions, names = part
    if nodes.scope_of(store.buffer) != "global" or DTYPES[nodes.element_type(store.buffer)].is_reduced:
        return None
    value, indices = store.value, [_inlined(nodes.int_const(0) + i, names) for i in store.indices]
    value = value if _loaded(_inlined(value, names)) is None else _inlined(value, names)
    names = _needed(value, names)
    if again and names:
        fresh = {s.var: tirx.Var(s.var.name, s.var.ty) for s in names}
        names = tuple(tirx.Bind(fresh[s.var], substitute(s.value, fresh), s.span) for s in names)
        value = substitute(value, fresh)
    own = [x for e in (value, *(s.value for s in names)) for x in loads_of(e) if x.source in accumulators]
    if not own or any(len(x.indices) != 2 or not _same(x.indices, own[0].indices) for x in own):
        return None
    source, at, extents = own[0].source, tuple(own[0].indices), {s.loop_var: nodes.as_int(s.extent) for s in loops}
    if set(at) != set(extents) or list(nodes.shape_of(source)) != [extents[v] for v in at]:
        return None
    transposed = at[1] not in names_of(indices[-1])
    outer, inner = at[::-1] if transposed else at
    form = linear_form(indices[-1], [inner])
    if form is None or form.steps != (1,) or outer in names_of(indices[-1]):
        return None
    conditions = tuple(x for c in conditions for x in _beyond(c, store.buffer, indices))
    if any(inner in names_of(e) for e in (*indices[:-1], *conditions)):
        return None
    corner = [substitute(i, {v: nodes.int_const(0) for v in at}) for i in indices]
    by_row = [linear_form(i, [outer]) for i in indices[:-1] if outer in names_of(i)]
    rectangle = not conditions and [form and form.steps for form in by_row] == [(1,)]
    if transposed and not rectangle:
        return None
    store = tirx.BufferStore(store.buffer, value, indices, store.span)
    return StoreNest(tuple(loops), at, conditions, names, store, source, tuple(corner), rectangle, transposed)


def _loaded(value: Expr) -> Expr | None:
    """Return the load that a value is, converted or not; ``None`` for another value."""
    value = value.value if type(value) is tirx.Cast else value
    return value if type(value) is ir.TensorLoad else None


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return all(x.same_as(y) for x, y in zip(a, b, strict=True))


def _inlined(e: Expr, names: Sequence[Any]) -> Expr:
    """Return an expression without names."""
    for s in reversed(names):
        e = substitute(e, {s.var: s.value})
    return e


def _needed(value: Expr, names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the bindings that a value uses."""
    used, found = set(names_of(value)), []
    for s in reversed(names):
        if s.var in used:
            used |= set(names_of(s.value))
            found.append(s)
    return tuple(reversed(found))


def _all_of(condition: Expr) -> list[Expr]:
    """Return the conditions that all have to hold."""
    return [*_all_of(condition.a), *_all_of(condition.b)] if type(condition) is tirx.And else [condition]


def _beyond(condition: Expr, tensor: BufferVar, indices: Sequence[Expr]) -> list[Expr]:
    """Return the parts of a condition that elements inside of a tensor may violate."""
    parts = _all_of(condition)
    found = [x for x in parts if not _holds_inside(x, tensor, indices)]
    return [condition] if len(found) == len(parts) else found


def _holds_inside(condition: Expr, tensor: BufferVar, indices: Sequence[Expr]) -> bool:
    """Whether a condition holds wherever a tensor has elements: other stores do nothing."""
    if type(condition) is not tirx.LT:
        return False
    sizes = zip(indices, nodes.shape_of(tensor), strict=True)
    equal = tvm_ffi.structural_equal
    return any(equal(condition.a, i) and equal(condition.b, nodes.int_const(0) + n) for i, n in sizes)
