"""Shuffles and votes of a group's lanes.

The mask must be exactly the lanes that execute them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from machine.state import State
from tile_core.compat.types import Array

__all__ = ["group_reduce", "shuffle", "vote"]


def shuffle(state: State, mask: Array, value: Array, amount: Array, on: Array, *, mode: str, part: int) -> Array:
    """Return the value of another lane of the ``part`` of a group."""
    assert value.dtype == np.uint32
    state.shuffles += 1
    first = _first(state, mask, on)
    lane = np.arange(state.count) - first
    low = lane // part * part
    by = amount & (state.width - 1)
    if mode == "idx":
        source, inside = low | (by & (part - 1)), np.ones(state.count, dtype=bool)
    elif mode == "up":
        source = lane - by
        inside = source >= low
    else:
        source = lane + by if mode == "down" else lane ^ by
        inside = source <= low + part - 1
    source = np.where(inside, source, lane) + first
    assert (source < state.count)[on].all(), "a lane that does not exist is read"
    return value[np.minimum(source, state.count - 1)]


def vote(state: State, mask: Array, condition: Array, on: Array, *, mode: str, kind: np.dtype[Any]) -> Array:
    """Return the conditions of a group's lanes as bits, or whether any or all hold."""
    _first(state, mask, on)
    found: list[Array] = []
    for low in range(0, state.count, state.width):
        here = condition[low : low + state.width]
        value = sum(1 << k for k, x in enumerate(here) if x) if mode == "ballot" else getattr(here, mode)()
        found += [value] * len(here)
    return np.array(found, dtype=kind)


def group_reduce(state: State, mask: Array, value: Array, on: Array, *, kind: str) -> Array:
    """Return the values of a group's lanes combined; floats are added up in some order."""
    _first(state, mask, on)
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum, "bitand": np.bitwise_and, "bitor": np.bitwise_or}[
        kind
    ]
    assert value.dtype in (np.int32, np.uint32) or (kind == "sum" and value.dtype == np.float32)
    found = value.copy()
    for low in range(0, state.count, state.width):
        part = value[low : low + state.width]
        assert len(part) == state.width, "a group has fewer lanes than the instruction combines"
        found[low : low + state.width] = combine.reduce(part[::-1], dtype=value.dtype)
    return found


def _first(state: State, mask: Array, on: Array) -> Array:
    """Return for each lane the first of its group."""
    for low in range(0, state.count, state.width):
        here = on[low : low + state.width]
        if here.any():
            assert here.all(), "a lane that exists does not take part"
            assert (mask[low : low + len(here)] == (1 << len(here)) - 1).all(), "the mask does not fit"
    return np.arange(state.count) // state.width * state.width
