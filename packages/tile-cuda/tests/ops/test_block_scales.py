"""Products of 8-bit floats with scales of blocks of K: loads for groups of iterations, epilogues, uniform branches."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

FP8 = ml_dtypes.float8_e4m3fn


def program(m, n, steps, block=(128, 128), threads=256, stages=3):
    """A product whose parts of 128 of K are scaled for each row of A and 128 rows of B."""
    bm, bn = block
    k = 128 * steps

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float8_e4m3fn"), SA: T.Tensor((m, steps), "float32"),
        B: T.Tensor((n, k), "float8_e4m3fn"), SB: T.Tensor((-(-n // 128), steps), "float32"),
        C: T.Tensor((m, n), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, 128), "float8_e4m3fn")
            b = T.alloc_shared((bn, 128), "float8_e4m3fn")
            part = T.alloc_fragment((bm, bn), "float32")
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for o in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, o * 128], a)
                T.copy(B[bx * bn, o * 128], b)
                T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(bm, bn):
                    acc[i, j] += part[i, j] * (SA[by * bm + i, o] * SB[(bx * bn + j) // 128, o])
            T.copy(acc, C[by * bm, bx * bn])

    return main


def check(m, n, steps, target="cuda:sm_90a", options=None, apart=0, **how):
    """Compare with exact products of small numbers and powers of two; return the text."""
    kernel = tile.compile(program(m, n, steps, **how), target, runtime="emulator", options=options or {})
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, (rows, 128 * steps)).astype(FP8) for rows in (m, n))
    sa, sb = (np.exp2(rng.integers(-2, 3, (rows, steps))).astype(np.float32) for rows in (m, -(-n // 128)))
    # ``apart``: elements before the first one, so that vector accesses are not aligned.
    space = np.zeros(sa.size + apart, np.float32)
    given = space[apart:].reshape(sa.shape)
    given[...] = sa
    c = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    kernel(a, given, b, sb, c)
    wide = np.repeat(np.repeat(sb, 128, 0)[:n], 128, 1)
    exact = (a.astype(float) * np.repeat(sa, 128, 1)) @ (b.astype(float) * wide).T
    np.testing.assert_array_equal(c, exact.astype(np.float32).astype(ml_dtypes.bfloat16))
    return kernel.source


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("steps", "group"), [(8, 4), (6, 2), (5, 1), (4, 2), (2, 1), (1, 1)])
def test_scales_of_a_group_of_iterations_are_one_access(steps, group):
    text = check(128, 256, steps)
    found = re.search(r"\*\(uint(\d)\*\)&SA_ahead", text)
    assert (int(found.group(1)) if found else 1) == group
    assert ("SA_ahead" in text) == (steps > 1)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("m", "n", "apart"), [(70, 128, 1), (130, 200, 0), (64, 1, 3), (1, 130, 0)])
@pytest.mark.parametrize("steps", [8, 6, 0])
def test_tails_and_unaligned_scales_are_right(steps, m, n, apart):
    check(m, n, steps, block=(64, 128), threads=128, apart=apart)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    "options", [{"persistent": 2}, {"persistent": "never"}, {"epilogue": "lanes", "persistent": 1}]
)
def test_results_of_products_that_end_in_an_iteration_go_through_shared_memory(options):
    text = check(300, 256, 4, options=options)
    # Lanes exchange them only if the option requires it: no product of the next tile would run beside their stores.
    assert ("cp_async_bulk_tensor_2d_global_shared" in text) == (options.get("epilogue") != "lanes")
    assert "acc_kept" not in text


def test_branches_of_roles_are_uniform_in_a_warp():
    text = check(300, 256, 4, options={"persistent": 2})
    assert re.search(r"if \(warp >= 8\)", text)
    assert re.search(r"if \(warp < 8\)", text)
    assert not re.search(r"if \(tid (<|>=) \d+\)", text)
    assert "warpgroup = warp >> 2" in text
