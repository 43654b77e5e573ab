"""Index arithmetic and conditions wrap, in every loop and on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compiler import lower
from tile_core.errors.ops import RuntimeExtent
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(2)

TOP = 2**31 - 1
m = T.dynamic("m")


@T.prim_func
def indices(A: T.Tensor((16,), "int32"), v: T.int32, B: T.Tensor((8, 16), "int32"), C: T.Tensor((4, 8), "int32")):
    with T.Kernel(4, threads=32) as bx:
        for i in T.Parallel(16):
            if bx == 0:
                B[0, i] = A[TOP - 8 + i]
                B[1, i] = A[(TOP - 8 + i) & 15]
                B[2, i] = A[(-(2**31) - i) << 1]
                B[3, i] = A[(TOP - i) * 2 + 2]
                if TOP - 6 + i > 3:
                    B[4, i] = 1
                if TOP - 5 - v > 3:
                    B[5, i] = 1
        if bx == 0:
            for i in T.serial(12, -4, -1):
                B[6, 12 - i] = A[TOP - i]
            for i in T.unroll(16):
                B[7, i] = A[T.floormod(i + (TOP - 4), 5)]
        for i in T.vectorized(8):
            C[bx, i] = A[T.floormod(bx + i + (TOP - 1), 5)]


def wrapped(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("v", [0, -7, 5])
@pytest.mark.parametrize("target", TARGETS)
def test_indices_and_conditions_that_leave_their_type(target: str, v: int) -> None:
    a = np.arange(100, 116, dtype=np.int32)
    b, c = np.full((8, 16), -1, np.int32), np.full((4, 8), -1, np.int32)
    compiled(indices, target)(a, v, b, c)

    def at(x: int) -> int:
        x = wrapped(x)
        return int(a[x]) if 0 <= x < 16 else 0

    over = range(16)
    assert b[0].tolist() == [at(TOP - 8 + i) for i in over]
    assert b[1].tolist() == [at((TOP - 8 + i) & 15) for i in over]
    assert b[2].tolist() == [at((-(2**31) - i) << 1) for i in over]
    assert b[3].tolist() == [at((TOP - i) * 2 + 2) for i in over]
    assert b[4].tolist() == [1 if wrapped(TOP - 6 + i) > 3 else -1 for i in over]
    assert b[5].tolist() == [1 if wrapped(TOP - 5 - v) > 3 else -1] * 16
    assert b[6].tolist() == [at(TOP - 12 + i) for i in over]
    assert b[7].tolist() == [at(wrapped(i + TOP - 4) % 5) for i in over]
    assert c.tolist() == [[at(wrapped(x + i + TOP - 1) % 5) for i in range(8)] for x in range(4)]


@pytest.mark.parametrize("target", TARGETS[1:])
def test_texts_compute_them_without_a_sign(target: str) -> None:
    """Overflow of signed numbers is undefined in these languages, of unsigned ones it wraps."""
    text = lower(indices, make_context(target), installed()).lowered.text
    lines = [line for line in text.splitlines() if "21474836" in line]
    assert lines
    for line in lines:
        assert "(uint)" in line or "(unsigned)" in line, line


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ["row", "column"])
def test_panels_of_no_blocks(target: str, order: str) -> None:
    def program(x: Any, y: Any) -> Any:
        @T.prim_func
        def main(A: T.Tensor((m,), "int32")):
            with T.Kernel(x, y, threads=1) as (bx, by):
                T.use_swizzle(1, order=order)
                A[by] = bx

        return main

    for grid in ((0, m), (m, 0), (0, 0), (0, 3)):
        a = np.full(3, 7, np.int32)
        compiled(program(*grid), target)(a)
        assert a.tolist() == [7, 7, 7]


@T.prim_func
def unsigned(
    A: T.Tensor((29,), "int32"),
    E: T.Tensor((7, 5), "int32"),
    D: T.Tensor((m,), "int32"),
    v: T.int32,
    u: T.uint8,
    B: T.Tensor((3, 17), "int32"),
):
    with T.Kernel(1, threads=32):
        for i in T.serial(17):
            B[0, i] = E[T.ceildiv(T.clamp(u, 0, 23), 24), T.ceildiv(T.clamp(u, 0, 23), 24) % 5]
            B[1, i] = A[T.if_then_else((3 // m) < T.if_then_else(u == i, i, u), 3, u // (v * 2 + 1))]
            B[2, i] = A[(v % T.max(v, 1)) + T.clamp(u, 0, 23)]


@pytest.mark.parametrize("target", TARGETS)
def test_an_index_that_cannot_be_analysed_decides_nothing_about_the_next(target: str) -> None:
    a, e = np.arange(1, 30, dtype=np.int32), np.arange(1, 36, dtype=np.int32).reshape(7, 5)
    b = compiled(unsigned, target, out_idx=5)(a, e, np.zeros(4, np.int32), 4, 153)
    assert b.tolist() == [[e[1, 1]] * 17, [a[3]] * 17, [a[23]] * 17]


@T.prim_func
def corners(A: T.Tensor((32,), "int32"), D: T.Tensor((m,), "int32"), v: T.int32, B: T.Tensor((3, 3, 4), "int32")):
    with T.Kernel(3, threads=32) as bx:
        for k in T.Pipelined(3, num_stages=2):
            s, t = T.alloc_shared((4,), "int32"), T.alloc_shared((4,), "int32")
            u = T.alloc_shared((4,), "int32")
            T.copy(A[k + bx + (TOP - 2) : k + bx + (TOP - 2) + 4], s)
            T.copy(A[v : v + 4], t)
            T.copy(D[v : v + 4], u)
            for i in T.Parallel(4):
                B[bx, k, i] = s[i] + t[i] + u[i]


@pytest.mark.parametrize("v", [TOP - 2, TOP - 3, TOP, -2, 3, 30])
@pytest.mark.parametrize("target", TARGETS)
def test_tiles_at_the_end_of_the_numbers_lie_outside(target: str, v: int) -> None:
    """A tile's end may overflow its corner's type: then it is outside."""
    a, d, b = np.arange(1, 33, dtype=np.int32), np.arange(100, 110, dtype=np.int32), np.full((3, 3, 4), -1, np.int32)
    compiled(corners, target)(a, d, v, b)

    def at(x: np.ndarray, p: int) -> int:
        return int(x[p]) if 0 <= p < len(x) else 0

    # A corner that wraps is before the beginning by 2**31, so nothing of its tile is inside.
    expected = [at(a, v + i) + at(d, v + i) for i in range(4)]
    assert b.tolist() == [[expected] * 3] * 3


@pytest.mark.parametrize("target", TARGETS)
def test_slices_from_an_unsigned_corner(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((29,), "int32"), u: T.uint8, v: T.int32, B: T.Tensor((2, 4), "int32")):
        with T.Kernel(1, threads=32):
            x = T.cast(T.clamp(u, 0, 23), "int32")
            T.copy(A[x : x + 4], B[0, :])
            y = T.if_then_else(v < 3, T.if_then_else(v < 1, x, 2), T.cast(u, "int32"))
            T.copy(A[y : y + 4], B[1, :])

    b = compiled(main, target, out_idx=3)(np.arange(29, dtype=np.int32), 200, 0)
    assert b.tolist() == [[23, 24, 25, 26]] * 2


def test_slices_whose_end_may_wrap_have_no_extent() -> None:
    with pytest.raises(RuntimeExtent):

        @T.prim_func
        def main(A: T.Tensor((29,), "int32"), u: T.uint8, B: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                T.copy(A[T.clamp(u, 0, 23) : T.clamp(u, 0, 23) + 4], B)


@T.prim_func
def runtime(
    A: T.Tensor((16,), "int32"),
    D: T.Tensor((m,), "int32"),
    X: T.Tensor((16,), "int32"),
    v: T.int32,
    w: T.int64,
    u: T.uint32,
    B: T.Tensor((12, 16), "int32"),
):
    with T.Kernel(1, threads=32):
        for i in T.serial(16):
            B[0, T.floormod(v + -(2**31), m)] = 1
            B[1, i] = D[T.min(i + T.truncdiv(2**31 - 13, T.max(v, 1)), (i ^ 3) * 5)]
            B[2, i] = D[T.floormod(X[i] - 1, m)]
            x = v - TOP
            B[3, i] = D[(x + i) % m]
            B[4, i] = D[m * m * 65536 * i % m]
            B[5, i] = D[(w * 3 - i) % m]
            B[6, i] = D[(u - 5 + T.cast(i, "uint32")) % T.cast(m, "uint32")]
        for i in T.Parallel(16):
            B[7, i] = A[v + i]
            B[8, i] = A[X[0] + TOP + i + 2]
            B[9, i] = D[T.max(X[i] - 1, 0) % m]
            if X[i] - 5 > 3:
                B[10, i] = A[X[i]]
            B[11, i] = A[(v + i) * 2 - v * 2]


@pytest.mark.parametrize("v", [-7, 1, 0, TOP - 3, -(2**31)])
@pytest.mark.parametrize("target", TARGETS)
def test_indices_of_runtime_values_that_leave_their_type(target: str, v: int) -> None:
    a, d = np.arange(100, 116, dtype=np.int32), np.arange(200, 217, dtype=np.int32)
    x = np.array([-(2**31), -(2**31) + 1, TOP, 0, 1, 13, 9, 8, *range(8)], np.int32)
    w, u = 2**62 + 5, 3
    b = np.full((12, 16), -1, np.int32)
    compiled(runtime, target)(a, d, x, v, w, u, b)
    size, over = len(d), range(16)

    def at(t: np.ndarray, p: int) -> int:
        return int(t[p]) if 0 <= p < len(t) else 0

    index = wrapped(v - 2**31) % size
    assert b[0].tolist() == [1 if i == index else -1 for i in over]
    quotient = (2**31 - 13) // max(v, 1)
    assert b[1].tolist() == [at(d, min(wrapped(i + quotient), (i ^ 3) * 5)) for i in over]
    assert b[2].tolist() == [at(d, wrapped(int(y) - 1) % size) for y in x]
    assert b[3].tolist() == [at(d, wrapped(wrapped(v - TOP) + i) % size) for i in over]
    assert b[4].tolist() == [at(d, wrapped(size * size * 65536 * i) % size) for i in over]
    assert b[5].tolist() == [at(d, ((w * 3 - i + 2**63) % 2**64 - 2**63) % size) for i in over]
    assert b[6].tolist() == [at(d, (u - 5 + i) % 2**32 % size) for i in over]
    assert b[7].tolist() == [at(a, wrapped(v + i)) for i in over]
    assert b[8].tolist() == [at(a, wrapped(int(x[0]) + TOP + i + 2)) for i in over]
    assert b[9].tolist() == [at(d, max(wrapped(int(y) - 1), 0) % size) for y in x]
    assert b[10].tolist() == [at(a, int(y)) if wrapped(int(y) - 5) > 3 else -1 for y in x]
    assert b[11].tolist() == [at(a, wrapped(wrapped(v + i) * 2 - v * 2)) for i in over]


@T.prim_func
def moved(A: T.Tensor((16,), "int32"), D: T.Tensor((m,), "int32"), v: T.int32, B: T.Tensor((5, 8), "int32")):
    with T.Kernel(1, threads=32):
        for i in range(-(2**31), TOP, 2**29):
            p = T.cast((T.cast(i, "int64") + 2**31) // 2**29, "int32")
            B[0, p] = D[0 - T.max(0, i)]
            B[1, p] = D[-1 - T.min(i, -1)]
            B[2, p] = D[5 - T.max(5, T.min(v, i))]
            B[3, p] = A[(T.max(v, 2) - TOP) + (TOP - T.max(i, 3))]
        for i in T.Parallel(8):
            B[4, i] = D[(T.max(v, 2**30) - 2**30) + (i - T.max(v, 7)) + 2**30]


@pytest.mark.parametrize("v", [-7, 9, TOP, -(2**31)])
@pytest.mark.parametrize("target", TARGETS)
def test_terms_that_are_moved_leave_no_type(target: str, v: int) -> None:
    """``0 - max(0, i)`` never overflows; its equal ``min(0, 0 - i)`` may."""
    a, d, b = np.arange(1, 17, dtype=np.int32), np.arange(100, 117, dtype=np.int32), np.full((5, 8), -1, np.int32)
    compiled(moved, target)(a, d, v, b)

    def at(t: np.ndarray, p: int) -> int:
        return int(t[p]) if 0 <= p < len(t) else 0

    over = range(-(2**31), TOP, 2**29)
    assert b[0].tolist() == [at(d, -max(0, i)) for i in over]
    assert b[1].tolist() == [at(d, -1 - min(i, -1)) for i in over]
    assert b[2].tolist() == [at(d, 5 - max(5, min(v, i))) for i in over]
    assert b[3].tolist() == [at(a, max(v, 2) - max(i, 3)) for i in over]
    assert b[4].tolist() == [at(d, max(v, 2**30) + i - max(v, 7)) for i in range(8)]


@pytest.mark.parametrize("target", TARGETS)
def test_additions_to_a_runtime_start_keep_a_loop_without_guards(target: str) -> None:
    """One comparison before the loop proves that nothing wraps: it is done in 64 bits."""

    @T.prim_func
    def main(A: T.Tensor((m,), "float32"), S: T.Tensor((4,), "int32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=32) as bx:
            start = S[bx] * 3
            for i in T.Parallel(64):
                B[bx, i] = A[start + i - 2]

    lowered = lower(main, make_context(target), installed()).lowered
    text = lowered.script() if target == "cpu" else lowered.text
    assert ("int64" if target == "cpu" else "long") in text
    a, s = np.arange(1, 200, dtype=np.float32), np.array([1, 50, 0, -(2**31) // 3], np.int32)
    b = compiled(main, target, out_idx=2)(a, s)
    wrapped_indices = [[wrapped(wrapped(int(first) * 3) + i - 2) for i in range(64)] for first in s]
    assert b.tolist() == [[a[p] if 0 <= p < len(a) else 0 for p in row] for row in wrapped_indices]
