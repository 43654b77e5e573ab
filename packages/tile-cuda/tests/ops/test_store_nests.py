"""Nests that store accumulators element by element: vector stores, rasterization, results."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

pytestmark = pytest.mark.sweep(6)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "numerics": "standard"}
NUMPY: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_WIDE = re.compile(r"\*\(uint4\*\)\(?&C\[|cp_async_bulk_tensor_\w*_global_shared|C_descriptor")


def product(form: str, sizes=(130, 136, 96), out: str = "float16", block=(64, 64, 32), threads: int = 128) -> Any:
    (m, n, k), (bm, bn, bk) = sizes, block

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), S: T.Tensor((n,), "float32"),
        rows: T.Tensor((1,), "int32"), C: T.Tensor((m, n), out),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[by * bm, t * bk], a)
                T.copy(B[bx * bn, t * bk], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(bm, bn):
                row, column = by * bm + i, bx * bn + j
                if form == "plain":
                    C[row, column] = c[i, j]
                if form == "scaled":
                    C[row, column] = c[i, j] * S[column] + C[row, column]
                if form == "guarded" and row < rows[0]:
                    C[row, column] = c[i, j]
                if form == "guarded and scaled" and row < rows[0] and row != 3:
                    C[row, column] = c[i, j] * S[column]
                if form == "columns" and column < rows[0]:
                    C[row, column] = c[i, j]
                if form == "transposed" and row < n and column < m:
                    C[column, row] = c[i, j]

    return main


def check(form: str, options: dict[str, Any], out: str, sizes=(130, 136, 96), **how: Any) -> str:
    program = product(form, sizes, out, **how)
    kernel = tile.compile(program, TARGET, runtime="emulator", options={**ALWAYS, **options})
    (m, n, k), rng = sizes, np.random.default_rng()
    a, b = (rng.integers(-2, 3, (x, k)).astype(np.float16) for x in (m, n))
    s, rows = rng.integers(-2, 3, n).astype(np.float32), np.array([77], np.int32)
    old = rng.integers(-2, 3, (m, n)).astype(NUMPY[out])
    c = old.copy()
    kernel(a, b, s, rows, c)
    wanted, before = a.astype(np.float32) @ b.astype(np.float32).T, old.astype(np.float32)
    if "scaled" in form:
        wanted = wanted * s + (before if form == "scaled" else 0)
    at_row, at_column = np.arange(m)[:, None], np.arange(n)[None, :]
    if form.startswith("guarded"):
        wanted = np.where((at_row < rows[0]) & ((at_row != 3) | (form == "guarded")), wanted, before)
    if form == "columns":
        wanted = np.where(at_column < rows[0], wanted, before)
    if form == "transposed":
        square = min(m, n)
        before[:square, :square] = wanted[:square, :square].T
        wanted = before
    assert np.array_equal(c, wanted.astype(NUMPY[out]))
    return str(kernel.source)


@pytest.mark.parametrize("out", NUMPY)
@pytest.mark.parametrize("form", ["plain", "scaled", "guarded", "guarded and scaled"])
def test_rows_are_stored_by_vectors(form: str, out: str) -> None:
    source = check(form, {}, out)
    assert _WIDE.search(source)
    check(form, {"persistent": 2}, out, (195, 200, 96))
    check(form, {"persistent": 2}, out, block=(128, 64, 32), threads=256)


def test_other_stores_are_unchanged() -> None:
    options = {"epilogue": "never"}
    texts = {tile.compile(product("columns"), TARGET, options={**ALWAYS, **o}).source for o in ({}, options)}
    assert len(texts) == 1
    check("columns", {}, "float16", (136, 136, 96))


def test_transposed_results_go_through_shared_memory() -> None:
    assert "c_staged" in check("transposed", {}, "float16", (136, 136, 96))


def test_odd_rows_are_stored_by_elements() -> None:
    check("guarded", {}, "float16", (130, 67, 96))
    check("scaled", {}, "float16", (67, 135, 96))
