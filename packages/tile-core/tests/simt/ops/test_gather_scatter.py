"""Gathers and scatters as nests, against numpy: any rows, duplicates in order, slices, one column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import Machine

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.ops.base import OpCall
from tile_core.simt.ops.gather_scatter import GatherElements, ScatterColumns

from ..bench import CTX, buffer, view


def run(variant: Any, data: dict[str, Any], regions: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    names = {"gather": ("src", "rows", "dst"), "scatter": ("src", "dst", "rows")}[variant.op]
    buffers = {n: buffer(data[n].shape, str(data[n].dtype), n, "global") for n in names}
    args = tuple(view(buffers[n], *regions.get(n, (None, None))) for n in names)
    body = variant.lower(OpCall(variant.op, args), CTX)
    machine = Machine(1, nodes.fresh("t"), {buffers[n]: data[n].copy() for n in names}, races=True)
    machine.run(body)
    return {n: machine.memory.arrays[buffers[n]] for n in names}, body


@pytest.mark.parametrize("count", [1, 7, 33])
@pytest.mark.parametrize("columns", [(1,), (5,), (3, 4)])
def test_gather(count: int, columns: tuple[int, ...]) -> None:
    rng = np.random.default_rng(count)
    src = rng.integers(-9, 9, (11, *columns)).astype(np.float32)
    rows = rng.integers(-3, 14, count).astype(np.int32)
    found, body = run(
        GatherElements("core"), {"src": src, "rows": rows, "dst": np.full((count, *columns), -1, np.float32)}, {}
    )
    inside = (rows >= 0) & (rows < 11)
    want = np.where(inside.reshape(-1, *[1] * len(columns)), src[np.where(inside, rows, 0)], 0)
    np.testing.assert_array_equal(found["dst"], want)
    assert all(role(loop) == "parallel" for loop in collect(body, tirx.For))


@pytest.mark.parametrize("count", [1, 7, 33])
@pytest.mark.parametrize("columns", [(1,), (5,), (3, 4)])
def test_scatter_of_equal_rows(count: int, columns: tuple[int, ...]) -> None:
    rng = np.random.default_rng(count)
    src = rng.integers(-9, 9, (count, *columns)).astype(np.int32)
    rows = rng.integers(-3, 14, count).astype(np.int64)
    dst = np.full((11, *columns), 77, np.int32)
    found, body = run(ScatterColumns("core"), {"src": src, "rows": rows, "dst": dst}, {})
    for i, row in enumerate(rows):
        if 0 <= row < 11:
            dst[row] = src[i]
    np.testing.assert_array_equal(found["dst"], dst)
    roles = [role(loop) for loop in collect(body, tirx.For)]
    assert roles.count("serial") == 1 or count == 1


def test_corners_and_conversions() -> None:
    src = np.arange(60, dtype=np.float32).reshape(10, 6)
    rows = np.array([5, 0, 7, 8], np.int32)
    regions = {"src": ((2, 1), (8, 4)), "dst": ((1, 0), (4, 4))}
    data = {"src": src, "rows": rows, "dst": np.zeros((6, 4), np.float64)}
    found, _ = run(GatherElements("core"), data, regions)
    want = np.zeros((6, 4))
    want[1:4] = src[[7, 2, 9], 1:5]
    np.testing.assert_array_equal(found["dst"], want)
    data = {"src": np.ones((4, 4), np.float32), "rows": rows, "dst": np.zeros((10, 6), np.float32)}
    found, _ = run(ScatterColumns("core"), data, {"dst": ((2, 1), (8, 4))})
    want = np.zeros((10, 6))
    want[[7, 2, 9], 1:5] = 1
    np.testing.assert_array_equal(found["dst"], want)
