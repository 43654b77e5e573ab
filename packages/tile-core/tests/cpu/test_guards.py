"""Accesses outside of a tensor that a proof took for accesses inside: nothing is read or written there."""

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
