"""Copies of four rows: row numbers out of bounds, and tiles in slots."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from .test_four_rows import ALWAYS, GATHERS, ROWS, TARGET, at, outcome, values


@pytest.mark.parametrize("forced", [False, True])
def test_numbers_behind_the_end_of_their_list_are_zero(forced):
    """Read two row numbers for four rows in the last block, not others."""

    @T.prim_func
    def main(A: T.Tensor((40, 24), "float32"), R: T.Tensor((10,), "int32"), C: T.Tensor((12, 24), "float32")):
        with T.Kernel(3, threads=64) as bx:
            S = T.alloc_shared((4, 24), "float32")
            if forced:
                T.tma_gather4(A, S, 0, R[bx * 4 : bx * 4 + 4])
            else:
                T.gather(A, R[bx * 4 : bx * 4 + 4], S)
            T.copy(S, C[bx * 4, 0])

    a, r = values((40, 24), "float32"), np.random.default_rng().integers(1, 40, 10).astype("int32")
    kernel, c = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS), np.full((12, 24), np.nan, "float32")
    kernel(a, r, c)
    assert GATHERS in at(kernel.source)
    np.testing.assert_array_equal(c, a[[*r, 0, 0]])
    kernel.verify(a, r, c)


def test_a_number_that_reads_something_else_outside_is_refused():
    @T.prim_func
    def main(A: T.Tensor((40, 24), "float32"), R: T.Tensor((10,), "int32"), C: T.Tensor((4, 24), "float32")):
        with T.Kernel(1, threads=64):
            T.annotate_safe_value({R: 3})
            S = T.alloc_shared((4, 24), "float32")
            T.tma_gather4(A, S, 0, R[8:12])
            T.copy(S, C)

    assert "reads outside of R do not give zero" in outcome(lambda: main)[1]


@pytest.mark.parametrize("slots", [1, 3])
def test_a_tile_of_one_slot_is_a_slot(slots):
    @T.prim_func
    def main(A: T.Tensor((40, 32), "float32"), C: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((slots, 4, 32), "float32")
            T.tma_gather4(A, S[slots - 1, :, :], 0, ROWS)
            T.copy(S[slots - 1, :, :], C)

    a, c = values((40, 32), "float32"), np.full((4, 32), np.nan, "float32")
    tile.compile(main, TARGET, runtime="emulator")(a, c)
    np.testing.assert_array_equal(c, a[ROWS])


def scattered(body, strides=None, rows=8):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float16"), B: T.StridedTensor((rows, 64), strides or (64, 1), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            T.copy(A, S)
            body(S, B)

    return main


@pytest.mark.parametrize(
    ("strides", "rows", "said"),
    [
        ((72, 1), 8, ""),
        ((128, 2), 8, "rows of B are not contiguous"),
        ((68, 1), 8, "rows of B are 136 bytes apart"),
        ((2**39, 1), 1, "boxes need fewer than 1099511627776"),
        ((2**39 - 8, 1), 1, ""),
    ],
)
def test_strides_of_a_tensor_that_is_written_are_checked(strides, rows, said):
    code, text = outcome(lambda: scattered(lambda S, B: T.tma_scatter4(S, B, 0, ROWS), strides, rows))
    assert bool(code) == bool(said)
    assert said in text


@pytest.mark.parametrize("knob", ["swizzle", "dtype"])
def test_swizzle_and_type_are_no_knobs_of_scatters(knob):
    def body(S, B):
        T.tma_scatter4(S, B, 0, ROWS, **{knob: 128})

    assert outcome(lambda: scattered(body))[0] != ""


@pytest.mark.parametrize("arch", ["sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120", "sm_120a"])
def test_rows_go_to_the_block_s_own_shared_memory(arch):
    """Use the form for a block's own shared memory: every such target has it."""

    @T.prim_func
    def main(A: T.Tensor((40, 32), "float32"), C: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 32), "float32")
            T.tma_gather4(A, S, 0, ROWS)
            T.copy(S, C)

    text = at(tile.compile(main, f"cuda:{arch}", runtime="emulator").source)
    assert "shared_cta_global_tile_gather4" in text
    assert "shared_cluster_global_tile_gather4" not in text
