"""Refuse ``T.Parallel`` loops whose iterations touch the same element.

Iterations of ``T.Parallel`` are independent: an element written by one may not be read by another, or written with
another value. Most indices contain the variables of the loops as digits, which proves that all iterations access
different elements (``analysis/affine.py``). For the others, indices are computed for the iterations (all, or a sample
of large loops), so that a refusal names two that conflict. For symbolic extents several sizes are tried, and the loop
is refused if iterations conflict in all of them. Indices that depend on memory are not decided here. So a loop that is
accepted by a sample, by the sizes that were tried, or undecided, is not proven to be free of races.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.affine import Digits
from tile_core.analysis.conflicts import (
    AccessRows,
    assignments,
    element_name,
    read_elsewhere,
    refusal,
    unit_of,
    written_twice,
)
from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.iteration_space import Body, Space, Touched, body_of
from tile_core.analysis.point import Point
from tile_core.analysis.value_numbering import Fingerprint, apart, element_number
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Expr, Stmt, Var
from tile_core.errors.ops import ParallelRace
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect, role, uses_var

_INDEPENDENT = ("parallel", "vectorized")
_READ_FIX = "copy the source to another buffer first, or use a T.serial loop"


def check_parallel(body: Stmt, reducers: frozenset[str] = frozenset()) -> None:
    """Check all T.Parallel loops of a program.

    Parameters
    ----------
    body
        The program.
    reducers
        Names of ``alloc_reducer`` buffers, which iterations may share.

    Raises
    ------
    ParallelRace
        Naming the store or load, and two iterations that conflict.
    """
    flow = Flow(body)
    for p in flow.points:
        if p.kind == "for" and role(p.stmt) in _INDEPENDENT:
            _check_nest(_Around(flow, p, reducers), p)


class _Around:
    """Surroundings of a nest: loops, conditions and names."""

    def __init__(self, flow: Flow, p: Point, reducers: frozenset[str]) -> None:
        self.reducers, self.root, self.binds = reducers, flow.root, flow.binds
        self.loops = [x.stmt for x in p.loops if x.kind == "for"]
        self.conditions = p.conditions


def _check_nest(around: _Around, p: Point) -> None:
    nest, body = [p.stmt], p.stmt.body
    while isinstance(body, tirx.For) and role(body) in _INDEPENDENT:
        nest.append(body)
        body = body.body
    if around.loops and role(around.loops[-1]) in _INDEPENDENT and around.loops[-1].body.same_as(p.stmt):
        return  # checked with the enclosing loop
    if any(_several(loop) for loop in nest) and all(nodes.as_int(loop.extent) != 0 for loop in nest):
        _IndependentNest(around, nest, body).check()


class _IndependentNest:
    """One nest of independent loops and what surrounds it."""

    def __init__(self, around: _Around, nest: list[Stmt], body: Stmt) -> None:
        self.around, self.nest, self.statement = around, nest, body
        self.own = {str(a.buffer.name) for a in collect(body, tirx.AllocBuffer)} | around.reducers
        self.body: Body = body_of(body)
        self.written = {a.buffer for a in self.body.accesses if a.value is not None}
        self.written |= {s.buffer for s in self.body.unclear}

    def check(self) -> None:
        shared = [a for a in self.body.accesses if self.shared(a.buffer)]
        bases = {self.base(a.buffer) for a in shared if a.value is not None}
        for store in self.body.unclear:
            if self.shared(store.buffer):
                _check_left_out(store, self.nest, self.statement)
        for base in bases:
            found = [a for a in shared if self.base(a.buffer) == base]
            if not self._digits(found).distinct(found):
                self._elements(found)

    def shared(self, buffer: BufferVar) -> bool:
        return nodes.scope_of(buffer) not in PRIVATE and str(buffer.name) not in self.own

    def base(self, buffer: BufferVar) -> BufferVar:
        return self.around.root(buffer)

    def _digits(self, accesses: list[Access]) -> Digits:
        loops = list(dict.fromkeys(loop for a in accesses for loop in a.loops))
        return Digits(self.nest, loops, self.around.binds, self.body.binds, self.around.loops)

    def _elements(self, accesses: list[Access]) -> None:
        """Refuse if iterations conflict under every assignment that is tried."""
        met: list[ParallelRace] = []
        decided: set[int] = set()
        for sizes in assignments(accesses, (*self.nest, *self.around.loops), self.around.binds, self.body.binds):
            race = vacuous = None
            for outer in self._surroundings(sizes):
                table = _Table(self, accesses, outer)
                decided |= {r.access.order for r in table.stores if r.value is not None}
                vacuous = bool(vacuous is None or vacuous) and table.vacuous()
                race = table.race({str(v.name): n for v, n in sizes.items()})
                if race is not None:
                    break
            if race is not None:
                met.append(race)
            elif vacuous is False:
                met.clear()
                break
        if met:
            raise met[0]
        for access in accesses:
            if access.value is not None and access.order not in decided:
                _check_left_out(access.statement, self.nest, self.statement)

    def _surroundings(self, sizes: Mapping[Var, int]) -> Iterator[dict[Var, int]]:
        """Yield values of the loops and names around the nest, under the conditions around it."""
        for picks in _picks(len(self.around.loops)):
            env: dict[Var, Array] = dict(sizes)
            self._name(env)
            try:
                for loop, pick in zip(self.around.loops, picks, strict=True):
                    extent = int(evaluate(loop.extent, env))
                    if extent <= 0:
                        raise Unknown
                    env[loop.loop_var] = int(evaluate(loop.min, env)) + min(pick, extent - 1)
                    self._name(env)
            except Unknown:
                continue
            if all(_holds(c, env) in (holds, None) for c, holds in self.around.conditions):
                yield env

    def _name(self, env: dict[Var, int]) -> None:
        for var, value in self.around.binds.items():
            if var not in env:
                try:
                    env[var] = evaluate(value, env)
                except Unknown:
                    continue


def _holds(condition: Expr, env: Mapping[Var, Array]) -> bool | None:
    try:
        return bool(evaluate(condition, env))
    except Unknown:
        return None


def _picks(loops: int) -> list[tuple[int, ...]]:
    """Return the iterations of the enclosing loops to try; the last one represents larger numbers."""
    if not loops:
        return [()]
    draw = random.Random(loops)
    same = [(k,) * loops for k in (0, 1, 2, sys.maxsize)]
    return same + [tuple(draw.choice((0, 1, 3, 7, sys.maxsize)) for _ in range(loops)) for _ in range(loops - 1)]


class _Table:
    """The accessed elements of one buffer for one assignment of the enclosing variables."""

    def __init__(self, nest: _IndependentNest, accesses: list[Access], outer: Mapping[Var, int]) -> None:
        self.nest = nest
        self.stores: list[AccessRows] = []
        self.loads: list[AccessRows] = []
        self.space: Space | None = None
        try:
            self.space = Space(nest.nest, outer, nest.body.binds)
        except Unknown:
            return
        for access in accesses:
            try:
                touched = self.space.touched(access)
            except Unknown:
                continue
            (self.loads if access.value is None else self.stores).append(
                AccessRows(access, touched, None if access.value is None else self._value(access, touched))
            )

    def vacuous(self) -> bool:
        """Whether fewer than two iterations write."""
        found = [r.touched.iteration for r in self.stores if len(r.touched.iteration)]
        return not found or len({int(f(i)) for i in found for f in (np.min, np.max)}) < 2

    def race(self, sizes: Mapping[str, int]) -> ParallelRace | None:
        """Return the refusal of two iterations that conflict, if there are any."""
        if self.space is None or not self.stores:
            return None
        unit = unit_of([*self.stores, *self.loads])
        return self._written_twice(unit, sizes) or self._read_elsewhere(unit, sizes)

    def _written_twice(self, unit: int, sizes: Mapping[str, int]) -> ParallelRace | None:
        met = written_twice(self.stores, unit)
        if met is None:
            return None
        names = [self._iteration(x) for x in (met.other, met.mine)]
        both = f"iterations {names[0]} and {names[1]} of {_kind(self.nest.nest)} both write"
        found = f"{both} {element_name(met.access, met.at, unit)}"
        loops = ", ".join(str(loop.loop_var.name) for loop in self.nest.nest if _several(loop))
        fix = f"use {loops} in the index, T.atomic_add, T.reduce_*, T.alloc_reducer or a T.serial loop"
        return refusal(found, sizes, fix, met.access.statement)

    def _read_elsewhere(self, unit: int, sizes: Mapping[str, int]) -> ParallelRace | None:
        assert self.space is not None
        met = read_elsewhere(self.stores, self.loads, unit, self.space.count)
        if met is None:
            return None
        found = (
            f"iteration {self._iteration(met.mine)} of {_kind(self.nest.nest)} reads "
            f"{element_name(met.access, met.at, unit)}, which iteration {self._iteration(met.other)} writes"
        )
        return refusal(found, sizes, _READ_FIX, met.access.statement)

    def _value(self, access: Access, touched: Touched) -> Array:
        """Return the value number of a store's value, or ``None`` if it is unknown."""
        assert self.space is not None
        number = np.arange(self.space.count).reshape(
            self.space.shape + (1,) * (touched.kept.ndim - len(self.space.shape))
        )

        def element(load: Expr, env: Mapping[Var, Array]) -> Array:
            if nodes.scope_of(load.source) in PRIVATE and load.source in self.nest.written:
                return apart(number)
            at: Any = np.int64(0)
            for index, extent in zip(load.indices, load.source.shape, strict=True):
                try:
                    at = at * evaluate(extent, env) + evaluate(index, env)
                except Unknown:
                    return apart(number)
            return element_number(load.source, at)

        try:
            value = Fingerprint(touched.env, self.nest.body.binds, element).of(access.value)
        except Unknown:
            return None
        return np.broadcast_to(value, touched.kept.shape)[touched.kept]

    def _iteration(self, number: int) -> str:
        assert self.space is not None
        text = ", ".join(f"{n}={v}" for n, v in self.space.named(number).items())
        return text if len(self.space.nest) == 1 else f"({text})"


def _several(loop: Stmt) -> bool:
    return nodes.as_int(loop.extent) not in (0, 1)


def _kind(nest: list[Stmt]) -> str:
    """Return the name under which the user wrote the loops."""
    return "T.vectorized" if all(loop.kind == tirx.ForKind.VECTORIZED for loop in nest) else "T.Parallel"


def _check_left_out(store: Stmt, nest: list[Stmt], body: Stmt) -> None:
    """Refuse a store of varying values whose index omits a loop, without known elements."""
    used: set[Var] = set()
    for index in store.indices:
        if collect(index, ir.TensorLoad):
            return  # an index read from memory may differ in every iteration
        used |= set(collect(index, tirx.Var))
    inner = {b.var: b.value for b in collect(body, tirx.Bind)}
    if any(v in inner and (collect(inner[v], ir.TensorLoad) or collect(inner[v], ir.Call)) for v in used):
        return
    for loop in filter(_several, nest):
        v = loop.loop_var
        if v in used or any(x in inner and uses_var(inner[x], v) for x in used):
            continue
        if _pinned(store, v, body) or not _depends(store.value, v, inner):
            continue
        found = f"all iterations of {_kind([loop])} over {v.name} ({loop.extent}) write the same element of"
        fix = f"use {v.name} in the index, T.atomic_add, T.reduce_*, T.alloc_reducer or a T.serial loop"
        raise refusal(f"{found} {store.buffer.name}", {}, fix, store)


def _depends(value: Expr, v: Var, inner: Mapping[Var, Expr]) -> bool:
    """Whether the value may differ between iterations of ``v``, or accumulates."""
    if uses_var(value, v):
        return True
    if any(x in inner and _depends(inner[x], v, inner) for x in collect(value, tirx.Var)):
        return True
    return bool(collect(value, ir.TensorLoad)) and any(
        nodes.scope_of(load.source) in PRIVATE or not load.indices for load in collect(value, ir.TensorLoad)
    )


def _pinned(store: Stmt, v: Var, body: Stmt) -> bool:
    """Whether the store is guarded by a condition on ``v`` or in data-dependent control flow."""
    for branch in collect(body, tirx.IfThenElse):
        if not (uses_var(branch.condition, v) or collect(branch.condition, ir.TensorLoad)):
            continue
        sides = [branch.then_case] + ([] if branch.else_case is None else [branch.else_case])
        if any(store.same_as(s) for side in sides for s in collect(side, tirx.BufferStore)):
            return True
    return False
