"""Multicast copies within a cluster: results, waits, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.lowering import VariantRefused
from tile_core.errors.ops import BadAttribute, BadCluster

TARGET = "cuda:sm_90a"
MULTICAST = "multicast_cluster(&"


def shared_tiles(dims, mask, dtype="float16", rows=16, columns=64, trips=3):
    """Copy the same tiles of A in every block of a grid row."""
    x, y = [*dims, 1][:2]

    @T.prim_func
    def main(A: T.Tensor((rows * trips, columns), dtype), C: T.Tensor((2 * x, 2 * y, rows * trips, columns), dtype)):
        with T.ClusterKernel(2 * x, 2 * y, cluster_dims=dims, threads=64) as (bx, by):
            S = T.alloc_shared((rows, columns), dtype)
            for t in range(trips):
                T.tma_copy(A[t * rows, 0], S, cluster_mask=mask)
                T.copy(S, C[bx, by, t * rows : (t + 1) * rows, :])

    return main


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("dims", "mask"), [((2,), 3), ((2,), 1), ((2,), 2), ((4,), 0b1010), ((2, 2), 15), ((1, 3), 0b110), ((8,), 255)]
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_the_blocks_of_a_mask_take_one_copy(dims, mask, dtype):
    kernel = tile.compile(shared_tiles(dims, mask, dtype), TARGET, runtime="emulator")
    assert (MULTICAST in kernel.source) == (bin(mask).count("1") > 1)
    a = np.random.default_rng().integers(0, 200, (48, 64)).astype(dtype)
    c = np.full((2 * dims[0], 2 * [*dims, 1][1], 48, 64), 77, dtype)
    kernel(a, c)
    assert (c == a).all()


@pytest.mark.parametrize("shares", [1, 2])
def test_shares_of_a_copy_are_issued_by_all(shares):
    """Divide a multicast copy: each block of the mask issues an equal part."""
    from tile_cuda.vocabulary.barriers import mark_last

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), C: T.Tensor((4, 16, 64), "float16")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((16, 64), "float16")
            T.tma_copy(A, S, cluster_mask=3)
            mark_last({"blocks": [3, shares, 2, 1, 1]})
            T.copy(S, C[bx, :, :])

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert kernel.source.count(MULTICAST) == shares
    a, c = np.random.default_rng().standard_normal((16, 64)).astype("float16"), np.zeros((4, 16, 64), "float16")
    kernel(a, c)
    assert (c == a).all()


@pytest.mark.parametrize("corner", ["bx // 2", "(bx + 4) // 2 - 2", "bx % 2", "bx"])
def test_the_part_has_to_be_the_same_in_all_blocks(corner):
    of = {
        "bx // 2": lambda b: b // 2, "(bx + 4) // 2 - 2": lambda b: (b + 4) // 2 - 2, "bx % 2": lambda b: b % 2,
        "bx": lambda b: b,
    }[corner]  # fmt: skip

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 16, 64), "float16")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((16, 64), "float16")
            T.tma_copy(A[of(bx) * 16, 0], S, cluster_mask=3)
            T.copy(S, C[bx, :, :])

    if corner in ("bx % 2", "bx"):
        with pytest.raises(VariantRefused, match="not known to copy the same part of A"):
            tile.compile(main, TARGET, runtime="emulator")
        return
    a, c = np.random.default_rng().standard_normal((64, 64)).astype("float16"), np.zeros((4, 16, 64), "float16")
    tile.compile(main, TARGET, runtime="emulator")(a, c)
    assert (c == a[:32].reshape(2, 16, 64).repeat(2, 0)).all()


def _some(bx, A, S):
    if bx % 2 == 1:
        T.tma_copy(A, S, cluster_mask=3)


def _role(bx, A, S):
    with T.ws(0, size=32):
        T.tma_copy(A, S, cluster_mask=3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [(_some, "the blocks of the cluster are not known to execute it"), (_role, "not only those of T.ws")],
)
def test_all_blocks_have_to_come(wrong, says):
    inside = T.macro(wrong)

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), C: T.Tensor((4, 16, 64), "float16")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((16, 64), "float16")
            T.clear(S)
            inside(bx, A, S)
            T.copy(S, C[bx, :, :])

    with pytest.raises(VariantRefused, match=says):
        tile.compile(main, TARGET, runtime="emulator")


@pytest.mark.parametrize(
    ("mask", "error", "says"),
    [
        (0, BadCluster, "cluster_mask is 0, and the cluster has 2 blocks"),
        (4, BadCluster, "cluster_mask is 4"),
        (-1, BadCluster, "cluster_mask is -1"),
        (1.5, BadCluster, "cluster_mask is 1.5"),
    ],
)
def test_masks_that_name_no_blocks_are_refused(mask, error, says):
    with pytest.raises(error, match=says):
        shared_tiles((2,), mask)


def test_the_report_lists_the_blocks_of_a_multicast():
    assert "for blocks 0, 1 of" in str(tile.explain(shared_tiles((2,), 3), TARGET))
    assert "for blocks" not in str(tile.explain(shared_tiles((2,), 1), TARGET))


def test_the_blocks_meet_behind_their_copies_out_of_the_tile():
    """Insert a cluster barrier between bulk copies out of a tile and its next multicast."""
    kernel = tile.compile(shared_tiles((2,), 3), TARGET, runtime="emulator", options={"tma": "always"})
    inside = kernel.source.split("for (int t = ")[1]
    waits, meets = (inside.index(x) for x in ("cp_async_bulk_wait_group_read_0", "barrier_cluster_arrive"))
    assert "cp_async_bulk_tensor_4d_global" in inside
    assert waits < meets
    a, c = np.random.default_rng().standard_normal((48, 64)).astype("float16"), np.zeros((4, 2, 48, 64), "float16")
    kernel(a, c)
    assert (c == a).all()


def test_a_store_has_no_mask():
    with pytest.raises(BadAttribute, match="a block stores for itself"):

        @T.prim_func
        def main(A: T.Tensor((16, 64), "float16")):
            with T.ClusterKernel(2, cluster_dims=2, threads=64):
                S = T.alloc_shared((16, 64), "float16")
                T.clear(S)
                T.tma_copy(S, A, cluster_mask=3)


def test_a_mask_needs_a_cluster():
    with pytest.raises(TileError, match=r"the cluster has 1 block\n"):

        @T.prim_func
        def main(A: T.Tensor((16, 64), "float16")):
            with T.Kernel(2, threads=64):
                S = T.alloc_shared((16, 64), "float16")
                T.tma_copy(A, S, cluster_mask=3)
