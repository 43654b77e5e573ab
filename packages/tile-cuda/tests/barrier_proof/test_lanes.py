"""Releases of slots by some lanes of a warp: no read of another lane may follow."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import UnprovenBarriers
from tile_core.ir import calls, nodes
from tile_core.simt.pipelining import persistent_loop
from tile_cuda import pipeline

pytestmark = pytest.mark.filterwarnings("ignore:.*:tile_core.reports.slow.SlowFallback")
OPTIONS = {"tma": "always", "wgmma": "always", "persistent": 4, "clusters": "always", "numerics": "strict"}


@T.prim_func
def product(
    X: T.Tensor((384, 160), "bfloat16"), Y: T.Tensor((248, 160), "bfloat16"), C: T.Tensor((384, 248), "float32")
):
    with T.Kernel(2, 3, threads=256) as (bx, by):
        s = T.alloc_shared((128, 32), "bfloat16")
        t = T.alloc_shared((128, 32), "bfloat16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for o in T.Pipelined(5, num_stages=2):
            T.copy(X[by * 128, o * 32], s)
            T.copy(Y[bx * 128, o * 32], t)
            T.gemm(s, t, c, transpose_B=True)
        T.copy(c, C[by * 128, bx * 128])


def compiled() -> str:
    with tile.disable_cache():
        return str(tile.compile(product, target="cuda:sm_90a", options=OPTIONS).source)


@pytest.fixture
def asynchronous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a product that adds in order for an asynchronous one until its instruction is selected."""
    monkeypatch.setattr(pipeline, "requires_order", lambda call, ctx: False)


def test_products_that_add_in_order_are_not_asynchronous() -> None:
    text = compiled()
    assert "wgmma" not in text
    assert "multicast" not in text


@pytest.mark.usefixtures("asynchronous")
def test_a_lane_does_not_release_slots_that_others_read() -> None:
    with pytest.raises(UnprovenBarriers, match=r"a copy may write \w+ while it is in use"):
        compiled()


@pytest.mark.usefixtures("asynchronous")
def test_a_lane_releases_slots_after_a_barrier_of_its_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    released = persistent_loop.arrive_at_peers

    def behind(*given):
        return nodes.seq([calls.sync_warp(), released(*given)])

    monkeypatch.setattr(persistent_loop, "arrive_at_peers", behind)
    assert "__syncwarp" in compiled()
