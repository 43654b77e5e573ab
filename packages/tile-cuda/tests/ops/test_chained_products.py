"""Chained products: the result of one is a register operand of the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed


def chained(M: int, N: int, K: int, D: int, threads: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N, D), "float16"),
        Out: T.Tensor((M, D), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((N, K), "float16")
            c = T.alloc_shared((N, D), "float16")
            scores = T.alloc_fragment((M, N), "float32")
            weights = T.alloc_fragment((M, N), "float16")
            out = T.alloc_fragment((M, D), "float32")
            top = T.alloc_fragment((M,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            T.gemm(a, b, scores, transpose_B=True, clear_accum=True)
            T.reduce_max(scores, top, dim=1)
            for i, j in T.Parallel(M, N):
                scores[i, j] = scores[i, j] - top[i]
            T.copy(scores, weights)
            T.gemm(weights, c, out, clear_accum=True)
            T.copy(out, Out)

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("M", "N", "K", "D", "threads"), [(64, 64, 32, 32, 128), (32, 48, 16, 24, 64)])
def test_the_first_follows_the_second(M: int, N: int, K: int, D: int, threads: int) -> None:
    program = chained(M, N, K, D, threads)
    text = lower(program, make_context("cuda:sm_80"), installed()).lowered.text
    assert f"float scores[{M * N // threads}];" in text
    rng = np.random.default_rng(N)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (N, K), (N, D)))
    found = np.full((M, D), np.nan, np.float32)
    tile.compile(program, target="cuda:sm_80", runtime="emulator")(a, b, c, found)
    scores = a.astype(np.float64) @ b.astype(np.float64).T
    weights = (scores - scores.max(1, keepdims=True)).astype(np.float16).astype(np.float64)
    expected = weights @ c.astype(np.float64)
    size = np.abs(weights) @ np.abs(c.astype(np.float64))
    assert (np.abs(found - expected) <= 2.0**-10 * size).all()
