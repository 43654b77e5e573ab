"""Weights in packed order: a word for the eight elements of a lane, a shift and a mask for two of them."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

KINDS = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def program(m, n, k, tile_of, kind="bfloat16", dtype="int4", threads=128, stages=3):
    """A product with 4-bit weights W of (n, k), which have a scale for 32 of K."""
    bm, bn, bk = tile_of

    @T.prim_func
    def main(
        A: T.Tensor((m, k), kind), W: T.Tensor((n, k), dtype), S: T.Tensor((n, k // 32), kind),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), kind)
            q = T.alloc_shared((bn, bk), dtype)
            w = T.alloc_shared((bn, bk), kind)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for o in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, o * bk], a)
                T.copy(W[bx * bn, o * bk], q)
                for i, j in T.Parallel(bn, bk):
                    w[i, j] = T.cast(q[i, j], kind) * S[bx * bn + i, (o * bk + j) // 32]
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * bm, bx * bn])

    return main


@pytest.mark.sweep(0.1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize(
    ("target", "tile_of", "threads"),
    [
        ("cuda:sm_90a", (16, 64, 128), 128), ("cuda:sm_90a", (64, 64, 64), 128), ("cuda:sm_90a", (16, 128, 256), 256),
        ("cuda:sm_80", (16, 64, 128), 128), ("cuda:sm_80", (128, 128, 32), 256),
    ],
)  # fmt: skip
def test_one_shift_and_one_mask_for_two_weights(target, tile_of, threads, dtype, kind):
    made = program(256, 1024, 1024, tile_of, kind, dtype, threads)
    source = tile.compile(tile.with_packed_weights(made, "W"), target).source
    conversions = [line for line in source.splitlines() if re.search(r"(w\w*_pairs|w\w*)\[.*\] = .*q_stages", line)]
    assert conversions
    for line in conversions:
        assert len(re.findall("q_stages", line)) == 1, line
        assert re.search(r">> .*983055u", line), line
        assert "cvt" not in line, line


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a"])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize(("sizes", "tile_of"), [((9, 67, 160), (16, 64, 64)), ((70, 41, 96), (64, 32, 128))])
def test_results_are_those_of_the_plain_order(target, dtype, sizes, tile_of):
    m, n, k = sizes
    made, rng = program(m, n, k, tile_of, dtype=dtype), np.random.default_rng()
    a, s = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k // 32)))
    codes = rng.integers(0, 256, (n, k // 2)).astype(np.uint8)
    results = []
    for one, weights in ((made, codes), (tile.with_packed_weights(made, "W"), tile.pack_weights(codes))):
        c = np.full((m, n), np.nan, np.float32)
        tile.compile(one, target, runtime="emulator")(a, weights, s, c)
        results.append(c)
    assert (results[0] == results[1]).all()


def test_tilings_rank_them():
    def packed(M, N, K, block_M, block_N, block_K, threads, num_stages):
        return tile.with_packed_weights(
            program(M, N, K, (block_M, block_N, block_K), threads=threads, stages=num_stages), "W"
        )

    found = tile.tilings(packed, {"M": 16, "N": 4096, "K": 4096}, target="cuda:sm_90a", most=2)
    assert [t["block_M"] for t in found] == [16, 32]
