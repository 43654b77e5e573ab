"""Groups of 16, 32 and 64 threads: lanes, masks, ballots, shuffles, and the ops that are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import ir
from tile_core.errors.lowering import ShuffleTooWide
from tile_core.ir import nodes
from tile_core.ir.visit import collect

from .whole import run

WIDTHS = (16, 32, 64)
THREADS = (16, 40, 64, 100, 192)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_votes_and_shuffles(width: int, threads: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((threads,), "int32"), B: T.Tensor((7, threads), "int32"), V: T.Tensor((threads,), "uint64")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            mine = A[tx]
            B[0, tx] = T.get_warp_idx() * 1000 + T.get_lane_idx()
            V[tx] = T.ballot(mine > 0)
            B[1, tx] = T.shfl_xor(mine, 9)
            B[2, tx] = T.shfl_up(mine, 3)
            B[3, tx] = T.shfl_down(mine, 5)
            B[4, tx] = T.shfl_sync(mine, tx + 1)
            B[5, tx] = T.warp_reduce_sum(mine)
            B[6, tx] = T.warp_reduce_max(mine)

    a = np.random.default_rng(threads).integers(-99, 99, threads, dtype=np.int32)
    b, v = np.zeros((7, threads), np.int32), np.zeros(threads, np.uint64)
    plan = run(main, a, b, v, width=width)
    t = np.arange(threads)
    lane, first = t % width, t // width * width

    def other(source: Any) -> Any:
        inside = (source >= 0) & (source < width) & (first + source < threads)
        return a[np.where(inside, first + source, t)]

    np.testing.assert_array_equal(b[0], t // width * 1000 + lane)
    groups = [a[low : low + width] for low in first]
    bits = [sum(1 << k for k, x in enumerate(g) if x > 0) for g in groups]
    np.testing.assert_array_equal(v, np.array(bits, np.uint64))
    np.testing.assert_array_equal(b[1], other(lane ^ 9))
    np.testing.assert_array_equal(b[2], other(lane - 3))
    np.testing.assert_array_equal(b[3], other(lane + 5))
    np.testing.assert_array_equal(b[4], other((t + 1) % width))
    np.testing.assert_array_equal(b[5], [g.sum() for g in groups])
    np.testing.assert_array_equal(b[6], [g.max() for g in groups])
    masks = [c.args[0] for c in collect(plan.body, ir.Call) if nodes.is_tile_call(c, "shuffle")]
    assert {nodes.dtype_of(m) for m in masks} == {"uint64" if width == 64 else "uint32"}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("width", WIDTHS)
def test_reductions_scans_and_reducers(width: int, threads: int) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((6, 150), "int32"), R: T.Tensor((6,), "int32"), S: T.Tensor((6, 150), "int32"),
        M: T.Tensor((6,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a, s = T.alloc_fragment((6, 150), "int32"), T.alloc_shared((6, 150), "int32")
            r, top = T.alloc_fragment((6,), "int32"), T.alloc_reducer((6,), "int32", op="max")
            T.copy(A, a)
            T.reduce_sum(a, r, dim=1)
            for i, j in T.Parallel(6, 150):
                top[i] = T.max(top[i], a[i, j])
            T.finalize_reducer(top)
            T.cumsum(a, s, dim=1)
            T.copy(r, R)
            T.copy(s, S)
            T.copy(top, M)

    a = np.random.default_rng(threads).integers(-99, 99, (6, 150), dtype=np.int32)
    r, s, m = np.zeros(6, np.int32), np.zeros((6, 150), np.int32), np.zeros(6, np.int32)
    run(main, a, r, s, m, width=width)
    np.testing.assert_array_equal(r, a.sum(1))
    np.testing.assert_array_equal(s, a.cumsum(1))
    np.testing.assert_array_equal(m, a.max(1))


def test_segments_are_no_wider_than_a_group() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            A[tx] = T.shfl_xor(A[tx], 1, 64)

    data = np.arange(64, dtype=np.int32)
    run(main, data, width=64)
    np.testing.assert_array_equal(data, np.arange(64) ^ 1)
    with pytest.raises(ShuffleTooWide):
        run(main, data, width=32)
