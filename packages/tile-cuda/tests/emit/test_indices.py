"""Indices that TVM's analyzer mishandles: unsigned constants, and constants computed in 32 bits."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

m = T.dynamic("m")


@T.prim_func
def unsigned(A: T.Tensor((24,), "int32"), B: T.Tensor((4,), "int32"), u: T.uint8):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            B[i] = A[T.clamp(u, 0, 23)]


@T.prim_func
def large(A: T.Tensor((m,), "uint4"), B: T.Tensor((6,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.unroll(6):
            B[i] = T.cast(A[T.if_then_else(i < i, (m - -536870912) * 5, m)], "int32")


@pytest.mark.parametrize("program", [unsigned, large])
def test_texts_of_indices_that_an_analyzer_fails_over(program) -> None:
    plan = lower(program, make_context("cuda:sm_80"), installed())
    assert "__global__" in plan.lowered.text
