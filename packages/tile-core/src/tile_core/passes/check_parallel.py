"""Refuse ``T.Parallel`` loops whose iterations provably touch the same element.

Iterations of ``T.Parallel`` are independent. A store whose index leaves out a loop variable is written by all
iterations of that loop: legal only if they write the same value. A load from another element of a buffer that the loop
writes sees an unspecified value if that element belongs to another iteration.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.errors.ops import ParallelRace
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, collect, role, uses_var

_INDEPENDENT = ("parallel", "vectorized")


def check_parallel(body: Any, reducers: frozenset[str] = frozenset()) -> None:
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
        Naming the store or load.
    """
    _Check(reducers).stmt(body)


class _Check(StmtRewriter):
    def __init__(self, reducers: frozenset[str]) -> None:
        self.reducers = reducers

    def visit_For(self, s: Any) -> Any:
        if role(s) not in _INDEPENDENT:
            return super().visit_For(s)
        nest = [s]
        body = s.body
        while isinstance(body, tirx.For) and role(body) in _INDEPENDENT:
            nest.append(body)
            body = body.body
        _check_nest([loop for loop in nest if nodes.as_int(loop.extent) not in (0, 1)], body, self.reducers)
        return s


def _check_nest(nest: list[Any], body: Any, reducers: frozenset[str]) -> None:
    own = {str(a.buffer.name) for a in collect(body, tirx.AllocBuffer)}
    varying = _varying(nest, body)
    stores = [s for s in collect(body, tirx.BufferStore) if _shared(s.buffer, own | reducers)]
    for store in stores:
        _check_store(store, nest, varying, body)
    for store in stores:
        for load in collect(body, ir.TensorLoad):
            if load.source.same_as(store.buffer):
                _check_load(store, load, nest)


def _shared(buffer: Any, own: set[str] | frozenset[str]) -> bool:
    return nodes.scope_of(buffer) not in PRIVATE and str(buffer.name) not in own


def _varying(nest: list[Any], body: Any) -> set[Any]:
    """Return the variables whose value may differ between iterations."""
    found = {loop.loop_var for loop in nest}
    for bind in collect(body, tirx.Bind):
        if collect(bind.value, ir.TensorLoad) or any(v in found for v in collect(bind.value, tirx.Var)):
            found.add(bind.var)
    return found


def _check_store(store: Any, nest: list[Any], varying: set[Any], body: Any) -> None:
    del varying
    used = set()
    for index in store.indices:
        if collect(index, ir.TensorLoad):
            return  # an index read from memory may differ in every iteration
        used |= set(collect(index, tirx.Var))
    inner = {b.var: b.value for b in collect(body, tirx.Bind)}
    if any(v in inner and (collect(inner[v], ir.TensorLoad) or collect(inner[v], ir.Call)) for v in used):
        return
    for loop in nest:
        v = loop.loop_var
        if v in used or any(x in inner and uses_var(inner[x], v) for x in used):
            continue
        if _pinned(store, v, body) or not _depends(store.value, v, inner):
            continue
        how = f"of {loop.extent} iterations all write the same element of"
        fix = f"use {v.name} in the index, T.atomic_add, T.reduce_*, T.alloc_reducer or a T.serial loop"
        raise ParallelRace(loop=v.name, how=how, buffer=store.buffer.name, fix=fix, where=nodes.where_of(store))


def _depends(value: Any, v: Any, inner: dict[Any, Any]) -> bool:
    """Whether the value may differ between iterations of ``v``, or accumulates."""
    if uses_var(value, v):
        return True
    if any(x in inner and _depends(inner[x], v, inner) for x in collect(value, tirx.Var)):
        return True
    return bool(collect(value, ir.TensorLoad)) and any(
        nodes.scope_of(load.source) in PRIVATE or not load.indices for load in collect(value, ir.TensorLoad)
    )


def _pinned(store: Any, v: Any, body: Any) -> bool:
    """Whether the store stands under a condition on ``v`` or in data-dependent control flow."""
    for branch in collect(body, tirx.IfThenElse):
        if not (uses_var(branch.condition, v) or collect(branch.condition, ir.TensorLoad)):
            continue
        sides = [branch.then_case] + ([] if branch.else_case is None else [branch.else_case])
        if any(store.same_as(s) for side in sides for s in collect(side, tirx.BufferStore)):
            return True
    return False


def _check_load(store: Any, load: Any, nest: list[Any]) -> None:
    """Refuse a load that is a constant, non-zero number of iterations away from the store."""
    differences = []
    for a, b in zip(store.indices, load.indices, strict=True):
        d = nodes.as_int(tvm.sym.Analyzer().simplify(b - a))
        if not isinstance(d, int):
            return
        differences.append(d)
    if not any(differences):
        return
    for index, d in zip(store.indices, differences, strict=True):
        if d == 0:
            continue
        parts = tvm.sym.detect_linear_equation(index, [loop.loop_var for loop in nest])
        if not parts or not _reaches(d, [nodes.as_int(c) for c in list(parts)[:-1]], nest):
            return
    far = ", ".join(str(d) for d in differences)
    how = f"read the element ({far}) away from the one that another iteration writes in"
    fix = "copy the source to another buffer first, or use a T.serial loop"
    names = ", ".join(loop.loop_var.name for loop in nest)
    raise ParallelRace(loop=names, how=how, buffer=store.buffer.name, fix=fix, where=nodes.where_of(store))


def _reaches(distance: int, coefficients: list[Any], nest: list[Any]) -> bool:
    """Whether one loop alone moves the index by ``distance`` within its range."""
    for c, loop in zip(coefficients, nest, strict=True):
        extent = nodes.as_int(loop.extent)
        if isinstance(c, int) and c and isinstance(extent, int) and distance % c == 0 and abs(distance // c) < extent:
            return True
    return False
