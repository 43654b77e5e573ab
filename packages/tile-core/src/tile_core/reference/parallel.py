"""Parallel loops: every iteration of a nest becomes a lane.

What an iteration writes to a private array that was allocated around the loop it writes to a copy of its own. After the
loop the array holds what was written; where iterations wrote different values, it must not be read.

Buffers of ``T.alloc_reducer`` are shared by the iterations: updates of one element happen one after another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Array, BufferVar, Expr, Stmt
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, role
from tile_core.reference import access, elements, extremes
from tile_core.reference.expressions import compile_expression
from tile_core.reference.lanes import LaneSet, expanded
from tile_core.reference.scope import CompileScope, Expression, Statement
from tile_core.reference.state import State

if TYPE_CHECKING:
    from tile_core.reference.memory import LaneMemory, Root

__all__ = ["BITS", "combine", "compile_parallel", "compile_update", "ranks"]

#: Kinds that combine integers bit by bit.
BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}
#: Operators that update an element of a reducer.
_NODES = {
    "Add": "sum", "Max": "max", "Min": "min", "BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor",
}  # fmt: skip
_CALLS = {"tile.float_max": "max", "tile.float_min": "min"}
#: The most lanes that run in parallel; further iterations run in later batches.
_MOST = 1 << 20


def compile_parallel(s: Stmt, scope: CompileScope) -> Statement | None:
    """Return the function of a parallel loop nest; ``None`` if iterations must be ordered."""
    if _ordered(s, scope):
        return None
    return _ParallelNest(s, scope).run


class _ParallelNest:
    """A nest of parallel loops.

    Attributes
    ----------
    loops
        Start, extent, number and type of each variable, outermost first.
    outside
        Numbers of variables from outside the nest.
    private
        Numbers of buffers allocated outside that may be private and are written inside.
    """

    def __init__(self, s: Stmt, scope: CompileScope) -> None:
        self.where, self.spread = scope.where, scope.spread
        self.loops: list[tuple[Expression, Expression, int, Any]] = []
        known, own = dict(scope.variables), []
        while isinstance(s, tirx.For) and role(s) == "parallel":
            if any(v in own for e in (s.min, s.extent) for v in collect(e, tirx.Var)):
                break
            start, extent = compile_expression(s.min, scope), compile_expression(s.extent, scope)
            own.append(s.loop_var)
            self.loops.append((start, extent, scope.define(s.loop_var), elements.holder(nodes.dtype_of(s.loop_var))))
            s = s.body
        used = {v for v in collect(s, tirx.Var) if v in known}
        self.outside = [known[v] for v in used]
        allocated = {a.buffer for a in collect(s, tirx.AllocBuffer)}
        written = [b for b in _written(s) if b not in allocated and b in scope.buffers]
        self.private = [scope.buffers[b] for b in written]
        self.body = scope.statement(s)
        self.hot = scope.sharing(n for n in self.private if n not in scope.reducers)
        self.cooperative = scope.threads and not scope.spread
        self.domain: tuple[Any, Any] = (None, None)

    def run(self, state: State) -> None:
        """Execute the nest."""
        if state.mask is False:
            return
        outer, mask = state.lanes, state.mask
        block = self.cooperative and outer.parent is None and outer.count > 1
        if block and mask is not None:
            raise DivergentBarrier(what="an operation of the whole block", where=self.where)
        single = block or outer.count == 1
        watch, before = _Watch(state, self), 0
        for parents, columns in self.chunks(state, single):
            if len(columns[0]):
                inner = LaneSet(len(columns[0]), outer, None if single else parents)
                watch.piece(inner, before)
                self.piece(state, inner, columns, block)
                before += inner.count
        watch.close()

    def piece(self, state: State, inner: LaneSet, columns: list[Array], block: bool) -> None:
        """Execute iterations side by side."""
        outer, mask, frames = state.lanes, state.mask, state.frames
        saved = [(n, state.values[n]) for n in self.outside]
        for number, value in saved:
            state.values[number] = expanded(value, inner.index)
        for (_, _, number, _), column in zip(self.loops, columns, strict=True):
            state.values[number] = column
        kept = [] if self.spread else self.expand(state, inner, block)
        state.lanes, state.mask, state.frames = inner, None, []
        self.body(state)
        state.lanes, state.mask, state.frames = outer, mask, frames
        for number, value in saved:
            state.values[number] = value
        for root, data, home, valid, touched in kept:
            _collapse(root, data, home, valid, touched, inner, block)

    def chunks(self, state: State, single: bool) -> Iterator[tuple[Array, list[Array]]]:
        """Yield each lane's parent and loop variables, in chunks of many iterations."""
        bounds = [(start(state), extent(state)) for start, extent, _, _ in self.loops]
        parents = np.zeros(1, np.int64) if single else state.active()
        if any(isinstance(x, np.ndarray) for pair in bounds for x in pair):
            yield self.uneven(state, bounds, parents)
            return
        key = tuple((int(first), max(0, int(count))) for first, count in bounds)
        total = len(parents) * math.prod(count for _, count in key)
        if single and self.domain[0] == key:
            yield self.domain[1]
            return
        for begin in range(0, total, _MOST):
            rest = np.arange(begin, min(begin + _MOST, total))
            columns = []
            for (first, count), (_, _, _, kind) in zip(reversed(key), reversed(self.loops), strict=True):
                columns.append((rest % count + first).astype(kind))
                rest = rest // count
            found = (parents[rest], columns[::-1])
            if single and total <= _MOST:
                self.domain = (key, found)
            yield found

    def uneven(self, state: State, bounds: list[tuple[Array, Array]], parents: Array) -> tuple[Array, list[Array]]:
        """Return the same for loops whose bounds differ between lanes."""
        columns: list[Array] = []
        for (start, extent), (_, _, _, kind) in zip(bounds, self.loops, strict=True):
            count, first = (np.broadcast_to(x, state.count)[parents].astype(np.int64) for x in (extent, start))
            count = np.maximum(count, 0)
            repeat = np.repeat(np.arange(len(parents)), count)
            begin = np.cumsum(count) - count
            column = np.arange(len(repeat)) - begin[repeat] + first[repeat]
            columns = [*(c[repeat] for c in columns), column.astype(kind)]
            parents = parents[repeat]
        return parents, columns

    def expand(self, state: State, inner: LaneSet, block: bool) -> list[Any]:
        """Give each lane a copy of the private arrays that it writes; return the originals."""
        kept = []
        roots: dict[int, Root] = {}
        for number in self.private:
            memory = state.memories[number]
            if memory is not None and memory.root.home is not None:
                roots[id(memory.root)] = memory.root
        for root in roots.values():
            home: Any = root.home
            kept.append((root, root.data, home, root.valid, root.touched))
            slots = np.broadcast_to(0 if block else inner.within(home), inner.count)
            data = root.data.reshape(home.count, -1)[slots].reshape(-1)
            valid = None if root.valid is None else root.valid.reshape(home.count, -1)[slots].reshape(-1)
            root.rebind(data, inner, valid)
            root.touched = np.zeros(root.units, np.bool_)
        return kept


class _Watch:
    """Notifies the sanitizer of a parallel loop's begin, end and lanes."""

    def __init__(self, state: State, nest: _ParallelNest) -> None:
        self.watch = watch = state.sanitizer
        if watch is None:
            return
        self.before = (watch.outer, watch.hot, watch.epoch, watch.inner, watch.offset, watch.inner_offset)
        self.outermost = watch.outer is None
        if self.outermost:
            watch.begin(frozenset() if nest.spread else nest.hot)
        else:
            watch.begin_inner()

    def piece(self, inner: LaneSet, offset: int) -> None:
        """The next lanes run, after ``offset`` others."""
        if self.watch is None:
            return
        if self.outermost:
            self.watch.outer, self.watch.offset = inner, offset
        else:
            self.watch.inner_offset = offset

    def close(self) -> None:
        """The loop ends."""
        watch = self.watch
        if watch is not None:
            watch.outer, watch.hot, watch.epoch, watch.inner, watch.offset, watch.inner_offset = self.before


def _collapse(
    root: Root, data: Array, home: LaneSet, valid: Array, touched: Array | None, inner: LaneSet, block: bool
) -> None:
    """Merge the lanes' copies into the array around the loop."""
    unit = f"u{root.unit}"
    copies = root.data.view(unit).reshape(inner.count, -1)
    lanes, flat_indices = np.nonzero(root.touched.reshape(inner.count, -1))
    whole = data.view(unit).reshape(home.count, -1)
    slots = np.broadcast_to(0 if block else inner.within(home), inner.count)[lanes]
    whole[slots, flat_indices] = copies[lanes, flat_indices]
    if valid is not None:
        good = valid.reshape(home.count, -1)
        good[slots, flat_indices] = True
        differ = whole[slots, flat_indices] != copies[lanes, flat_indices]
        good[slots[differ], flat_indices[differ]] = False
        if block:
            good[:, flat_indices] = good[0, flat_indices]
    if touched is not None:
        touched.reshape(home.count, -1)[slots, flat_indices] = True
    if block:
        whole[:, flat_indices] = whole[0, flat_indices]
    root.rebind(data, home, valid)
    root.touched = touched


def compile_update(s: Stmt, scope: CompileScope) -> Statement:
    """Return the function of a reducer store, serialized for lanes with equal elements."""
    number, where = scope.buffer(s.buffer), scope.where
    indices = [compile_expression(i, scope) for i in s.indices]
    found = _operand(s)
    value = compile_expression(s.value if found is None else found[1], scope)
    dtype = nodes.element_type(s.buffer)

    def run(state: State) -> None:
        at = [i(state) for i in indices]
        memory: LaneMemory = state.memories[number]
        flat, inside = memory.locate(at, state.slot(memory.root))
        if state.mask is False or inside is False:
            return
        active = state.active()
        if inside is not None:
            active = active[np.broadcast_to(inside, state.count)[active]]
        flat = np.broadcast_to(flat, state.count)[active]
        if found is not None:
            added = np.broadcast_to(value(state), state.count)[active]
            combine(state, found[0], memory, flat, added, dtype)
            return
        before = state.mask
        order = np.zeros(state.count, np.int64)
        order[active] = ranks(flat)
        for rank in range(int(order[active].max(initial=-1)) + 1):
            state.mask = np.zeros(state.count, np.bool_)
            state.mask[active] = order[active] == rank
            access.store(state, number, at, value(state), where)
        state.mask = before

    return run


def ranks(flat: Array) -> Array:
    """Return the number of earlier entries with the same index."""
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    start = np.r_[True, ordered[1:] != ordered[:-1]][: len(flat)]
    first = np.maximum.accumulate(np.where(start, np.arange(len(flat)), 0)) if len(flat) else ordered
    result = np.empty(len(flat), np.int64)
    result[order] = np.arange(len(flat)) - first
    return result


def combine(state: State, kind: str, memory: LaneMemory, flat: Array, values: Array, dtype: str) -> None:
    """Combine elements with values by a kind of reduction, where several may update one element."""
    if not len(flat):
        return
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    flat_indices = ordered[starts]
    x, old = (elements.decode(state.flushed(v, dtype), dtype) for v in (values[order], memory.flat[flat_indices]))
    if kind == "sum":
        wide = x.astype(np.float64) if x.dtype.kind == "f" else x
        total = np.add.reduceat(wide, starts) + old
        if state.shaker is not None and x.dtype.kind == "f":
            total = state.shaker.shaken(total, np.add.reduceat(np.abs(wide), starts) + np.abs(old), dtype)
    elif kind in BITS:
        total = BITS[kind](BITS[kind].reduceat(x, starts), old)
    else:
        name = "float32" if dtype in elements.CODED else dtype
        total = extremes.extreme(kind, extremes.reduce_runs(kind, x, starts), old, name)
    memory.flat[flat_indices] = elements.encode(total, dtype) if dtype in elements.CODED else total.astype(memory.kind)


def _operand(s: Stmt) -> tuple[str, Expr] | None:
    """Return the operation and operand of a store that updates its own element."""
    node = s.value
    kind = _NODES.get(type(node).__name__)
    if isinstance(node, ir.Call):
        kind = _CALLS.get(nodes.operator_name(node))
        sides = list(node.args) if kind else []
    else:
        sides = [node.a, node.b] if kind else []
    for own, other in (sides, sides[::-1]) if sides else ():
        same = isinstance(own, ir.TensorLoad) and own.source.same_as(s.buffer)
        if same and all(
            tvm_ffi.structural_equal(a, b, map_free_vars=False) for a, b in zip(own.indices, s.indices, strict=True)
        ):
            return None if any(x.source.same_as(s.buffer) for x in loads_of(other)) else (str(kind), other)
    return None


def _ordered(s: Stmt, scope: CompileScope) -> bool:
    """Whether a nest reads a reducer elsewhere than in an update of it."""
    reducers = [b for b, n in scope.buffers.items() if n in scope.reducers]
    if not reducers:
        return False
    total = sum(1 for x in loads_of(s) if x.source in reducers)
    updates = sum(
        sum(1 for x in loads_of(st.value) if x.source.same_as(st.buffer))
        for st in collect(s, tirx.BufferStore)
        if st.buffer in reducers
    )
    return total != updates


def _written(s: Stmt) -> list[BufferVar]:
    """Return the buffers that a statement may write, also through tile ops."""
    found = [st.buffer for st in collect(s, tirx.BufferStore)]
    for call in collect(s, ir.Call):
        if nodes.is_tile_call(call):
            found += [a.source for a in call.args if hasattr(a, "region")]
    return list(dict.fromkeys(found))
