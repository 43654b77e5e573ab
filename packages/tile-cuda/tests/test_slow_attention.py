"""Performance warnings of slow attention: the estimate against recorded device times."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import report_json
from tile_core.reports.slow import SlowTiles

from .attention import attention

TARGET = "cuda:sm_90a"
RECORDS = (Path(__file__).parent / "records" / "attention_h100.csv").read_text().splitlines()[1:]


def said_of(program):
    plan = lower(program, make_context(TARGET, {"numerics": "fast"}), installed())
    return tuple(note.text for note in plan.slow if note.kind == "tiles")


def numbers(row):
    dim, causal, m, n, threads, stages, staged, scores, ms = row.split(",")
    how = int(dim), causal == "1", int(m), int(n), int(threads), int(stages)
    return how, {"staged": staged == "1", "scores_in": scores}, float(ms)


@cache
def best_of(dim):
    return min(ms for how, _, ms in map(numbers, RECORDS) if how[0] == dim)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("row", RECORDS)
def test_twice_the_best_time_is_warned_about(row):
    """Warn about all 80 of 151 slow configurations; of 99 warned the fastest took 1.40."""
    how, more, ms = numbers(row)
    said, times = said_of(attention(*how, **more)), ms / best_of(how[0])
    assert bool(said) or times <= 2
    assert not said or times >= 1.25
    assert all(f"tiles of {how[2]} x {how[3]} scores with {how[4]} threads" in text for text in said)
    assert all("the nearest better ones are" in text for text in said)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("how", "reason", "better"),
    [
        ((128, False, 64, 64, 384, 2), "rows of its scores are spread over several warps", "128 x 64 scores with 256"),
        ((128, False, 256, 32, 384, 2), "registers of each thread, which has at most 168", "128 x 64 scores"),
        ((128, False, 256, 64, 128, 2), "256 registers of each thread, which has at most 255: they", "128 x 64 scores"),
        ((64, True, 256, 128, 128, 4), "256 registers of each thread, which has at most 255: they", "128 x 128 scores"),
        ((64, True, 128, 128, 384, 4), "1 of its 3 warpgroups multiplies nothing", "128 x 128 scores with 256 threads"),
        ((128, False, 128, 32, 256, 1), "1 stage are estimated to take 2.2 times", "with 256 threads and 2 stages"),
        ((128, False, 128, 32, 256, 1), "with 1 stage its threads wait for copies", "with 256 threads and 2 stages"),
        ((64, True, 64, 256, 128, 3), "short compared with the waits", "64 x 128 scores with 128 threads and 2 stages"),
        ((64, True, 256, 32, 256, 2), "its iterations are short", "128 x 64 scores with 256 threads"),
    ],
)  # fmt: skip
def test_the_sentence_names_the_reason_and_the_nearest_better_one(how, reason, better):
    (said,) = said_of(attention(*how))
    assert reason in said
    assert better in said.partition("the nearest better ones are")[2]


def test_scores_of_16_bits_are_converted():
    (said,) = said_of(attention(128, False, 64, 64, 128, 2, scores_in="float16"))
    assert "its accumulator has type float16, which each iteration converts" in said
    assert said.endswith("better ones are 128 x 64 scores with 128 threads and 2 stages, and scores of float32")


@pytest.mark.sweep(0.25)
def test_it_is_a_warning_and_a_line_of_the_report():
    program = attention(64, True, 64, 32, 256, 2)
    with tile.disable_cache(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kernel = tile.compile(program, TARGET, options={"numerics": "fast"})
    texts = [str(w.message) for w in seen if w.category is SlowTiles]
    assert any("tiles of 64 x 32 scores with 256 threads and 2 stages are estimated" in w for w in texts)
    assert "the nearest better ones are" in " ".join(kernel.explain().split())
    assert [w["kind"] for w in report_json(program, TARGET)["warnings"]] == ["tiles"]


@pytest.mark.sweep(0.25)
def test_no_warning_for_fast_and_for_small_ones():
    assert not said_of(attention(128, False, 128, 128, 256, 2))
    assert not said_of(attention(64, True, 64, 64, 128, 2))
    assert not said_of(attention(64, True, 64, 32, 256, 2, length=512, heads=8))


@pytest.mark.sweep(0.25)
def test_two_products_that_are_not_chained_are_no_chain():
    @T.prim_func
    def main(
        A: T.Tensor((4096, 4096), "float16"), B: T.Tensor((4096, 4096), "float16"),
        D: T.Tensor((4096, 4096), "float16"), C: T.Tensor((4096, 4096), "float16"),
    ):  # fmt: skip
        with T.Kernel(32, 32, threads=256) as (bx, by):
            A_s = T.alloc_shared((128, 128), "float16")
            B_s = T.alloc_shared((128, 128), "float16")
            D_s = T.alloc_shared((128, 128), "float16")
            one = T.alloc_fragment((128, 128), "float32")
            other = T.alloc_fragment((128, 128), "float32")
            T.clear(one)
            T.clear(other)
            for k in T.Pipelined(32, num_stages=2):
                T.copy(A[by * 128, k * 128], A_s)
                T.copy(B[k * 128, bx * 128], B_s)
                T.copy(D[k * 128, bx * 128], D_s)
                T.gemm(A_s, B_s, one)
                T.gemm(A_s, D_s, other)
            for i, j in T.Parallel(128, 128):
                one[i, j] = one[i, j] * other[i, j]
            T.copy(one, C[by * 128, bx * 128])

    assert not said_of(main)
