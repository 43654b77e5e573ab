"""Making memory: scratch buffers, views of other buffers, and tensors at an address."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.reference.elements import holder
from tile_core.reference.lanes import LaneSet
from tile_core.reference.memory import LaneMemory, Root, row_major

if TYPE_CHECKING:
    from tile_core.reference.state import State

__all__ = ["at_address", "poisoned", "scratch", "view"]


def scratch(
    state: State, dtype: str, shape: Sequence[int], home: LaneSet | None, unit: int, name: str, scope: str
) -> LaneMemory:
    """Return a new scratch buffer: filled with poison, and marked as uninitialized."""
    count = math.prod(shape) * (1 if home is None else home.count)
    data = poisoned(count, dtype)
    valid = None
    if state.sanitizer is not None:
        valid = np.zeros(count * data.dtype.itemsize // unit, np.bool_)
    return LaneMemory(Root(data, home, valid, unit, name, scope), dtype, shape)


def poisoned(count: int, dtype: str) -> Array:
    """Return a flat array of NaN in floats, -1 in integers, True in bools."""
    kind = holder(dtype)
    if kind == np.bool_:
        return np.ones(count, np.bool_)
    data = np.full(count * kind.itemsize, 0xFF, np.uint8).view(kind)
    if DTYPES[dtype].is_packed and DTYPES[dtype].kind != "int":
        data &= 15
    return data


def view(shown: LaneMemory, dtype: str, shape: Sequence[int]) -> LaneMemory:
    """Return a buffer that shows the storage of another with another shape or element type."""
    return LaneMemory(shown.root, dtype, shape, table=shown.table)


def at_address(address: Any, dtype: str, shape: Sequence[int], strides: Sequence[int] | None, name: str) -> LaneMemory:
    """Return a tensor at an address: an int, a ``ctypes`` pointer, or an array's start."""
    kind = holder(dtype)
    steps = row_major(shape) if strides is None else tuple(strides)
    empty = 0 in shape
    span = 0 if empty else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    if isinstance(address, np.ndarray):
        data = address.reshape(-1).view(np.uint8)[: span * kind.itemsize].view(kind)
    else:
        raw = (ctypes.c_uint8 * (span * kind.itemsize)).from_address(int(getattr(address, "value", address)))
        data = np.frombuffer(raw, kind)
    root = Root(data, None, None, kind.itemsize, name, "global")
    root.shared = True
    return LaneMemory(root, dtype, shape, strides)
