"""Whole-tile expressions: right on every target, with the text of their loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(2)

#: Rows and columns of a tile: awkward ones.
SHAPES = ((16, 48), (33, 20), (7, 129))


def attention_step(rows: int, cols: int, scope: str, whole: bool) -> Any:
    """Return a step of a softmax: broadcast rows and columns, functions, choices, in-place updates."""
    alloc = T.alloc_shared if scope == "shared" else T.alloc_fragment

    @T.prim_func
    def main(
        S: T.Tensor((rows, cols), "float32"), M: T.Tensor((rows,), "float32"), B: T.Tensor((cols,), "float32"),
        Out: T.Tensor((rows, cols), "float32"), L: T.Tensor((rows,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            s = alloc((rows, cols), "float32")
            m = alloc((rows,), "float32")
            b = alloc((cols,), "float32")
            acc = alloc((rows, cols), "float32")
            total = alloc((rows,), "float32")
            T.copy(S, s)
            T.copy(M, m)
            T.copy(B, b)
            T.clear(acc)
            for k in range(3):
                if whole:
                    acc[...] = acc * 0.5 + T.exp2(s - m[:, None]) * b[None, :]
                    acc[...] = T.where(acc > 1.0, acc - T.cast(k, "float32"), b)
                else:
                    for i, j in T.Parallel(rows, cols):
                        acc[i, j] = acc[i, j] * 0.5 + T.exp2(s[i, j] - m[i]) * b[j]
                    for i, j in T.Parallel(rows, cols):
                        acc[i, j] = T.Select(acc[i, j] > 1.0, acc[i, j] - T.cast(k, "float32"), b[j])
            T.reduce_sum(acc, total, dim=1)
            T.copy(acc, Out)
            T.copy(total, L)

    return main


# The CPU's text is LLVM's, which names functions by their number.
@pytest.mark.parametrize("target", [t for t in TARGETS if t != "cpu"])
@pytest.mark.parametrize("scope", ["fragment", "shared"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_text_is_the_loops(target, scope, shape):
    texts = [compiled(attention_step(*shape, scope, whole), target).source for whole in (True, False)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", [*TARGETS, "rocm:gfx942"])
@pytest.mark.parametrize("scope", ["fragment", "shared"])
def test_a_step_of_softmax(target, scope):
    rows, cols = SHAPES[1]
    rng = np.random.default_rng(5)
    s, m, b = (rng.standard_normal(n).astype("f") for n in ((rows, cols), rows, cols))
    kernel = compiled(attention_step(rows, cols, scope, True), target, out_idx=[3, 4])
    out, total = kernel(s, m, b)
    acc = np.zeros((rows, cols))
    for k in range(3):
        acc = acc * 0.5 + np.exp2(s - m[:, None]) * b
        acc = np.where(acc > 1, acc - k, b)
    np.testing.assert_allclose(out, acc, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total, acc.sum(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", [*TARGETS, "rocm:gfx942"])
def test_slices_of_tensors_of_runtime_sizes(target):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float16"), B: T.Tensor((n,), "float32"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 24), T.ceildiv(m, 16), threads=96) as (bx, by):
            rows, cols = slice(by * 16, by * 16 + 16), slice(bx * 24, bx * 24 + 24)
            x = A[rows, cols] * 2
            x += B[cols]
            half = x[0:8, :] - x[8:16, :]
            C[rows, cols] = x
            C[by * 16 : by * 16 + 8, cols] = half * 0.5

    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (37, 50)).astype(np.float16)
    b = rng.integers(-4, 5, 50).astype(np.float32)
    found = compiled(main, target, out_idx=[2])(a, b)
    want = a * 2 + b
    padded = np.zeros((48, 50))
    padded[:37] = want
    padded[37:] = b
    for start in range(0, 37, 16):
        want[start : start + 8] = ((padded[start : start + 8] - padded[start + 8 : start + 16]) * 0.5)[: 37 - start]
    np.testing.assert_array_equal(found, want.astype(np.float16))


def test_the_gate_holds():
    """The texts of two different expressions differ: the comparison above can fail."""

    def program(factor: float) -> Any:
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                A[...] = A * factor

        return main

    texts = {tile.compile(program(f), "metal", runtime="emulator").source for f in (2.0, 3.0)}
    assert len(texts) == 2
