"""T.Pipelined and serial loops beyond testing/tables/loops.py: constant trip counts and jumps."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from . import kit


@pytest.mark.parametrize("trips", [0, 1, 2])
def test_static_trip_counts(trips):
    @T.prim_func
    def main(A: T.Tensor((4, 16), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16,), "float32")
            f = T.alloc_fragment((16,), "float32")
            T.clear(f)
            for k in T.Pipelined(trips, num_stages=3):
                T.copy(A[k, :], s)
                for i in T.Parallel(16):
                    f[i] += s[i]
            for _ in T.unroll(0, 0, 2):
                T.fill(f, 100.0)
            for _ in T.serial(trips):
                for i in T.Parallel(16):
                    f[i] += A[3, i]
            T.copy(f, B)

    a = kit.numbers(np.random.default_rng(2), (4, 16), "float32")
    kit.same(kit.launch(main, [a], [kit.guarded((16,), "float32")]), a[:trips].sum(0) + trips * a[3])


def test_jumps():
    """break and continue in serial, unrolled and while loops, nested, around tile ops."""

    @T.prim_func
    def main(
        A: T.Tensor((9, 16), "float32"),
        stop: T.int32,
        skip: T.int32,
        B: T.Tensor((4, 16), "float32"),
        N: T.Tensor((3,), "int32"),
    ):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((4, 16), "float32")
            T.clear(f)
            count = T.alloc_var("int32", 0)
            inner = T.alloc_var("int32", 0)
            for k in T.serial(9):
                if k == skip:
                    continue
                if k >= stop:
                    break
                for i in T.Parallel(16):
                    f[0, i] += A[k, i]
                count += 1
                for j in T.serial(5):
                    if j > k:
                        break
                    inner += 1
                T.copy(A[k, :], f[3, :])
            for k in T.unroll(6):
                if k == stop:
                    break
                for i in T.Parallel(16):
                    f[1, i] += A[k, i]
            step = T.alloc_var("int32", 0)
            while step < 9:
                step += 1
                if step == skip:
                    continue
                if step > stop:
                    break
                for i in T.Parallel(16):
                    f[2, i] += A[step - 1, i]
            N[0] = count
            N[1] = inner
            N[2] = step
            T.copy(f, B)

    kernel = tile.compile(main, target="cpu")
    a = kit.numbers(np.random.default_rng(5), (9, 16), "float32")
    for stop in (0, 1, 4, 20):
        for skip in (-1, 0, 3, 8):
            b, n = kit.guarded((4, 16), "float32"), kit.guarded((3,), "int32")
            kernel(a, stop, skip, b, n)
            kit.same(b + 0, np.stack(jumps(a, stop, skip)[0]) + np.float32(0))
            assert n.tolist() == jumps(a, stop, skip)[1], (stop, skip)


def jumps(a, stop, skip):
    """The same loops in Python."""
    f = np.zeros((4, 16), np.float32)
    count = inner = step = 0
    for k in range(9):
        if k == skip:
            continue
        if k >= stop:
            break
        f[0] += a[k]
        count += 1
        inner += min(5, k + 1)
        f[3] = a[k]
    for k in range(6):
        if k == stop:
            break
        f[1] += a[k]
    while step < 9:
        step += 1
        if step == skip:
            continue
        if step > stop:
            break
        f[2] += a[step - 1]
    return f, [count, inner, step]


def test_while_on_elements():
    """#2202: a loop whose condition reads a fragment."""

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1, is_cpu=True):
            f = T.alloc_fragment((4,), "int32")
            T.copy(A, f)
            while f[1] > 0:
                f[1] -= 3
                f[2] += 1
            T.copy(f, B)

    for start in (0, 1, 7, -5):
        a = np.array([1, start, 0, 9], np.int32)
        trips = max(0, -(-start // 3))
        kit.same(
            kit.launch(main, [a], [kit.guarded((4,), "int32")]), np.array([1, start - 3 * trips, trips, 9], np.int32)
        )
