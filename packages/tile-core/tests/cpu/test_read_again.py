"""Rows of tensors that loops read again instead of a copy: which are, and that results stay the same."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.compiler import lower
from tile_core.ir.visit import collect
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

M, N = 5, 300


def normalized(form: str, dtype: str) -> Any:
    """Return a program that divides rows by their totals, with a copy of each row in ``x``."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), R: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=64) as r:
            x = T.alloc_fragment((N,), "float32")
            z = T.alloc_fragment((N,), "float32")
            t = T.alloc_fragment((1,), "float32")
            for j in T.Parallel(N):
                if form == "of a sum":
                    x[j] = T.cast(X[r, j], "float32") + T.cast(R[r, j], "float32")
                elif form == "of a product":
                    x[j] = T.cast(X[r, j], "float32") * T.cast(R[r, j], "float32")
                elif form == "of most elements":
                    x[j] = T.if_then_else(j < N - 7, T.cast(X[r, j], "float32"), 0.5)
                else:
                    x[j] = T.cast(X[r, j], "float32")
            T.reduce_sum(x, t, dim=0)
            if form == "of a written tensor":
                for j in T.Parallel(N):
                    X[r, j] = T.cast(R[r, j], dtype)
            if form == "that changes in part":
                for j in T.Parallel(100):
                    x[j] = x[j] + 1.0
            if form == "backwards":
                for j in T.Parallel(N):
                    z[j] = x[N - 1 - j]
                T.copy(z, x)
            for j in T.Parallel(N):
                x[j] = x[j] / t[0]
            if form == "that is read many times":
                for j in T.Parallel(N):
                    for k in T.serial(4):
                        x[j] = x[j] + x[j] * k
            T.copy(x, Y[r, :])

    return main


def expected(form: str, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    x, other = x.astype("float64"), other.astype("float64")
    if form == "of a sum":
        x = x + other
    elif form == "of a product":
        x = x * other
    elif form == "of most elements":
        x = np.where(np.arange(N) < N - 7, x, 0.5)
    total = x.sum(1, keepdims=True)
    if form == "that changes in part":
        x = np.where(np.arange(N) < 100, x + 1, x)
    if form == "backwards":
        x = x[:, ::-1]
    x = x / total
    for k in range(4 if form == "that is read many times" else 0):
        x = x + x * k
    return x


FORMS = {
    "of a tensor": False, "of a sum": False, "backwards": False, "that is read many times": False,
    "of a product": True, "of most elements": True, "of a written tensor": True, "that changes in part": True,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_read_again(form: str, dtype: str) -> None:
    rng = np.random.default_rng()
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype("float32")
    x, other = (rng.uniform(0.5, 2, (M, N)).astype(kind) for _ in range(2))
    want = expected(form, x, other)
    y = np.full((M, N), 7, "float32")
    tile.compile(normalized(form, dtype), "cpu")(x, other, y)
    np.testing.assert_allclose(y, want, rtol=1e-5)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "of most elements"])
def test_which_rows_are_stored_first(form: str) -> None:
    """The tile is stored before the division, or holds its results only."""
    plugins = installed()
    body = lower(normalized(form, "bfloat16"), make_context("cpu:x86-64-v4", plugins=plugins), plugins).lowered.body
    sources = [s for s in collect(body, tirx.BufferStore) if str(s.buffer.name) == "x" and "X" in str(s.value)]
    divided = [s for s in sources if "float_div" in str(s.value)]
    assert (len(sources) > len(divided)) == FORMS[form]
