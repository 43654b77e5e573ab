"""Maximum and minimum by ``numerics/rules.py``: -0 < +0, NaN is ignored or wins.

Floats are compared by integer keys that are ordered as the numbers are. A NaN becomes a key beyond all others on the
side where it loses, or where it wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.reference.elements import CODED, decode, encode

__all__ = ["accumulate", "extreme", "reduce", "reduce_runs"]


def extreme(kind: str, a: Array, b: Array, dtype: str, nan_propagate: bool = False) -> Array:
    """Return the larger (``"max"``) or smaller (``"min"``) of two values of one type."""
    if not DTYPES[dtype].is_float:
        return (np.maximum if kind == "max" else np.minimum)(a, b)
    if dtype in CODED:
        return encode(extreme(kind, decode(a, dtype), decode(b, dtype), "float32", nan_propagate), dtype)
    a, b = np.broadcast_arrays(a, b)
    pick = np.maximum if kind == "max" else np.minimum
    best = pick(_keys(kind, a, nan_propagate), _keys(kind, b, nan_propagate))
    return _values(best, a.dtype)[()]


def reduce(kind: str, x: Array, axis: int, nan_propagate: bool) -> Array:
    """Return extremes along a non-empty axis, ignoring NaN unless all are NaN."""
    pick = np.maximum if kind == "max" else np.minimum
    if x.dtype.kind != "f":
        return pick.reduce(x, axis=axis)
    return _values(pick.reduce(_keys(kind, x, nan_propagate), axis=axis), x.dtype)


def reduce_runs(kind: str, x: Array, starts: Array) -> Array:
    """Return extremes of runs of a flat array beginning at ``starts``, ignoring NaN."""
    pick = np.maximum if kind == "max" else np.minimum
    if x.dtype.kind != "f":
        return pick.reduceat(x, starts)
    return _values(pick.reduceat(_keys(kind, x, False), starts), x.dtype)


def accumulate(kind: str, x: Array, axis: int, nan_propagate: bool) -> Array:
    """Return the running extremes along an axis (see ``reduce``)."""
    pick = np.maximum if kind == "max" else np.minimum
    if x.dtype.kind != "f":
        return pick.accumulate(x, axis=axis)
    return _values(pick.accumulate(_keys(kind, x, nan_propagate), axis=axis), x.dtype)


def _keys(kind: str, x: Array, nan_propagate: bool) -> Array:
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).view(signed).reshape(np.shape(x))
    info = np.iinfo(signed)
    keys = np.where(bits < 0, bits ^ signed.type(info.max), bits)
    wins = (kind == "max") == nan_propagate
    return np.where(np.isnan(x), signed.type(info.max if wins else info.min), keys)


def _values(keys: Array, kind: np.dtype[Any]) -> Array:
    """Return the numbers of keys; what no number has is NaN."""
    info = np.iinfo(keys.dtype)
    bits = np.where(keys < 0, keys ^ keys.dtype.type(info.max), keys)
    values = np.ascontiguousarray(bits).view(kind).reshape(np.shape(keys))
    return np.where((keys == info.max) | (keys == info.min), kind.type(np.nan), values)
