"""Shuffles and votes of the lanes of a group, whose mask must be exactly the lanes that execute them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.testing.machine.state import State

__all__ = ["shuffle", "vote"]


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


def vote(state: State, mask: Array, condition: Array, on: Array, *, mode: str, kind: Any) -> Array:
    """Return the conditions of a group's lanes as bits, or whether any or all hold."""
    _first(state, mask, on)
    found: list[Any] = []
    for low in range(0, state.count, state.width):
        here = condition[low : low + state.width]
        value = sum(1 << k for k, x in enumerate(here) if x) if mode == "ballot" else getattr(here, mode)()
        found += [value] * len(here)
    return np.array(found, dtype=kind)


def _first(state: State, mask: Array, on: Array) -> Array:
    """Return for each lane the first of its group."""
    for low in range(0, state.count, state.width):
        here = on[low : low + state.width]
        if here.any():
            assert here.all(), "a lane that exists does not take part"
            assert (mask[low : low + len(here)] == (1 << len(here)) - 1).all(), "the mask does not fit"
    return np.arange(state.count) // state.width * state.width
