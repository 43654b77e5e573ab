"""Fences before the barriers of pipelined loops whose tiles the asynchronous proxy reads."""

from __future__ import annotations

import pytest

from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect
from tile_core.simt.barriers.managed_fences import fence_managed
from tile_core.simt.memory.arena import plan_arena

TILE, ALLOCATE = nodes.alloc([256], "float16", "S", "shared")


def region(*accesses):
    """A managed region: a barrier, and an instruction with addresses of the tile."""
    addresses = [calls.address(TILE, [0], access, proxy, align=align) for access, proxy, align in accesses]
    inside = [calls.sync_threads(), calls.execute("matrix_product", addresses)]
    return nodes.seq([ALLOCATE, calls.managed([TILE], nodes.seq(inside)), calls.sync_threads()])


def names(body):
    found = [s.value for s in collect(body, tirx.Evaluate) if nodes.is_tile_call(s.value)]
    return [str(call.op.name)[5:] for call in found]


@pytest.mark.parametrize(
    ("accesses", "fenced"),
    [
        ([("r", calls.ASYNC_PROXY, 1)], True),
        ([("r", "", 1)], False),
        ([("r", calls.ASYNC_PROXY, 1), ("w", calls.ASYNC_PROXY, 1)], False),  # that proxy has written it, too
    ],
)
def test_a_fence_before_each_barrier_if_the_other_proxy_reads_what_threads_write(accesses, fenced):
    expected = ["fence_proxy"] * fenced + ["sync_threads", "instruction", "sync_threads"]
    assert names(fence_managed(region(*accesses))) == expected


def test_none_before_a_barrier_that_says_that_reads_have_ended():
    address = calls.address(TILE, [0], "r", calls.ASYNC_PROXY)
    inside = [calls.sync_threads(after_reads=True), calls.execute("matrix_product", [address])]
    assert names(fence_managed(calls.managed([TILE], nodes.seq(inside)))) == ["sync_threads", "instruction"]


@pytest.mark.parametrize(("align", "second"), [(1, 640), (512, 1024), (1024, 1024)])
def test_tiles_begin_where_instructions_rely_on_it(align, second):
    made = [nodes.alloc([260], "float16", name, "shared") for name in ("S", "U")]
    used = calls.execute("f", [calls.address(tile, [0], align=align) for tile, _ in made])
    _, arena = plan_arena(nodes.seq([*(new for _, new in made), used]), 1 << 16)
    assert sorted(a.offset for a in arena.arrays) == [0, second]
