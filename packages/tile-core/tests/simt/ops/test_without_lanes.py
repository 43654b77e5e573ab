"""Targets without lanes: threads combine what they have through shared memory, with the same variants."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import ir
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.ops.atomics import Atomics
from tile_core.simt.ops.common import thread_variants

from ..whole import planned, run


@pytest.mark.parametrize("threads", [1, 40, 64])
def test_reductions_scans_and_reducers(threads: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((9, 48), "int32"), B: T.Tensor((9,), "int32"), C: T.Tensor((9, 48), "int32"),
             D: T.Tensor((9,), "int32")):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a, c = T.alloc_fragment((9, 48), "int32"), T.alloc_shared((9, 48), "int32")
            total, b = T.alloc_reducer((9,), "int32", op="sum"), T.alloc_fragment((9,), "int32")
            T.copy(A, a)
            T.copy(A, c)
            T.reduce_max(a, b, dim=1)
            T.cumsum(c, dim=1)
            for i, j in T.Parallel(9, 48):
                total[i] += A[i, j]
            T.finalize_reducer(total)
            T.copy(b, B)
            T.copy(c, C)
            T.copy(total, D)

    a = np.random.default_rng(threads).integers(-99, 99, (9, 48), dtype=np.int32)
    b, c, d = np.zeros(9, np.int32), np.zeros((9, 48), np.int32), np.zeros(9, np.int32)
    plan = run(main, a, b, c, d, width=1)
    np.testing.assert_array_equal(b, a.max(1))
    np.testing.assert_array_equal(c, np.cumsum(a, 1))
    np.testing.assert_array_equal(d, a.sum(1))
    for found in (plan, planned(main, width=None)):
        assert not [x for x in collect(found.body, ir.Call) if nodes.is_tile_call(x, "shuffle")]


def test_no_backend_gets_a_reducer_that_nobody_combines() -> None:
    class NoAtomics(Atomics):
        accepts = update = fetch = load = store = None  # type: ignore[assignment]

    ops = {v.op: v.name for v in sorted(thread_variants("toy", NoAtomics()), key=lambda v: v.priority)}
    assert ops["finalize_reducer"] == "toy.finalize_reducer.shuffles"
