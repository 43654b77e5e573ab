"""Remainders, masks and narrow values of loop counters stay right in LLVM's vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.cpu.counters import hide_counters
from tile_core.ir import nodes
from tile_core.ir.visit import collect


@pytest.mark.parametrize("kind", ["int32", "float32", "int8", "int64"])
def test_a_remainder_beside_a_guard(kind):
    @T.prim_func
    def wraps(C: T.Tensor((5, 4), kind), A: T.Tensor((16, 3), kind), B: T.Tensor((16, 64), kind)):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(16, 64):
                B[i, j] = C[(i + 1) % 5, (j + 5) % 4] + T.if_then_else(j < 3, A[i, 0], 0)

    rng = np.random.default_rng()
    c, a = rng.integers(1, 60, (5, 4)).astype(kind), rng.integers(-9, 9, (16, 3)).astype(kind)
    b = np.full((16, 64), 77, kind)
    tile.compile(wraps, "cpu")(c, a, b)
    i, j = np.mgrid[:16, :64]
    np.testing.assert_array_equal(b, c[(i + 1) % 5, (j + 5) % 4] + np.where(j < 3, a[:, :1], 0).astype(kind))


def _hidden(value, *, extent=64, start=0, kind="serial"):
    """Count the opaque products of a statement that stores a loop variable ``j``."""
    j = nodes.fresh("j", "int32")
    out = tirx.decl_buffer((64,), "int32", "out", layout=None)
    body = tirx.BufferStore(out, value(j), [j])
    loop = nodes.for_loop(j, extent, body, kind, start=nodes.int_const(start))
    return sum("umul.fix" in str(call) for call in collect(hide_counters(loop), ir.Call))


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        (lambda j: tirx.BitwiseAnd(j, nodes.int_const(3)), 1),
        (lambda j: tirx.Mod(j, nodes.int_const(8)), 1),
        (lambda j: tirx.Cast("int32", tirx.Cast("int8", j * 5)), 1),
        (lambda j: tirx.Cast("int32", tirx.Cast("uint16", j - 9)), 1),
        (lambda j: tirx.RShift(j - 9, nodes.int_const(2)), 1),
        (lambda j: tirx.BitwiseAnd(j, nodes.int_const(63)), 0),  # every value is below 64
        (lambda j: tirx.Mod(j, nodes.int_const(5)), 0),
        (lambda j: tirx.Cast("int32", tirx.Cast("uint8", j)), 0),
        (lambda j: tirx.RShift(j, nodes.int_const(2)), 0),
        (lambda j: j * 3, 0),
    ],
)
def test_values_that_wrap_are_hidden(value, hidden):
    assert _hidden(value) == hidden


def test_data_are_not_hidden():
    data = tirx.decl_buffer((64,), "int8", "data", layout=None)
    assert _hidden(lambda j: tirx.Cast("int32", tirx.BufferLoad(data, [j]))) == 0


@pytest.mark.parametrize("extent", [61, 37])
def test_constants_that_are_cut(extent):
    @T.prim_func
    def cuts(C: T.Tensor((7,), "float64"), B: T.Tensor((extent,), "float64")):
        with T.Kernel(1, threads=64):
            for j in T.Parallel(extent):
                B[j] = C[T.cast(T.cast((j * 2 - 3) * 30, "int8"), "int32") % 7]

    c, b = np.random.default_rng().random(7), np.full(extent, np.nan)
    tile.compile(cuts, "cpu")(c, b)
    np.testing.assert_array_equal(b, c[((np.arange(extent) * 2 - 3) * 30).astype("int8").astype("int32") % 7])
