"""Estimates of finished plans, which ``explain`` shows."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.reports import explain_facts
from tile_core.reports.report import as_text


def product(size, K, *, stages=4, second=False, dtype="float16"):
    @T.prim_func
    def gemm(A: T.Tensor((size, K), dtype), B: T.Tensor((K, size), dtype), C: T.Tensor((size, size), "float32")):
        with T.Kernel(T.ceildiv(size, 128), T.ceildiv(size, 128), threads=128) as (bx, by):
            A_s = T.alloc_shared((128, 64), dtype)
            B_s = T.alloc_shared((64, 128), dtype)
            C_f = T.alloc_fragment((128, 128), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, C_f)
            if second:
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * 128, bx * 128])

    return gemm


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
def test_more_work_takes_longer(target):
    small, large = (explain_facts(product(1024, k), target).estimate for k in (1024, 8192))
    assert 4 < large.microseconds / small.microseconds < 8.5
    assert "64 tiles, at most 1 on each of" in large.reason
    assert "limited by" in large.reason


def test_the_stages_of_the_plan_count():
    one, four = (explain_facts(product(2048, 4096, stages=n), "cuda:sm_90a").estimate for n in (1, 4))
    assert one.microseconds > 1.3 * four.microseconds


def test_the_text_has_the_estimate():
    facts = explain_facts(product(1024, 1024), "cuda:sm_90a")
    assert f"\n{facts.estimate}\n" in as_text(facts)


def test_dynamic_dimensions_have_no_estimate():
    found = explain_facts(product(1024, T.dynamic("K")), "cuda:sm_90a").estimate
    assert str(found) == "no estimate of its time: its dimensions are not constants"


def test_kernels_without_an_estimate_have_a_reason():
    found = explain_facts(product(256, 256, second=True), "cuda:sm_80").estimate
    assert found.microseconds is None
    assert "in one loop" in found.reason

    @T.prim_func
    def twice(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] *= 2

    assert str(explain_facts(twice, "cuda:sm_80").estimate) == "no estimate of its time: it has no matrix product"
