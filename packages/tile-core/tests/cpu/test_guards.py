"""Accesses out of bounds despite a wrong proof: nothing is read or written there."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T


def test_a_condition_on_a_variable_says_nothing_once_the_variable_is_written() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), first: T.int32):
        with T.Kernel(1, threads=32):
            v = T.alloc_var("int32")
            v = first
            if v >= 0 and v < 8:
                v = v + 5
                A[v] = 1

    memory = np.zeros(64, "int32")
    kernel = tile.compile(main, target="cpu")
    kernel(memory[:8], 7)
    assert not memory.any()
    kernel(memory[:8], 2)
    assert memory.nonzero()[0].tolist() == [7]


def test_conversions_to_narrow_types_wrap_before_they_are_indices() -> None:
    @T.prim_func
    def main(A: T.Tensor((7, 5), "int32"), B: T.Tensor((5, 2), "int32"), v: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.serial(5):
                B[i, 0] = A[T.cast(T.floordiv(i, v * 2 + 1), "uint8"), 0]
                B[i, 1] = A[T.cast(T.cast(i * 100, "int8"), "int32") // 50, 1]

    a, b = np.arange(1, 36, dtype="int32").reshape(7, 5), np.full((5, 2), -1, "int32")
    tile.compile(main, target="cpu")(a, b, -4)
    assert b[:, 0].tolist() == [1, 0, 0, 0, 0]  # -1 is row 255
    rows = [0, 2, -56 // 50, 44 // 50, -112 // 50]
    assert b[:, 1].tolist() == [a[r, 1] if r >= 0 else 0 for r in rows]


def test_unsigned_indices_of_every_width() -> None:
    @T.prim_func
    def main(A: T.Tensor((24,), "int32"), B: T.Tensor((4,), "int32"), u: T.uint8, w: T.uint64):
        with T.Kernel(1, threads=32):
            B[0] = A[T.clamp(u, 0, 23)]
            B[1] = A[u]
            B[2] = A[w]
            B[3] = A[T.min(w, 5)]

    a, b = np.arange(1, 25, dtype="int32"), np.full(4, -1, "int32")
    kernel = tile.compile(main, target="cpu")
    kernel(a, b, 200, 2**64 - 3)
    assert b.tolist() == [24, 0, 0, 6]
    kernel(a, b, 3, 4)
    assert b.tolist() == [4, 4, 5, 5]


def test_loops_of_one_name_are_not_each_other() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((4,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                for k in T.serial(20):
                    B[i] += A[n + k]
                for k in T.serial(2):
                    B[i] += A[n + k]

    memory, b = np.ones(64, "int32"), np.zeros(4, "int32")
    tile.compile(main, target="cpu")(memory[:8], b, 3)
    assert b.tolist() == [7] * 4


def test_arithmetic_that_leaves_its_type_wraps_before_it_is_an_index_or_compared() -> None:
    @T.prim_func
    def main(A: T.Tensor((24,), "int32"), B: T.Tensor((5, 8), "int32"), v: T.int32):
        with T.Kernel(8, threads=32) as bx:
            B[0, bx] = A[(bx + 2147483646) % 5]
            B[1, bx] = A[2147483644 + bx]
            B[2, bx] = A[(-2147483648 - bx) << 1]
            B[3, bx] = T.if_then_else(2147483641 + bx > 3, 1, 0)
            B[4, bx] = T.if_then_else(-2147483648 - v > 3, 1, 0)

    def wrapped(x: int) -> int:
        return (x + 2**31) % 2**32 - 2**31

    a, b = np.arange(1, 25, dtype="int32"), np.full((5, 8), -1, "int32")
    tile.compile(main, target="cpu")(a, b, 5)
    at = [[wrapped(i + 2147483646) % 5, wrapped(2147483644 + i), wrapped(wrapped(-(2**31) - i) << 1)] for i in range(8)]
    for row in range(3):
        positions = [p[row] for p in at]
        assert b[row].tolist() == [a[p] if 0 <= p < 24 else 0 for p in positions]
    assert b[3].tolist() == [int(wrapped(2147483641 + i) > 3) for i in range(8)]
    assert b[4].tolist() == [1] * 8


def test_scalars_near_the_limits_reach_nothing() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((20,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(20):
                B[i] = A[n + i]
            if n >= 0:
                A[n + 1] = -1

    kernel = tile.compile(main, target="cpu")
    for n in (2**31 - 1, 2**31 - 10, -(2**31), -5, 0, 3):
        memory, b = np.arange(1, 65, dtype="int32"), np.full(20, -1, "int32")
        kernel(memory[:8], b, n)
        assert b.tolist() == [n + i + 1 if 0 <= n + i < 8 else 0 for i in range(20)]
        changed = np.flatnonzero(memory != np.arange(1, 65)).tolist()
        assert changed == ([n + 1] if 0 <= n < 7 else [])


def test_loops_and_quotients_by_the_number_of_the_only_block() -> None:
    @T.prim_func
    def main(A: T.Tensor((24,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for i, j in T.Parallel(1, bx):
                B[i + j] = 5
            for i in T.serial(8):
                B[i] = A[i % bx] + A[T.if_then_else(i == i, -268435456, i) << 4]

    b = np.full(8, -1, "int32")
    tile.compile(main, target="cpu")(np.arange(1, 25, dtype="int32"), b)
    assert b.tolist() == [2] * 8


def test_constants_that_an_analyzer_would_compute_in_32_bits() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(6):
                B[i] = A[T.if_then_else(i < 3, (m - -536870912) * 5, m - 1 - i)]

    b = np.full(6, -1, "int32")
    tile.compile(main, target="cpu")(np.arange(1, 9, dtype="int32"), b)
    assert b.tolist() == [0, 0, 0, 5, 4, 3]


def test_choices_between_integers_of_several_types() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((3, 4), "int32"), w: T.int64, u: T.uint8):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(3, 4):
                B[i, j] = A[T.if_then_else(i < j, T.if_then_else(w == 0, w, i), 0)] + A[T.if_then_else(j > 2, u, i)]

    a, b = np.arange(1, 9, dtype="int32"), np.full((3, 4), -1, "int32")
    kernel = tile.compile(main, target="cpu")
    for w, u in ((0, 7), (2**40, 200)):
        kernel(a, b, w, u)
        first = [[(w if w == 0 else i) if i < j else 0 for j in range(4)] for i in range(3)]
        second = [[u if j > 2 else i for j in range(4)] for i in range(3)]
        padded = np.zeros(256, "int32")
        padded[:8] = a
        np.testing.assert_array_equal(b, padded[np.array(first)] + padded[np.array(second)])
