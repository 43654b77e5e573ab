"""``T.tma_copy``: a bulk copy under all options, or a refusal with the rule."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

TARGET = "cuda:sm_90a"


def moves(columns=64, tile_columns=64, part=None, stages=0, dtype="float16"):
    """Rows through shared memory, by copies that must be of boxes."""

    @T.prim_func
    def main(A: T.Tensor((64, columns), dtype), B: T.Tensor((64, columns), dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, tile_columns), dtype)
            for t in T.Pipelined(8, num_stages=stages):
                if part is None:
                    T.tma_copy(A[t * 8, 0], S)
                    T.tma_copy(S, B[t * 8, 0])
                else:
                    T.tma_copy(A[t * 8 : t * 8 + 8, 0:part], S[:, 0:part])
                    T.copy(S[:, 0:part], B[t * 8 : t * 8 + 8, 0:part])

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize("stages", [0, 1, 3])
@pytest.mark.parametrize("option", ["never", "always"])
def test_it_needs_no_option(stages, option):
    kernel = tile.compile(moves(stages=stages), TARGET, runtime="emulator", options={"tma": option})
    text = kernel.source[kernel.source.index('extern "C"') :]
    assert "  cp_async_bulk_tensor_2d_shared_cluster" in text
    assert "  cp_async_bulk_tensor_2d_global" in text
    assert "cp_async_c" not in text
    a = np.random.default_rng().integers(-9, 10, (64, 64)).astype("float16")
    b = np.full((64, 64), 77, "float16")
    kernel(a, b)
    assert np.array_equal(b, a)


def test_neighboring_copies_follow_the_option():
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float16"), B: T.Tensor((8, 64), "float16"), C: T.Tensor((8, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            R = T.alloc_shared((8, 64), "float16")
            T.copy(A, R)
            T.copy(R, C)
            T.tma_copy(A, S)
            T.copy(S, B)

    kernel = tile.compile(main, TARGET, runtime="emulator")
    text = kernel.source[kernel.source.index('extern "C"') :]
    assert text.count("  cp_async_bulk_tensor") == 1
    a, b, c = (np.random.default_rng(k).integers(-9, 10, (8, 64)).astype("float16") for k in range(3))
    kernel(a, b, c)
    assert np.array_equal(b, a)
    assert np.array_equal(c, a)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"columns": 62, "tile_columns": 60}, "boxes need multiples of 16"),
        ({"part": 32}, "it writes a part of S"),
        ({"columns": 6, "tile_columns": 4}, "multiples of 16"),
        ({"dtype": "float4_e2m1fn"}, "no tensor map has elements of float4_e2m1fn"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stages", [0, 3])
def test_illegal_boxes_are_refused_with_the_rule(how, reason, stages):
    with pytest.raises(TileError) as caught:
        tile.compile(moves(stages=stages, **how), TARGET, runtime="emulator")
    assert type(caught.value).__name__ == "VariantRefused"
    assert "cuda.copy.bulk" in str(caught.value)
    assert reason in str(caught.value)
    assert "T.tma_copy(" in str(caught.value)  # the line


@pytest.mark.parametrize("target", ["cuda:sm_80", "cpu"])
def test_targets_without_it_refuse_it(target):
    with pytest.raises(TileError) as caught:
        tile.compile(moves(), target)
    assert type(caught.value).__name__ == "VariantMissing"


def test_scopes_barriers_and_masks_are_checked():
    def made(body):
        @T.prim_func
        def main(A: T.Tensor((8, 64), "float16")):
            with T.Kernel(1, threads=64):
                S = T.alloc_shared((8, 64), "float16")
                F = T.alloc_fragment((8, 64), "float16")
                body(A, S, F)

        return main

    for body, code, text in (
        (lambda A, S, F: T.tma_copy(F, S), "K204", "T.tma_copy: src is in scope local.fragment"),
        (lambda A, S, F: T.tma_copy(S, F), "K204", "T.tma_copy: dst is in scope local.fragment"),
        (lambda A, S, F: T.tma_copy(A, A), "K204", "T.tma_copy: dst is in scope global"),
        (lambda A, S, F: T.tma_copy(A, S, barrier=3), "K232", "T.tma_copy: 3 is not a barrier"),
        (lambda A, S, F: T.tma_copy(A, S, cluster_mask=3), "K234", "the cluster has 1 block"),
    ):
        with pytest.raises(TileError) as caught:
            tile.compile(made(body), TARGET, runtime="emulator")
        assert caught.value.code == code
        assert text in str(caught.value)
