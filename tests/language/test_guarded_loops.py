"""Loops with the program's own conditions have vector accesses on every target with threads."""

from __future__ import annotations

import contextlib
import re
import warnings

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase

import tile_core as tile
import tile_core.language as T
from tile_core.simt.placement import layout_inference, vector_width
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES

#: A target, and a 16-byte access in its language.
TARGETS = {"cuda:sm_80": "uint4*)", "cuda:sm_90a": "uint4*)", "metal": "uint4*)", "rocm:gfx942": "v16*)"}


def gated(n, form):
    @T.prim_func
    def kernel(G: T.Tensor((8, 2 * n), "bfloat16"), M: T.Tensor((8, n), "uint8"), Y: T.Tensor((8, n), "bfloat16")):
        with T.Kernel(T.ceildiv(n, 2048), 8, threads=256) as (bx, r):
            for j in T.Parallel(2048):
                c = bx * 2048 + j
                if form == "bound":
                    if c < n:
                        Y[r, c] = T.cast(G[r, c], "float32") * T.cast(G[r, n + c], "float32")
                elif form == "odd":
                    if c < n - 3:
                        Y[r, c] = G[r, c]
                elif form == "else":
                    if c < n - 8:
                        t = T.cast(G[r, c], "float32")
                        Y[r, c] = t * t
                    else:
                        Y[r, c] = 0
                elif form == "assumed":
                    T.assume(c < n)
                    if c < n:
                        Y[r, c] = G[r, c]
                elif form == "choice":
                    Y[r, c] = T.if_then_else(c < n - 16, G[r, c], T.cast(0, "bfloat16"))
                elif M[r, c] != 0:
                    Y[r, c] = G[r, c] * G[r, n + c]

    return kernel


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", TARGETS)
def test_guarded_loops_have_vector_accesses(target):
    wide = TARGETS[target]

    def text(n, form):
        return tile.compile(gated(n, form), target=target).source

    always = text(14336, "bound")
    assert always.count(wide) == 6
    assert "< 14336" not in always
    assert text(14344, "bound").count(wide) == 6  # the bound is a multiple of the width: one test for each vector
    split = text(14344, "odd")
    assert "+ 7) < 14341" in split.replace("r_1 + 7", "7")
    assert text(14344, "else").count(wide) >= 5
    assert "< 14344" not in text(14344, "assumed")
    assert text(14344, "choice").count(wide) >= 2
    assert text(14336, "mask").count(wide) >= 6


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", TARGETS)
def test_threads_of_a_warp_access_adjacent_elements_of_unaligned_rows(target):
    def elements_of_a_thread(n):
        text = tile.compile(gated(n, "bound"), target=target).source
        return int(re.search(r"int j = tid(?: \* (\d+))?;", text)[1] or 1)

    assert [elements_of_a_thread(n) for n in (4093, 4094, 4092, 4096)] == [1, 2, 4, 8]


def shifted(n):
    """A load of unaligned rows beside accesses of aligned ones."""

    @T.prim_func
    def kernel(A: T.Tensor((4, n), "bfloat16"), B: T.Tensor((4, n + 8), "bfloat16"), Y: T.Tensor((4, n), "bfloat16")):
        with T.Kernel(4, threads=128) as r:
            for j in T.Parallel(1024):
                if j < n:
                    Y[r, j] = A[r, j] + B[r, j + 1]

    return kernel


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("n", [T.dynamic("n"), 1000, 1001])
@pytest.mark.parametrize("target", TARGETS)
def test_versions_have_the_width_of_their_rows(target, n):
    rng = np.random.default_rng(1)
    kernel = tile.compile(shifted(n), target=target, runtime="emulator")
    for size in (1000, 1001, 1002, 7) if not isinstance(n, int) else (n,):
        a, b = (rng.integers(-9, 9, (4, size + x)).astype(ml_dtypes.bfloat16) for x in (0, 8))
        y = np.full((4, size), 99, ml_dtypes.bfloat16)
        kernel(a, b, y)
        np.testing.assert_array_equal(y, a + b[:, 1 : size + 1])
    assert re.search(r"int j = tid( \* \d+)?;", kernel.source)[1] == (None if isinstance(n, int) and n % 2 else " * 2")


@pytest.mark.sweep(0.25)
def test_the_fuzzer_draws_unaligned_rows(monkeypatch):
    widths = []

    def recorded(vector, nest, aligned):
        found = vector_width.coalesced(vector, nest, aligned)
        widths.append((vector, found))
        return found

    monkeypatch.setattr(layout_inference, "coalesced", recorded)

    @hypothesis.settings(max_examples=10, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @hypothesis.given(STRATEGIES["guards"][0])
    def draw(unit):
        with contextlib.suppress(tile.TileError), warnings.catch_warnings(action="ignore"):
            tile.compile(load(unit.text()), target="cuda:sm_80").source  # noqa: B018

    with tile.disable_cache():
        draw()
    assert {found < vector for vector, found in widths} == {True, False}
    assert len(widths) >= 10


@T.prim_func
def stores_by_a_view(X: T.Tensor((1024,)), M: T.Tensor((1024,), "int32"), Z: T.Tensor((1024,))):
    with T.Kernel(1, threads=128):
        V = T.view(Z, (1024,), "float32")
        for i in T.Parallel(1024):
            Z[i] = X[i]
            if M[i] > 0:
                V[i] = 7
                Z[i] = 5


@T.prim_func
def stores_to_rows_that_data_name(X: T.Tensor((8, 128)), M: T.Tensor((8,), "int32"), Z: T.Tensor((8, 128))):
    with T.Kernel(8, threads=128) as r:
        for i in T.Parallel(128):
            if X[r, i] > 0:
                Z[r, i] = X[r, i]
            Z[M[r], i] = 2
            if X[r, i] > 0:
                Z[r, i] = 3


@T.prim_func
def loads_by_a_view(X: T.Tensor((1024,)), M: T.Tensor((1024,), "int32"), Z: T.Tensor((1024,))):
    with T.Kernel(2, threads=128) as bx:
        V = T.view(X, (1024,), "float32")
        if bx == 0:
            for i in T.Parallel(1024):
                if M[i] > 0:
                    Z[i] = V[i]
        else:
            for i in T.Parallel(1024):
                if M[i] <= 0:
                    X[i] = 1


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
def test_accesses_of_one_element_by_two_names_keep_their_order(target):
    rng = np.random.default_rng()
    x, m = rng.standard_normal(1024).astype("float32"), rng.integers(0, 2, 1024).astype("int32")
    z = np.zeros(1024, "float32")
    tile.compile(stores_by_a_view, target, runtime="emulator")(x, m, z)
    np.testing.assert_array_equal(z, np.where(m > 0, 5, x))
    rows, z = x.reshape(8, 128), np.zeros((8, 128), "float32")
    tile.compile(stores_to_rows_that_data_name, target, runtime="emulator")(rows, np.arange(8, dtype="int32"), z)
    np.testing.assert_array_equal(z, np.where(rows > 0, 3, 2))
    z = np.zeros(1024, "float32")
    tile.compile(loads_by_a_view, target, runtime="emulator")(x.copy(), m, z)
    np.testing.assert_array_equal(z, np.where(m > 0, x, 0))
