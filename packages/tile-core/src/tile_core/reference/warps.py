"""Warp operations: shuffles, votes and reductions over the threads of a block.

A warp is ``width`` neighbouring threads of a block; the last one may have fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.reference import extremes
from tile_core.reference.elements import decode, encode, holder

if TYPE_CHECKING:
    from tile_core.reference.state import State

__all__ = ["reduce", "shuffle", "vote"]


def shuffle(state: State, name: str, value: Array, amount: Array, width: int) -> Array:
    """Return the value of another lane: by number, or by distance from one's own."""
    count, width = state.count, width or state.width
    value, lanes = np.broadcast_to(value, count), np.arange(count)
    amount = np.broadcast_to(amount, count).astype(np.int64)
    lane = lanes % width
    source = {
        "shfl_sync": amount % width, "shfl_xor": lane ^ amount, "shfl_up": lane - amount, "shfl_down": lane + amount
    }[name]  # fmt: skip
    first = lanes - lane
    inside = (source >= 0) & (source < width) & (first + source < count)
    return value[first + np.where(inside, source, lane)]


def vote(state: State, name: str, condition: Array) -> Array:
    """Return the conditions of a warp's lanes as bits, or whether some or all hold."""
    rows = _rows(state, np.broadcast_to(condition, state.count), name == "all_sync")
    if name == "ballot":
        bit = np.left_shift(np.uint64(1), np.arange(state.width, dtype=np.uint64))
        result = np.where(rows, bit, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    else:
        result = rows.all(axis=1) if name == "all_sync" else rows.any(axis=1)
    return _spread(state, result)


def reduce(state: State, kind: str, value: Array, dtype: str) -> Array:
    """Return the sum, extreme or bitwise combination of a warp's existing lanes."""
    x = decode(state.flushed(np.broadcast_to(value, state.count), dtype), dtype)
    if kind in ("max", "min"):
        # A lane that does not exist repeats the last one that does.
        rows = np.pad(x, (0, -len(x) % state.width), mode="edge").reshape(-1, state.width)
        return _spread(state, _typed(extremes.reduce(kind, rows, 1, False), dtype))
    start = {"sum": 0, "bitor": 0, "bitand": -1}[kind]
    filler = x.dtype.type(0) if start == 0 else np.invert(x.dtype.type(0))
    rows = _rows(state, x, filler)
    if kind == "sum":
        wide = np.float64 if rows.dtype.kind == "f" else rows.dtype
        return _spread(state, _typed(rows.sum(axis=1, dtype=wide), dtype))
    return _spread(state, (np.bitwise_and if kind == "bitand" else np.bitwise_or).reduce(rows, axis=1))


def _typed(x: Array, dtype: str) -> Array:
    return encode(x, dtype) if dtype == "bfloat16" else x.astype(holder(dtype))


def _rows(state: State, x: Array, filler: Array) -> Array:
    padded = np.full(-(-state.count // state.width) * state.width, filler, x.dtype)
    padded[: state.count] = x
    return padded.reshape(-1, state.width)


def _spread(state: State, per_warp: Array) -> Array:
    return np.repeat(per_warp, state.width)[: state.count]
