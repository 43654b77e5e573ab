"""Indices: constants are non-negative, runtime ones may be outside, tensor ends clip slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)


def program(part: str) -> Any:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((4, 6), "float32"), D: T.Tensor((m,), "float32"), B: T.Tensor((4, 6), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 6), "float32")
            T.clear(s)
            if part == "load":
                B[0, 0] = A[0, -1]
            elif part == "store":
                B[-1, 0] = 1.0
            elif part == "scratch":
                B[0, 0] = s[-2, 0]
            elif part == "stored in scratch":
                s[0, -1] = 2.0
            elif part == "a static loop":
                for w in T.static_range(3):
                    B[w, 0] = A[w - 1, 0]
            elif part == "a helper":
                neighbour(B, A, 0)
            elif part == "symbolic":
                B[0, 0] = D[-1]
            elif part == "corner":
                T.copy(A[-2, 0], s[0:2, :])
            elif part == "slice":
                T.copy(A[-2:, :], s[0:2, :])
            elif part == "slice to":
                T.copy(A[:-1, :], s[0:3, :])
            elif part == "atomic":
                T.atomic_add(B[0, -1], 1.0)
            elif part == "fill":
                T.fill(s[-1, :], 1.0)
            elif part == "a constant of the kernel":
                B[0, 0] = A[0, T.cast(3, "int32") - 4]

    return main


def neighbour(B: Any, A: Any, i: int) -> None:
    B[i, 0] = A[i - 1, 0]


@pytest.mark.parametrize(
    "part",
    [
        "load", "store", "scratch", "stored in scratch", "a static loop", "a helper", "symbolic", "corner", "slice",
        "slice to", "atomic", "fill", "a constant of the kernel",
    ],
)  # fmt: skip
def test_negative_constants_are_refused(part: str) -> None:
    with pytest.raises(tile.TileError, match="K139"):
        program(part)


@pytest.mark.parametrize("target", TARGETS)
def test_runtime_indices_that_are_negative_lie_outside(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), n: T.int32, B: T.Tensor((3, 4), "float32")):
        with T.Kernel(1, threads=32):
            for w in T.serial(4):
                B[0, w] = A[w - 1]
            for w in T.unroll(4):
                B[1, w] = A[w + n]
            for w in T.Parallel(4):
                B[2, w - 2] = A[w]
            B[n, 0] = 9.0  # dropped

    a = np.arange(1, 5, dtype=np.float32)
    b = np.full((3, 4), -1, np.float32)
    compiled(main, target)(a, -1, b)
    assert b.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [3, 4, -1, -1]]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [5, 16, 17, 31])
def test_slices_that_the_end_cuts(target: str, rows: int) -> None:
    """As the corner does: what lies outside reads as 0, and is not written."""
    blocks = -(-rows // 16)

    @T.prim_func
    def main(
        A: T.Tensor((rows, 8), "float32"), B: T.Tensor((rows, 8), "float32"), C: T.Tensor((blocks, 16, 8), "float32")
    ):
        with T.Kernel(blocks, threads=32) as b:
            s = T.alloc_shared((16, 8), "float32")
            T.copy(A[b * 16 : b * 16 + 16, :], s)
            T.copy(s, C[b, :, :])
            for i, j in T.Parallel(16, 8):
                s[i, j] = s[i, j] + 1.0
            T.copy(s, B[b * 16 : b * 16 + 16, :])

    a = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
    b, c = compiled(main, target, out_idx=[1, 2])(a)
    np.testing.assert_array_equal(b, a + np.float32(1))
    padded = np.zeros((blocks * 16, 8), np.float32)
    padded[:rows] = a
    np.testing.assert_array_equal(c.reshape(-1, 8), padded)


@pytest.mark.parametrize("target", TARGETS)
def test_constant_slices_that_the_end_cuts(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((20, 8), "float32"), B: T.Tensor((20, 8), "float32"), S: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for b in T.static_range(2):
                s = T.alloc_shared((16, 8), "float32")
                r = T.alloc_fragment((16,), "float32")
                f = T.alloc_fragment((16, 8), "float32")
                T.copy(A[b * 16 : (b + 1) * 16, 0:8], s)
                T.copy(s, B[b * 16 : (b + 1) * 16, 0:8])
                T.copy(A[b * 16 : (b + 1) * 16, 0:8], f)
                T.reduce_sum(f, r, dim=1)
                T.copy(r, S[b * 16 : (b + 1) * 16])

    a = np.random.default_rng(3).integers(-4, 5, (20, 8)).astype(np.float32)
    b, s = compiled(main, target, out_idx=[1, 2])(a)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(s, np.pad(a.sum(axis=1), (0, 12)))


@pytest.mark.parametrize(("scope", "low", "high"), [("global", 20, 36), ("global", 5, 3), ("shared", 4, 28)])
def test_what_lies_outside_altogether_is_refused(scope: str, low: int, high: int) -> None:
    with pytest.raises(tile.TileError, match="K106"):

        @T.prim_func
        def outside(A: T.Tensor((20,), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((20,), "float32")
                T.fill((A if scope == "global" else s)[low:high], 0.0)
