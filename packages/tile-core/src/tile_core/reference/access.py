"""Load and store one element per lane, with masks, bounds and the sanitizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.reference.elements import nothing
from tile_core.reference.lanes import both
from tile_core.reference.memory import LaneMemory

if TYPE_CHECKING:
    from tile_core.reference.state import State

__all__ = ["load", "store"]


def load(state: State, number: int, indices: Sequence[Array], where: Where | None, atomic: str | None = None) -> Array:
    """Return the element at each lane's indices, or the fill value outside.

    Parameters
    ----------
    atomic
        Of an atomic load: its memory order.
    """
    memory: LaneMemory = state.memories[number]
    flat, inside = memory.locate(indices, state.slot(memory.root))
    watch = state.sanitizer
    if inside is not None and watch is not None and state.mask is not False:
        watch.outside(state, memory, indices, inside, "read", where)
    if inside is False:
        return fill(state, number)
    if watch is not None:
        watch.read(state, number, memory, flat, inside, where, "read" if atomic is None else "load")
        if atomic is not None:
            watch.blocks.order(memory, _active(state, memory, flat, inside), atomic, "load")
    value = memory.flat[flat]
    return value if inside is None else np.where(inside, value, fill(state, number))


def store(
    state: State, number: int, indices: Sequence[Array], value: Array, where: Where | None, kind: str = "write",
    order: str = "relaxed",
) -> None:  # fmt: skip
    """Write an element of a buffer in each active lane; nothing where that lies outside.

    Parameters
    ----------
    kind
        See ``Sanitizer.write``.
    order
        The memory order of an atomic store.
    """
    if state.mask is False:
        return
    memory: LaneMemory = state.memories[number]
    root = memory.root
    flat, inside = memory.locate(indices, state.slot(root))
    watch = state.sanitizer
    if inside is not None:
        if watch is not None:
            watch.outside(state, memory, indices, inside, "written", where)
        if inside is False:
            return
    uniform = not isinstance(flat, np.ndarray) and not isinstance(value, np.ndarray)
    if uniform and watch is None and root.touched is None:
        memory.flat[flat] = value
        return
    mask = state.mask if inside is None else both(state.mask, inside)
    if mask is False:
        return
    active = state.lanes.numbers if mask is None else state.lanes.numbers[mask]
    if isinstance(flat, np.ndarray) and mask is not None:
        flat = flat[active]
    if isinstance(value, np.ndarray) and value.ndim:
        value = value if mask is None else value[active]
        if not isinstance(flat, np.ndarray):  # all write one element: the last lane wins
            flat = np.full(len(active), flat)
    if kind == "update" and watch is not None:
        watch.blocks.order(memory, np.atleast_1d(flat) * memory.ratio, order, "store")
    _write(state, number, memory, flat, value, active, where, kind)


def fill(state: State, number: int) -> Array:
    """Return the value of an out-of-bounds read."""
    found = state.fills.get(number)
    return nothing(state.memories[number].dtype) if found is None else found


def _write(
    state: State, number: int, memory: LaneMemory, flat: Array, value: Array, active: Array, where: Where | None,
    kind: str,
) -> None:  # fmt: skip
    watch, root = state.sanitizer, memory.root
    if watch is None:
        memory.flat[flat] = value
    else:
        same = bits(memory.flat[flat]) == bits(value)
        watch.write(state, number, memory, flat, active, same, where, kind)
        memory.flat[flat] = value
        if isinstance(flat, np.ndarray) and isinstance(value, np.ndarray):
            lost = bits(memory.flat[flat]) != bits(value)
            if lost.any():
                watch.clash(memory, int(flat[lost][0]), where)
    if root.touched is not None:
        at = flat if memory.ratio == 1 else _units(memory, flat)
        root.touched[at] = True


def _active(state: State, memory: LaneMemory, flat: Array, inside: Array | None) -> Array:
    """Return the first unit of each element that an active lane accesses."""
    active = state.active()
    if inside is not None:
        active = active[np.broadcast_to(inside, state.count)[active]]
    return np.broadcast_to(flat, state.count)[active] * memory.ratio


def _units(memory: LaneMemory, flat: Array) -> Array:
    """Return the units of elements."""
    return (np.atleast_1d(flat)[:, None] * memory.ratio + np.arange(memory.ratio)).reshape(-1)


def bits(x: Array) -> Array:
    """Return values as what compares equal exactly if all bits do."""
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "f" else x
