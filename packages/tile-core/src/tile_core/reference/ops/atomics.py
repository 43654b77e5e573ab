"""Atomic updates, loads and stores: every active lane performs its own, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.errors.execution import ReadUnwritten
from tile_core.ir import attributes, nodes
from tile_core.ops.atomic import COMBINED_AS
from tile_core.ops.base import OpCall, View
from tile_core.reference import access, extremes
from tile_core.reference.elements import CODED, convert, holder
from tile_core.reference.expressions import compile_expression
from tile_core.reference.ops.operands import RegionOperand
from tile_core.reference.parallel import BITS, combine, ranks
from tile_core.reference.scope import CompileScope, Expression
from tile_core.reference.state import State

if TYPE_CHECKING:
    from tile_core.errors.base import Where
    from tile_core.reference.memory import LaneMemory

__all__ = ["NAMES", "compile_atomic"]

#: The calls that are compiled here.
NAMES = frozenset({"atomic", "atomic_tile", "atomic_fill", "atomic_load", "atomic_store"})


def compile_atomic(call: OpCall, scope: CompileScope) -> Expression:
    """Return the function of an atomic call; its value is the element's old value."""
    dst = RegionOperand(call.args[0], scope)
    where, types = scope.where, [a.dtype if isinstance(a, View) else nodes.dtype_of(a) for a in call.args]
    order = str(call.attrs.get(attributes.ORDER, "relaxed"))
    scope.ordered |= order != "relaxed"
    if call.name in ("atomic_load", "atomic_store"):
        if call.name == "atomic_load":
            return lambda state: access.load(state, dst.number, dst.corner(state), where, order)
        stored = compile_expression(call.args[1], scope)

        def store(state: State) -> None:
            value = state.converted(stored(state), types[1], types[0])
            access.store(state, dst.number, dst.corner(state), value, where, "update", order)

        return store
    shape = tuple(int(e) for e in call.args[0].extents)
    kind = COMBINED_AS.get(str(call.attrs[attributes.KIND]), str(call.attrs[attributes.KIND]))
    source = RegionOperand(call.args[1], scope) if isinstance(call.args[1], View) else None
    value = None if source is not None else compile_expression(call.args[1], scope)
    vector = call.args[1].extents if source is not None else ()

    def update(state: State) -> Array:
        if state.mask is False:
            return holder(types[0]).type(0)
        indices = _spread(state, dst.corner(state), shape)
        if source is not None:
            read = _spread(state, source.corner(state), tuple(int(e) for e in vector))
            x = _read(state, source.number, read, where)
        else:
            assert value is not None
            x = np.repeat(np.broadcast_to(value(state), state.count)[state.active()], int(np.prod(shape)))
        x = state.flushed(state.converted(x, types[1], types[0]), types[0])
        return _update(state, dst.number, indices, x, kind, types[0], order, where)

    return update


def _spread(state: State, corner: list[Array], shape: tuple[int, ...]) -> list[Array]:
    """Return the indices of a region's elements for each active lane in order."""
    active = state.active()
    offsets = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    result = []
    for low, offset in zip(corner, offsets, strict=True):
        base = np.broadcast_to(low, state.count)[active].astype(np.int64)
        result.append((base[:, None] + offset).reshape(-1))
    return result


def _located(state: State, number: int, indices: list[Array], count: int) -> tuple[LaneMemory, Array, Array]:
    """Return the flat indices of elements, and which of them exist."""
    memory: LaneMemory = state.memories[number]
    slots = state.slot(memory.root)
    active = state.active()
    if not isinstance(slots, int):
        slots = np.repeat(slots[active], max(1, count // max(1, len(active))))
    flat, inside = memory.locate(indices, slots)
    exists = np.ones(count, np.bool_) if inside is None else np.broadcast_to(inside, count)
    return memory, np.broadcast_to(flat, count), exists


def _read(state: State, number: int, indices: list[Array], where: Where | None) -> Array:
    count = len(indices[0]) if indices else len(state.active())
    memory, flat, exists = _located(state, number, indices, count)
    _check(state, memory, flat[exists], where)
    return np.where(exists, memory.flat[np.where(exists, flat, 0)], access.fill(state, number))


def _update(
    state: State, number: int, indices: list[Array], x: Array, kind: str, dtype: str, order: str, where: Where | None
) -> Array:
    memory, flat, exists = _located(state, number, indices, len(x))
    flat_indices, values = flat[exists], x[exists]
    _check(state, memory, flat_indices, where, order)
    previous = np.full(len(x), access.fill(state, number))
    if dtype in ("float16", "bfloat16") or len(x) == state.count or len(x) == len(state.active()):
        previous[exists] = _one_by_one(memory, flat_indices, values, kind, dtype)
        if state.shaker is not None and kind == "sum" and DTYPES[dtype].is_float:
            memory.flat[flat_indices] = state.shaker.nudged(memory.flat[flat_indices], dtype, 4)
    else:
        combine(state, kind, memory, flat_indices, values, dtype)
    if len(x) != len(state.active()):
        return previous[0] if len(previous) else holder(dtype).type(0)
    if state.count == 1:
        return previous[0]
    result = np.zeros(state.count, memory.kind)
    result[state.active()] = previous
    return result


def _one_by_one(memory: LaneMemory, flat_indices: Array, values: Array, kind: str, dtype: str) -> Array:
    """Update elements in the order of the lanes; return each lane's previous value."""
    previous = np.empty(len(flat_indices), memory.kind)
    order = ranks(flat_indices)
    for repetition in range(int(order.max(initial=-1)) + 1):
        now = order == repetition
        old = memory.flat[flat_indices[now]]
        previous[now] = old
        memory.flat[flat_indices[now]] = _combined(kind, old, values[now], dtype)
    return previous


def _combined(kind: str, old: Array, x: Array, dtype: str) -> Array:
    if kind in BITS:
        return BITS[kind](old, x)
    if kind != "sum":
        return extremes.extreme(kind, old, x, dtype)
    if dtype in ("float16", *CODED):
        total = convert(old, dtype, "float32") + convert(x, dtype, "float32")
        return convert(total, "float32", dtype)
    return old + x


def _check(state: State, memory: LaneMemory, flat: Array, where: Where | None, order: str | None = None) -> None:
    """Refuse an uninitialized or racing element of a read or ordered update."""
    valid, watch = memory.root.valid, state.sanitizer
    if watch is None or not len(flat):
        return
    units = watch.units(memory, flat)
    if valid is not None and not valid[units].all():
        unit = int(units[~valid[units]][0])
        raise ReadUnwritten(buffer=memory.root.name, index=memory.coordinates(unit // memory.ratio), where=where)
    if memory.root.shared and watch.blocks.several:
        if order is not None:
            watch.blocks.order(memory, units, order, "update")
        watch.blocks.access("read" if order is None else "update", memory, units, where)
