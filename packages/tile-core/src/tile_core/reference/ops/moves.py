"""Copies, fills, transposes, gathers and scatters of whole tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.ir.attributes import ROUND, SRC_DIMS
from tile_core.reference.elements import nothing, round_tfloat32

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall
    from tile_core.reference.ops.regions import MemoryRegion

__all__ = ["copy", "fill", "gather", "scatter", "transpose"]


def copy(call: BoundCall) -> None:
    """Execute ``dst[...] = src[...]``, reading the whole source first."""
    src, dst = call.args
    needed = None if dst.whole else dst.exists().reshape(src.extents)
    values = src.read(needed)
    if call.attrs.get(ROUND) is not None:
        values = dst.state.flushed(round_tfloat32(dst.state.flushed(values, src.dtype), src.dtype), dst.dtype)
    else:
        values = dst.state.converted(values, src.dtype, dst.dtype)
    dst.write(np.reshape(values, dst.extents))


def fill(call: BoundCall) -> None:
    """``dst[...] = value``."""
    dst, value = call.args
    dst.write(dst.state.converted(value, call.types[1], dst.dtype))


def transpose(call: BoundCall) -> None:
    """``dst[..., j, i] = src[..., i, j]``."""
    src, dst = call.args
    shape = [src.extents[int(d)] for d in call.attrs[SRC_DIMS]]
    values = np.swapaxes(src.numbers(dst.dtype).reshape(shape), -1, -2)
    dst.write(values.reshape(dst.extents))


def gather(call: BoundCall) -> None:
    """``dst[i] = src[rows[i]]``, or zero where that row does not exist."""
    src, rows, dst = call.args
    result = np.full((len(_numbers(rows)), *src.extents[1:]), nothing(dst.dtype))
    for i, row in enumerate(_numbers(rows)):
        if 0 <= row < src.extents[0]:
            result[i] = _row(src, row).numbers(dst.dtype)[0]
    dst.write(result.reshape(dst.extents))


def scatter(call: BoundCall) -> None:
    """``dst[rows[i]] = src[i]`` in the order of the rows, unless that row does not exist."""
    src, dst, rows = call.args
    numbers = _numbers(rows)
    exists = np.array([0 <= row < dst.extents[0] for row in numbers])
    columns = dst.extents[1:]
    needed = np.broadcast_to(exists.reshape(-1, *(1 for _ in columns)), (len(numbers), *columns)).reshape(src.extents)
    values = src.numbers(dst.dtype, needed).reshape(len(numbers), *columns)
    for i, row in enumerate(numbers):
        if exists[i]:
            _row(dst, row).write(values[i][None])


def _numbers(rows: MemoryRegion) -> list[int]:
    return [int(r) for r in rows.read().reshape(-1)]


def _row(table: MemoryRegion, row: int) -> MemoryRegion:
    return table.at((table.mins[0] + row, *table.mins[1:]), (1, *table.extents[1:]))
