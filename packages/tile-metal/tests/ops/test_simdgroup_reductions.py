"""Simdgroup reductions: the called functions, each covered by suite and fuzzer."""

from __future__ import annotations

import contextlib
import re

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core.language as T
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import blocks

#: What the first simdgroup does for all others: a lane per partial result.
RELAY = re.compile(r"if \(tid < 32\) \{\n.*partial.*(min|lane)", re.DOTALL)
WAYS = {
    "additions of floats": re.compile(r"= simd_sum\(total"),
    "additions of integers": re.compile(r"simd_sum\(\(uint\)"),
    "extremes of floats, by integers": re.compile(r">> 31\) & 2147483647\);\n(.*\n)?.*simd_(max|min)\("),
    "extremes of integers": re.compile(r"simd_(max|min)\(total"),
    "inexact extremes": re.compile(r"= f(max|min)\(acc"),
    "the exact ones after them": re.compile(r"& 2139095040u\) == 0u\) \{"),
    "the first simdgroup for all": RELAY,
    "shuffles": re.compile(r"simd_shuffle_xor\("),
}  # fmt: skip


def text(program) -> str:
    return lowered(program, make_context("metal:metal3")).text


def ways(texts: list[str]) -> set[str]:
    return {name for name, pattern in WAYS.items() if any(pattern.search(t) for t in texts)}


@pytest.mark.sweep(1)
def test_the_kit_reaches_every_way():
    texts = [text(load(unit.text())) for unit in blocks.units() if "int64" not in unit.name]
    assert ways(texts) >= set(WAYS) - {"shuffles"}


def drawn(strategy, count: int) -> list[str]:
    """Return the texts of programs that a strategy draws."""
    texts: list[str] = []

    @hypothesis.seed(1)
    @settings(
        max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategy)
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            texts.append(text(load(unit.text())))

    draw()
    return texts


@pytest.mark.sweep(12)
def test_the_fuzzer_reaches_every_way():
    texts = drawn(STRATEGIES["reducers"][0], 100) + drawn(STRATEGIES["reductions"][0], 60)
    assert ways(texts) == set(WAYS)


@pytest.mark.parametrize(("kind", "dtype", "call"), [
    ("sum", "float32", "simd_sum(total"), ("sum", "int32", "simd_sum((uint)total)"), ("max", "uint32", "simd_max("),
    ("min", "int32", "simd_min("), ("bitand", "int32", "simd_and("), ("bitor", "uint32", "simd_or("),
    ("max", "float32", "simd_max("),
])  # fmt: skip
def test_reductions_of_a_warp(kind, dtype, call):
    @T.prim_func
    def kernel(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=64) as _:
            tid = T.get_thread_binding(0)
            B[tid] = getattr(T, f"warp_reduce_{kind}")(A[tid])

    found = text(kernel)
    assert found.count(call) == 1
    assert "shuffle" not in found


def test_a_part_of_a_simdgroup_shuffles():
    @T.prim_func
    def kernel(A: T.Tensor((48,), "float32"), B: T.Tensor((48,), "float32")):
        with T.Kernel(1, threads=48) as _:
            tid = T.get_thread_binding(0)
            B[tid] = T.warp_reduce_sum(A[tid])

    assert "simd_sum" not in text(kernel)
