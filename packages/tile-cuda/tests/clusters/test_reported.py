"""Reported hazards of copies within a cluster, as multicast copies: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantRefused

TARGET = "cuda:sm_90a"


@pytest.mark.parametrize("unrolled", [False, True])
def test_2927_another_barrier_in_each_iteration(unrolled):
    """Wait by the parity of the barrier's own object, not of the loop."""

    @T.prim_func
    def main(A: T.Tensor((4, 16, 64), "float16"), B: T.Tensor((4, 4, 16, 64), "float16")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((4, 16, 64), "float16")
            full = T.alloc_barrier([64] * 4)
            for s in T.unroll(4) if unrolled else T.serial(4):
                T.tma_copy(A[s, :, :], S[s, :, :], barrier=full[s], cluster_mask=0b11)
                T.barrier_arrive(full[s])
                T.barrier_wait(full[s], 0)
                T.copy(S[s, :, :], B[bx, s, :, :])

    a, b = np.random.default_rng().standard_normal((4, 16, 64)).astype("float16"), np.zeros((4, 4, 16, 64), "float16")
    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert "multicast_cluster(&" in kernel.source
    kernel(a, b)
    assert (b == a).all()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("columns", [4, 8, 12, 20])
def test_2506_rows_that_are_no_multiple_of_16_bytes(columns):
    """A receiver never waits for bytes that do not come: such copies are refused."""

    @T.prim_func
    def main(A: T.Tensor((32, columns), "float16"), B: T.Tensor((2, 32, columns), "float16")):
        with T.ClusterKernel(2, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((32, columns), "float16")
            T.tma_copy(A, S, cluster_mask=0b11)
            T.copy(S, B[bx, :, :])

    if columns * 2 % 16:
        with pytest.raises(VariantRefused, match="16"):
            tile.compile(main, TARGET, runtime="emulator")
        return
    a, b = (
        np.random.default_rng().standard_normal((32, columns)).astype("float16"),
        np.zeros((2, 32, columns), "float16"),
    )
    tile.compile(main, TARGET, runtime="emulator")(a, b)
    assert (b == a).all()


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("offset", [0, 1, 2, 4])
def test_2564_parts_of_a_row(offset):
    """Refuse a part at an offset that is not a multiple of 16 bytes."""

    @T.prim_func
    def main(A: T.Tensor((32, 36), "float32"), B: T.Tensor((2, 32, 32), "float32")):
        with T.ClusterKernel(2, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((32, 32), "float32")
            T.tma_copy(A[:, offset : offset + 32], S, cluster_mask=0b11)
            T.copy(S, B[bx, :, :])

    if offset % 4:
        with pytest.raises(VariantRefused, match="boxes begin at multiples of 16"):
            tile.compile(main, TARGET, runtime="emulator")
        return
    a, b = np.random.default_rng().standard_normal((32, 36)).astype("float32"), np.zeros((2, 32, 32), "float32")
    tile.compile(main, TARGET, runtime="emulator")(a, b)
    assert (b == a[:, offset : offset + 32]).all()
