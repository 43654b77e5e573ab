"""Choices and conditions of data in vector loops: which become vectors, with results of single lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.cpu.lane_selects import select_lanes
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports.timing import timed

SIZES = (1, 2, 15, 16, 17, 61, 257)
DTYPES = ("float32", "float16", "bfloat16", "int8", "float64")


def masked(n: int, dtype: str) -> Any:
    @T.prim_func
    def main(
        X: T.Tensor((5, n), dtype), K: T.Tensor((5, n), "int32"), L: T.Tensor((5,), "int32"), S: T.Tensor((n,), dtype),
        A: T.Tensor((5, n), dtype), B: T.Tensor((5, n), dtype), C: T.Tensor((5, n), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 64), 5, threads=32) as (bx, r):
            for j in T.Parallel(64):
                c = bx * 64 + j
                if c < n:
                    A[r, c] = T.if_then_else(K[r, c] > 0, X[r, c] + X[r, c], T.if_then_else(c < L[r], X[r, c], 0))
                    B[r, c] = T.if_then_else(c > 0, X[r, c - 1], X[r, c])
                if c < L[r]:
                    C[r, c] = X[r, c] + S[c]
                else:
                    if c < n:
                        C[r, c] = S[c]

    return main


def expected(n: int, x: Any, k: Any, lengths: Any, s: Any) -> list[Any]:
    columns = np.arange(n)
    inside = columns < lengths[:, None]
    a = np.where(k > 0, x + x, np.where(inside, x, x * 0))
    return [a.astype(x.dtype), np.concatenate([x[:, :1], x[:, :-1]], 1), np.where(inside, x + s, s).astype(x.dtype)]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("generic", [False, True])
def test_results(n: int, dtype: str, generic: bool) -> None:
    rng = np.random.default_rng(n)
    kind = T.dtype(dtype).numpy()
    x, s = rng.integers(-9, 9, (5, n)).astype(kind), rng.integers(-9, 9, n).astype(kind)
    k, lengths = rng.integers(-1, 2, (5, n)).astype("int32"), np.array([0, n, n // 2, n + 9, -3], "int32")
    outs = [np.full((5, n), 77, kind) for _ in range(3)]
    kernel = tile.compile(masked(n, dtype), "cpu", options={"generic": generic})
    # A row that is longer than its tensor stores nothing behind it.
    kernel(x, k, lengths, s, *outs)
    for found, want in zip(outs, expected(n, x, k, np.minimum(lengths, n), s), strict=True):
        np.testing.assert_array_equal(found, want)


def choices(program: Any) -> tuple[int, int]:
    """Return how many choices of a finished program are selects, and how many are not."""
    body = timed(program, make_context("cpu", {}), installed()).body
    calls = collect(body, ir.Call)
    return len(collect(body, tirx.Select)), sum(nodes.operator_name(c) == "if_then_else" for c in calls)


def one(form: str) -> Any:
    @T.prim_func
    def main(
        X: T.Tensor((64,), "int32"), Z: T.Tensor((63,), "int32"), P: T.Tensor((64,), "int32"),
        Y: T.Tensor((64,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                Y[i] = eval(form, {"T": T, "X": X, "Z": Z, "P": P, "i": i})

    return main


FORMS = {
    "T.if_then_else(P[i] > 0, X[i], P[i])": True,
    "T.if_then_else(P[i] > 0, X[3], P[i])": True,
    "T.if_then_else(P[i] > 0, X[i ^ 1], P[i])": False,  # another index: its range is not known here
    "T.if_then_else(i < 63, Z[i], P[i])": False,  # Z is shorter than Y
    "T.if_then_else(P[i] > 0, X[P[i] & 63], P[i])": False,
    "T.if_then_else(P[0] > 0, X[i], P[i])": False,  # all lanes agree: decided around the vectors
}


@pytest.mark.parametrize("form", FORMS)
def test_only_values_that_may_be_computed_are_selected(form: str) -> None:
    selects, others = choices(one(form))
    assert (others == 0) == FORMS[form]
    assert (selects > 0) == FORMS[form]


def test_a_program_without_choices_is_unchanged() -> None:
    body = timed(one("X[i] + P[i]"), make_context("cpu", {}), installed()).body
    assert select_lanes(body).same_as(body)
