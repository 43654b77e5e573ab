"""Test T.Pipelined and serial loops: stages, trip counts 0 to 2, jumps, conditions."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from . import kit


@pytest.mark.sweep(1)
@pytest.mark.parametrize("stages", kit.STAGES)
@pytest.mark.parametrize("threads", [1, 31, 128])
def test_trip_counts(stages, threads):
    """Runtime and static trip counts; the last iteration's data is read afterwards (#3039)."""

    @T.prim_func
    def main(
        A: T.Tensor((5, 24), "float32"),
        n: T.int32,
        B: T.Tensor((24,), "float32"),
        C: T.Tensor((24,), "float32"),
        D: T.Tensor((24,), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((24,), "float32")
            total = T.alloc_fragment((24,), "float32")
            T.clear(total)
            T.fill(s, -1.0)
            for k in T.Pipelined(n, num_stages=stages):
                T.copy(A[k, 0], s)
                for i in T.Parallel(24):
                    total[i] += s[i]
            T.copy(s, B)
            T.copy(total, C)
            for k in T.Pipelined(1, n, num_stages=stages):
                T.copy(A[k, 0], s)
            T.copy(s, D)

    kernel = tile.compile(main, target="cpu")
    a = kit.numbers(np.random.default_rng(1), (5, 24), "float32")
    for n in (0, 1, 2, 3, 5, 7, -1):
        outs = [kit.guarded((24,), "float32") for _ in "bcd"]
        kernel(a, n, *outs)
        rows = np.concatenate([a, np.zeros((9, 24), np.float32)])
        last = rows[n - 1] if n > 0 else np.full(24, -1, np.float32)
        kit.same(outs[0], last)
        kit.same(outs[1], rows[: max(0, n)].sum(0))
        kit.same(outs[2], rows[n - 1] if n > 1 else last)


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


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("stages", [(2, 4), (3, 1), (0, 3)])
def test_sibling_loops_share_buffers(stages):
    """#2309, #2547: two loops with different stages use the same tiles and accumulate into one."""

    @T.prim_func
    def main(A: T.Tensor((24, 64), "float16"), B: T.Tensor((64, 24), "float16"), C: T.Tensor((24, 24), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((24, 16), "float16")
            b = T.alloc_shared((16, 24), "float16")
            c = T.alloc_fragment((24, 24), "float32")
            T.copy(A[:, 0:16], a)
            T.copy(B[0:16, :], b)
            T.gemm(a, b, c, clear_accum=True)
            for k in T.Pipelined(1, 3, num_stages=stages[0]):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
            for k in T.Pipelined(3, 4, num_stages=stages[1]):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    rng = np.random.default_rng(3)
    a, b = kit.numbers(rng, (24, 64), "float16"), kit.numbers(rng, (64, 24), "float16")
    kit.same(kit.launch(main, [a, b], [kit.guarded((24, 24), "float32")]), a.astype("f4") @ b.astype("f4"))


def test_conditions_and_variable_indices_in_a_pipelined_loop():
    """#2876, #1792: a body under a condition from memory, a mutable scalar as index."""

    @T.prim_func
    def main(
        A: T.Tensor((6, 16), "float32"),
        M: T.Tensor((6,), "bool"),
        Rows: T.Tensor((6,), "int32"),
        B: T.Tensor((16,), "float32"),
    ):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16,), "float32")
            f = T.alloc_fragment((16,), "float32")
            at = T.alloc_var("int32", 0)
            T.clear(f)
            for k in T.Pipelined(6, num_stages=2):
                at = Rows[k]
                if M[k]:
                    T.copy(A[at, 0], s)
                    for i in T.Parallel(16):
                        f[i] += s[i]
            T.copy(f, B)

    rng = np.random.default_rng(4)
    a, m, index = (
        kit.numbers(rng, (6, 16), "float32"),
        kit.numbers(rng, (6,), "bool"),
        rng.permutation(6).astype(np.int32),
    )
    kit.same(kit.launch(main, [a, m, index], [kit.guarded((16,), "float32")]), a[index[m]].sum(0) + np.float32(0))


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
