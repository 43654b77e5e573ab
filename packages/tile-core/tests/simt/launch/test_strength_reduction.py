"""Remainders of a loop's variable against the variable that replaces them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import RING, ROLE
from tile_core.ir.visit import StmtRewriter, collect, replace_for
from tile_core.simt.launch.strength_reduction import reduce_strength

from ..executed import executed


class Marked(StmtRewriter):
    def visit_For(self, s):
        return replace_for(s, s.body, annotations={ROLE: "serial", RING: 1})


def remainders(start, trips, away, period):
    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), B: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=1) as _:
            for k in T.serial(trips):
                A[k] = 1000
                B[k] = 1000

    k = next(s.loop_var for s in collect(main.func.body, tirx.For) if nodes.as_int(s.extent) == trips)
    here, there = nodes.fresh("here"), nodes.fresh("there")
    a, b = (p for p in main.func.params if tirx.is_buffer_var(p))

    class Bound(StmtRewriter):
        def visit_For(self, s):
            if not s.loop_var.same_as(k):
                return super().visit_For(s)
            n = nodes.int_const(period)
            body = [
                tirx.Bind(here, tirx.floormod(k, n)), tirx.Bind(there, tirx.floormod(k + away, n)),
                nodes.store(a, here, [k]), nodes.store(b, there, [k]),
            ]  # fmt: skip
            return Marked().stmt(replace_for(s, nodes.seq(body), min=nodes.int_const(start)))

    return main, Bound().stmt(main.func.body), (a, b)


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("away", [-2, 0, 1, 2, 7])
@pytest.mark.parametrize("period", [2, 3, 4])
def test_values(start, away, period):
    trips = 11
    _, body, (a, b) = remainders(start, trips, away, period)
    new = reduce_strength(body)
    assert collect(body, tirx.FloorMod)
    assert not collect(new, tirx.FloorMod)
    arrays = executed(new, {p: np.full(40, -1, "int32") for p in (a, b)})
    k = np.arange(start, start + trips)
    np.testing.assert_array_equal(arrays[a][k], k % period)
    np.testing.assert_array_equal(arrays[b][k], (k + away) % period)
    assert (np.delete(arrays[a], k) == -1).all()


def test_loops_without_a_mark_stay():
    _, body, _ = remainders(0, 11, 1, 3)

    class Plain(StmtRewriter):
        def visit_For(self, s):
            s = super().visit_For(s)
            return replace_for(s, s.body, annotations={k: v for k, v in s.annotations.items() if str(k) != RING})

    plain = Plain().stmt(body)
    assert len(collect(reduce_strength(plain), tirx.FloorMod)) == len(collect(plain, tirx.FloorMod)) > 0
