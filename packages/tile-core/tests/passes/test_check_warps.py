"""Warp operations are refused under conditions that lanes may disagree about, on every target."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import DivergentWarp
from tile_core.passes.check_warps import check_warps
from tile_core.testing.run import load

HEAD = """
import tile_core.language as T

@T.prim_func
def main(A: T.Tensor((96,), "int32"), C: T.Tensor((96,), "int32"), n: T.int32):
    with T.Kernel(2, threads={threads}) as bx:
        tid = T.get_thread_binding(0)
        mine = T.alloc_local((1,), "int32")
        seen = T.alloc_shared((8,), "int32")
        mine[0] = A[tid]
        if tid < 8:
            seen[tid] = A[tid]
        T.sync_threads()
"""

REFUSED = {
    "lanes": "if tid % 32 < 16:\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "lane_index": "if T.get_lane_idx() != 3:\n    mine[0] = T.shfl_down(A[tid], 1)",
    "the_else_branch": "if tid < 40:\n    mine[0] = 0\nelse:\n    mine[0] = T.shfl_up(A[tid], 1)",
    "data": "if A[tid] > 3:\n    mine[0] = T.warp_reduce_sum(A[tid])",
    "private_data": "if mine[0] > 3:\n    mine[0] = T.warp_reduce_max(A[tid])",
    "a_runtime_bound": "if tid < n:\n    mine[0] = T.shfl_sync(A[tid], 0)",
    "half_a_warp": "if tid < 48:\n    mine[0] = T.shfl_sync(A[tid], 0)",
    "a_trip_count": "for i in range(tid % 3):\n    mine[0] += T.shfl_xor(A[tid], 1)",
    "a_while_loop": "while mine[0] > 2:\n    mine[0] = T.shfl_xor(mine[0], 1) - 5",
    "a_while_condition": "while T.any_sync(mine[0] > 2) and mine[0] > 1:\n    mine[0] -= 1",
    "a_break": "for i in range(4):\n    if mine[0] > i:\n        break\n    mine[0] = T.shfl_xor(mine[0], 1)",
    "an_expression": "mine[0] = T.if_then_else(tid % 2 == 0, T.shfl_xor(A[tid], 2), 0)",
    "a_short_circuit": "if tid % 2 == 0 and T.any_sync(A[tid] > 3):\n    mine[0] = 5",
    "a_condition_inside": "if tid % 2 == 0:\n    if T.any_sync(A[tid] > 3):\n        mine[0] = 5",
    "a_barrier_of_the_warp": "if tid == 0:\n    T.sync_warp()\n    mine[0] = 1",
    "a_barrier_in_a_loop": "for i in range(tid % 3):\n    T.sync_warp()",
    "a_shuffled_condition": "if T.shfl_xor(A[tid], 1) > 3:\n    mine[0] = T.shfl_xor(A[tid], 2)",
}

LEGAL = {
    "warps": "if tid < 32:\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "all_of_the_last_warp": "if tid >= 64:\n    mine[0] = T.shfl_xor(A[tid], 1)\nelse:\n    mine[0] = 1",
    "a_barrier_of_some_warps": "if tid < 32:\n    seen[tid % 8] = 7\n    T.sync_warp()\n    mine[0] = seen[0]",
    "warp_index": "if T.get_warp_idx() == 1:\n    mine[0] = T.warp_reduce_sum(A[tid])",
    "a_warp_of_a_runtime_value": "if tid // 32 == n % 3:\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "the_block": "if bx == n:\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "shared_data_of_the_warp": "if seen[tid // 32] % 2 == 0:\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "a_vote": "if T.any_sync(A[tid] > 50):\n    mine[0] = T.shfl_xor(A[tid], 1)",
    "a_trip_count_of_the_block": "for i in range(n + bx):\n    mine[0] = T.shfl_xor(mine[0], i + 1)",
    "a_warp_breaks": "for i in range(4):\n    if i > tid // 32:\n        break\n    mine[0] = T.shfl_up(A[tid], 1)",
    "a_named_warp": "w = tid // 32\nif w != 1:\n    mine[0] = T.shfl_up(A[tid], 1)",
    "a_choice_of_results": "mine[0] = T.if_then_else(tid < 32, T.shfl_xor(A[tid], 1), 7)",
    "beside_a_branch": "x = T.shfl_xor(A[tid], 1)\nif tid % 2 == 0:\n    mine[0] = x",
}


def program(body, threads=96):
    lines = [*HEAD.format(threads=threads).splitlines(), *("        " + x for x in body.splitlines())]
    return load("\n".join([*lines, "        if bx == 0:", "            C[tid] = mine[0]", ""]))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(DivergentWarp, match=r"K224.*T\.\w+\(\) is in control flow that may differ") as caught:
        tile.compile(program(REFUSED[name]), target="cpu")
    assert "T." in str(caught.value).split("-->")[1]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", LEGAL)
def test_legal(name):
    a = np.random.default_rng(5).integers(0, 90, 96).astype("int32")
    c = np.full(96, -1, "int32")
    tile.compile(program(LEGAL[name]), target="cpu")(a, c, 1)
    assert (c >= 0).all()


def test_lanes_are_counted_along_x_first():
    def block(limit):
        @T.prim_func
        def main(C: T.Tensor((4, 16), "int32")):
            with T.Kernel(1, threads=(16, 4)):
                x, y = T.get_thread_binding(0), T.get_thread_binding(1)
                C[y, x] = 0
                if y < limit:
                    C[y, x] = T.shfl_xor(x, 1)

        return main

    c = np.full((4, 16), -1, "int32")
    tile.compile(block(2), target="cpu")(c)
    assert (c[:2] == (np.arange(16) ^ 1)).all()
    assert not c[2:].any()
    with pytest.raises(DivergentWarp):
        tile.compile(block(1), target="cpu")


def test_the_last_warp_may_be_smaller():
    body = "if tid >= 32:\n    mine[0] = T.shfl_xor(A[tid], 1)"
    tile.compile(program(body, threads=40), target="cpu")
    with pytest.raises(DivergentWarp):
        tile.compile(program(body.replace("32", "33"), threads=40), target="cpu")


def test_a_target_says_how_wide_its_warps_are():
    body = program(LEGAL["warps"], threads=128).func.body
    check_warps(body, 32)
    with pytest.raises(DivergentWarp):
        check_warps(body, 64)
