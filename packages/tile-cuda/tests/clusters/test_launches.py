"""Launches in clusters: facts, ranks, swizzled rasterization, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.language import BadLaunch
from tile_core.errors.launch import GridNotInClusters
from tile_core.errors.lowering import ClusterUnsupported
from tile_core.errors.ops import BadCluster

TARGET = "cuda:sm_90a"


def ranks(grid, dims, panel=0, order="row"):
    """Each block writes its rank, and the number of blocks of its cluster."""
    shape = [*grid, 1, 1, 1][:3]

    @T.prim_func
    def main(R: T.Tensor((*shape, 2), "int32")):
        with T.ClusterKernel(*grid, cluster_dims=dims, threads=32) as block:
            x, y, z = [*(block if len(grid) > 1 else [block]), 0, 0, 0][:3]
            if panel:
                T.use_swizzle(panel, order)
            R[x, y, z, 0] = T.block_rank_in_cluster()
            R[x, y, z, 1] = T.cluster_size()

    return main


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", [TARGET, "cpu"])
@pytest.mark.parametrize(
    ("grid", "dims", "panel"),
    [
        ((6,), 2, 0), ((6,), (3,), 0), ((8,), (8,), 0), ((5, 4), (1, 2), 0), ((4, 6), (2, 3), 0),
        ((2, 4, 6), (2, 2, 2), 0), ((3, 2, 3), (1, 1, 3), 0), ((6, 10), (2, 1), 3),
        ((6, 10), (1, 2), 4), ((4, 6), (2, 2), 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["row", "column"])
def test_ranks_count_the_first_axis_fastest(grid, dims, panel, order, target):
    runtime = {} if target == "cpu" else {"runtime": "emulator"}
    kernel = tile.compile(ranks(grid, dims, panel, order), target, **runtime)
    shape = [*grid, 1, 1, 1][:3]
    sizes = [*((dims,) if isinstance(dims, int) else dims), 1, 1, 1][:3]
    out = np.full((*shape, 2), -7, "int32")
    kernel(out)
    x, y, z = np.indices(shape)
    want = x % sizes[0] + sizes[0] * (y % sizes[1]) + sizes[0] * sizes[1] * (z % sizes[2])
    assert (out[..., 0] == want).all()
    assert (out[..., 1] == np.prod(sizes)).all()


def test_the_facts_of_a_launch_have_its_clusters():
    kernel = tile.compile(ranks((4, 6), (2, 3)), TARGET, runtime="emulator")
    assert "__cluster_dims__(2, 3, 1)" in kernel.source
    assert "__cluster_dims__" not in tile.compile(ranks((4, 6), 1), TARGET, runtime="emulator").source


def test_an_exported_kernel_keeps_them(tmp_path):
    kernel = tile.compile(ranks((4, 6), (2, 3)), TARGET, runtime="emulator")
    loaded = tile.load(kernel.export(tmp_path / "ranks.tile"), runtime="emulator")
    out, again = np.zeros((4, 6, 1, 2), "int32"), np.zeros((4, 6, 1, 2), "int32")
    kernel(out)
    loaded(again)
    assert out[..., 0].max() == 5
    assert (out == again).all()


@pytest.mark.parametrize(
    ("grid", "dims", "says"),
    [
        ((5,), 2, "grid axis 0 is 5 blocks, expected a multiple of the 2 of a cluster"),
        ((4,), (2, 2), "grid axis 1 is 1 blocks"),
        ((16,), 16, "cluster_dims is 16 blocks, expected at most 8 blocks"),
        ((9,), (3, 3), "cluster_dims is 9 blocks"),
        ((4,), 0, "cluster_dims is 0"),
        ((4,), (1, 1, 1, 2), "cluster_dims"),
        ((4,), 1.5, "cluster_dims"),
    ],
)
def test_other_clusters_are_refused(grid, dims, says):
    with pytest.raises(BadLaunch, match=says):
        ranks(grid, dims)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_89", "metal", "rocm:gfx942"])
def test_targets_without_clusters_refuse_them(target):
    with pytest.raises(ClusterUnsupported, match=r"launches clusters of 6 blocks; .* has no clusters"):
        tile.compile(ranks((4, 6), (2, 3)), target)


def test_a_launch_of_other_blocks_is_refused():
    @T.prim_func
    def spread(A: T.Tensor((6,), "int32"), n: T.int32):
        with T.ClusterKernel(n, cluster_dims=2, threads=32) as block:
            A[block] = T.block_rank_in_cluster()

    kernel = tile.compile(spread, TARGET, runtime="emulator")
    out = np.full(6, 9, "int32")
    kernel(out, 4)
    assert out.tolist() == [0, 1, 0, 1, 9, 9]
    with pytest.raises(
        GridNotInClusters, match=r"\[K439\] spread: 5 blocks along x are not a multiple of the cluster size 2"
    ):
        kernel(out, 5)


def test_blocks_wait_for_each_other():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            T.cluster_sync()
            for k in range(3):
                T.cluster_arrive()
                A[bx] = k
                T.cluster_wait()
            if bx // 2 == 1:
                T.cluster_sync()

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert kernel.source.count("  barrier_cluster_wait_acquire();") == 3
    out = np.zeros(4, "int32")
    kernel(out)
    assert out.tolist() == [2, 2, 2, 2]


def _branch(bx):
    if bx % 2 == 0:
        T.cluster_sync()


def _trips(bx):
    for _ in range(bx):
        T.cluster_sync()


def _role(bx):
    with T.ws(0, size=32):
        T.cluster_sync()


def _threads(bx):
    if T.get_thread_binding(0) < 32:
        T.cluster_sync()


def _parallel(bx):
    for _ in T.Parallel(32):
        T.cluster_sync()


def _open(bx):
    T.cluster_arrive()


def _twice(bx):
    T.cluster_arrive()
    T.cluster_sync()


def _unarrived(bx):
    T.cluster_wait()


def _crossed(bx):
    T.cluster_arrive()
    for _ in range(2):
        T.cluster_sync()
    T.cluster_wait()


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (_branch, "blocks of a cluster may reach it a different number of times"),
        (_trips, "blocks of a cluster may reach it a different number of times"),
        (_role, "only the threads of a role reach it"),
        (_threads, "only the threads of a role reach it"),
        (_parallel, "the iterations around it are unordered"),
        (_open, "cluster_arrive has no T.cluster_wait"),
        (_twice, "cluster_arrive has no T.cluster_wait"),
        (_unarrived, "cluster_wait has no T.cluster_arrive"),
        (_crossed, "cluster_arrive has no T.cluster_wait"),
    ],
)
def test_barriers_without_alternating_arrivals_are_refused(wrong, says):
    inside = T.macro(wrong)

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            inside(bx)
            A[bx] = bx

    with pytest.raises(TileError, match=says) as refused:
        tile.compile(main, TARGET, runtime="emulator")
    assert isinstance(refused.value, BadCluster)
