"""Product operands copied between blocks, in the layouts that products require."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantRefused

from .test_block_copies import BULK, TARGET


def multiplied(slots=1, part=64, view=False):
    """Multiply each block's own operand, then the operand of the other block."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 64, 64), "float32")
    ):
        with T.ClusterKernel(4, cluster_dims=2, threads=128) as bx:
            S = T.alloc_shared((slots, 64, 64) if slots > 1 else (64, 64), "float16")
            R = T.alloc_shared((64, 64), "float16")
            W = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            got = T.alloc_cluster_barrier(1)
            mine = S[slots - 1, :, :] if slots > 1 else S
            T.clear(F)
            T.copy(B, W)
            T.copy(A[bx, :, :], mine)
            T.gemm(mine, W, F)
            src, dst = (T.reshape(S, (4096,)), T.reshape(R, (4096,))) if view else (mine, R)
            if part < 64:
                src, dst = S[0:part, :], R[0:part, :]
            T.copy_cluster(src, dst, dst_block=1 - T.block_rank_in_cluster(), remote_barrier=got)
            T.mbarrier_wait_parity(got, 0)
            T.gemm(R, W, F)
            T.copy(F, C[bx, :, :])

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize("options", [{}, {"wgmma": "always"}, {"tma": "always", "wgmma": "always"}], ids=str)
@pytest.mark.parametrize(("slots", "view"), [(1, False), (1, True), (3, False)])
def test_operands_of_products_go_on_in_their_own_order(options, slots, view):
    kernel = tile.compile(multiplied(slots, view=view), TARGET, runtime="emulator", options=options)
    assert kernel.source.count(BULK) == 1
    rng = np.random.default_rng()
    a, b = rng.integers(-3, 4, (4, 64, 64)).astype("float16"), rng.integers(-3, 4, (64, 64)).astype("float16")
    c = np.zeros((4, 64, 64), "float32")
    kernel(a, b, c)
    assert (c == (a + a[[1, 0, 3, 2]]).astype("float32") @ b.astype("float32")).all()


def test_a_part_of_an_operand_has_no_order_of_its_own():
    with pytest.raises(VariantRefused, match=r"the bytes of its tiles are not in the same order: S in .*Swizzle"):
        tile.compile(multiplied(part=32), TARGET)
