"""Test tuning on a dask cluster whose processes are killed or refuse a configuration."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


def scaled(n: int, block: int = 64) -> Any:
    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            part = T.alloc_shared((block,), "float32")
            T.copy(A[bx * block], part)
            B[bx * block : bx * block + block] = part * 2

    return scale


@pytest.mark.sweep(1)
def test_a_cluster(tmp_path):
    configs = [{"block": b} for b in (8, 16, -1, 32, 64, 128, 24, 40)]
    how: dict[str, Any] = {"warmup": 0, "repeat": 1, "results": tmp_path / "results.sqlite"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        factory = tile.jit(out_idx=[-1], target="cpu")(scaled)
        found = tile.autotune(configs, executor=client.get_executor(), **how)(factory).tune(100)
    assert [t.seconds is None for t in found.trials] == [b["block"] < 0 for b in configs]
    a = np.arange(100, dtype="float32")
    assert np.array_equal(found.kernel(a), 2 * a)
    again = tile.autotune(configs, **how)(tile.jit(out_idx=[-1], target="cpu")(scaled)).tune(100)
    assert [t.known for t in again.trials] == [b["block"] > 0 for b in configs]
    assert again.config == found.config
