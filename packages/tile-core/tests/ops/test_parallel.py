"""T.Parallel: element-wise work of every type and width, guards, private buffers, vector code, races."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import ParallelRace
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)

COMPUTED = (*kit.INTEGERS, *kit.FLOATS)


def elementwise(dtype, rows, cols, threads):
    @T.prim_func
    def main(
        A: T.Tensor((rows, cols), dtype),
        B: T.Tensor((rows, cols), dtype),
        S: T.Tensor((rows, cols), dtype),
        M: T.Tensor((rows, cols), dtype),
        X: T.Tensor((rows, cols), dtype),
        L: T.Tensor((rows, cols), "bool"),
        Z: T.Tensor((rows, cols), dtype),
        N: T.Tensor((rows, cols), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((rows, cols), dtype)
            b = T.alloc_shared((rows, cols), dtype)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(rows, cols):
                S[i, j] = a[i, j] + b[i, j]
                M[i, j] = a[i, j] * b[i, j]
                X[i, j] = T.max(a[i, j], b[i, j])
                L[i, j] = a[i, j] < b[i, j]
                Z[i, j] = T.if_then_else(a[i, j] != b[i, j], b[i, j], a[i, j] + a[i, j])
                N[i, j] = T.if_then_else((a[i, j] <= b[i, j]) == (b[i, j] == a[i, j]), i, -j)

    return main


def check(case):
    dtype, shape = case["dtype"], (case["rows"], case["cols"])
    rng = np.random.default_rng(kit.seed(case))
    a, b = (kit.anything(rng, shape, dtype) for _ in "ab")
    a[..., ::3] = b[..., ::3]
    outs = [kit.guarded(shape, d) for d in (dtype, dtype, dtype, "bool", dtype, "int32")]
    kit.launch(elementwise(dtype, *shape, case["threads"]), [a, b], outs)
    with np.errstate(all="ignore"):
        wide = "float32" if dtype in ("float16", "bfloat16") else dtype
        x, y = (np.asarray(kit.values(v, dtype)).astype(wide) for v in (a, b))

        def rounded(v):
            return np.asarray(oracles.cast(v, dtype)).astype(wide) if wide != dtype else v.astype(dtype)

        i, j = np.broadcast_to(np.arange(shape[0])[:, None], shape), np.broadcast_to(np.arange(shape[1]), shape)
        expected = (
            rounded(x + y),
            rounded(x * y),
            np.fmax(x, y),
            x < y,
            np.where(x != y, y, rounded(x + x)),
            np.where((x <= y) == (x == y), i, -j),
        )
        for n, (found, want) in enumerate(zip(outs, expected, strict=True)):
            found = np.asarray(found)
            if found.dtype.kind not in "biu":
                found = found.astype(np.float64)
                want = np.asarray(want, np.float64)
                if n == 2:
                    found, want = found + 0.0, want + 0.0
            kit.same(found, want)


AXES = {"rows": kit.SIZES, "cols": kit.SIZES, "threads": kit.THREADS, "dtype": COMPUTED}


@pytest.mark.sweep(13)
@pytest.mark.parametrize("case", kit.covering(2, **AXES), ids=kit.label)
def test_arithmetic(case):
    check(case)


def test_stencils_strides_and_indices_from_memory():
    """Loads at any offset, stride and order; reads outside are zero, writes outside dropped."""
    n = 63

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"),
        Rows: T.Tensor((n,), "int32"),
        B: T.Tensor((6, n), "float32"),
        G: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(n):
                B[0, i] = A[i - 1] + A[i + 1]
                B[1, i] = A[2 * i]
                B[2, n - 1 - i] = A[i]
                B[3, i] = A[Rows[i]]
                B[4, i] = A[i // 2] * A[i % 7]
            for i in T.Parallel(n + 10):
                G[i - 5] = T.float32(i)
            for i in T.Parallel(n):
                B[5, Rows[i]] = 7.0

    rng = np.random.default_rng(3)
    a = kit.numbers(rng, (n,), "float32")
    index = rng.integers(-70, 130, n, dtype=np.int32)
    out, g = kit.launch(main, [a, index], [kit.guarded((6, n), "float32"), kit.guarded((n,), "float32")])
    padded = oracles.copy_region(a, (-200,), (600,))
    i = np.arange(n)
    poison = kit.guarded((n,), "float32")
    poison[index[(index >= 0) & (index < n)]] = 7
    expected = [
        padded[199 + i] + padded[201 + i],
        padded[200 + 2 * i],
        a[::-1],
        padded[200 + index],
        a[i // 2] * a[i % 7],
        poison,
    ]
    kit.same(out, np.stack(expected))
    kit.same(g, (i + 5).astype(np.float32))


def test_indices_through_names():
    """An index that was given a name first is no less different between iterations."""
    n = 40

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"),
        Rows: T.Tensor((n,), "int32"),
        B: T.Tensor((2 * n,), "float32"),
        C: T.Tensor((4, n), "float32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                at = Rows[i]
                B[at + i] = A[i]
                row = at % 4
                C[row, i] = A[i]
                I_next = at + 1
                C[I_next % 4, i] = A[i] * 2.0

    rng = np.random.default_rng(11)
    a = kit.numbers(rng, (n,), "float32")
    index = np.sort(rng.integers(0, n, n)).astype(np.int32)  # index + i has no value twice
    b, c = kit.launch(main, [a, index], [kit.guarded((2 * n,), "float32"), kit.guarded((4, n), "float32")])
    expected, rows, i = kit.guarded((2 * n,), "float32"), kit.guarded((4, n), "float32"), np.arange(n)
    expected[index + i] = a
    rows[index % 4, i], rows[(index + 1) % 4, i] = a, a * 2
    kit.same(b, expected)
    kit.same(c, rows)


def test_arithmetic_of_floats_is_not_that_of_real_numbers():
    """Compensated totals, x - x, 0 * x, negated comparisons and NaN branches."""

    @T.prim_func
    def main(A: T.Tensor((33,), "float32"), B: T.Tensor((7, 33), "float32"), N: T.Tensor((3, 33), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(33):
                x = A[i]
                B[0, i] = (x + 1.0e8) - 1.0e8
                B[1, i] = x - x
                B[2, i] = 0.0 * x
                B[3, i] = x + 0.0
                B[4, i] = (x * 3.0) / 3.0
                B[5, i] = x / x
                B[6, i] = ((x + 0.1) - x) - 0.1
                N[0, i] = T.if_then_else(~(x < 1.0), 1, 0)
                N[1, i] = T.if_then_else(x != x, 1, 0)
                if x < 1.0:
                    N[2, i] = 0
                elif x >= 1.0:
                    N[2, i] = 1
                else:
                    N[2, i] = 2

    x = np.random.default_rng(12).normal(size=33).astype(np.float32)
    x[:7] = np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-45
    b, n = kit.launch(main, [x], [kit.guarded((7, 33), "float32"), kit.guarded((3, 33), "int32")])
    f = np.float32
    with np.errstate(all="ignore"):
        rows = [(x + f(1e8)) - f(1e8), x - x, f(0) * x, x + f(0), (x * f(3)) / f(3), x / x, ((x + f(0.1)) - x) - f(0.1)]
    kit.same(b, np.stack(rows))
    kit.same(n, np.stack([~(x < 1), x != x, np.where(x < 1, 0, np.where(x >= 1, 1, 2))]).astype(np.int32))


def test_functions_under_conditions():
    """Elementary functions inside of the sides of a choice, in types that are computed in float32."""
    for dtype in ("bfloat16", "float16", "float32", "float8_e4m3fn"):

        @T.prim_func
        def main(A: T.Tensor((33,), dtype), B: T.Tensor((33,), dtype), C: T.Tensor((33,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(33):
                    x = T.float32(A[i])
                    B[i] = T.if_then_else(x > 0.0, T.exp(x) * T.pow(x, 0.5), 0.0)
                    C[i] = T.if_then_else(
                        T.tanh(x) > 0.5, T.exp2(T.if_then_else(x > 1.0, T.sin(x), T.log(x))), T.cos(x)
                    )

        a = kit.stored(np.arange(33) / 8 - 1, dtype)
        b, c = kit.launch(main, [a], [kit.guarded((33,), dtype), kit.guarded((33,), "float32")])
        x = kit.values(a, dtype)
        with np.errstate(all="ignore"):
            first = oracles.cast(np.where(x > 0, np.exp(x) * x**0.5, 0), dtype)
            second = np.where(np.tanh(x) > 0.5, np.exp2(np.where(x > 1, np.sin(x), np.log(x))), np.cos(x))
        np.testing.assert_allclose(kit.values(b, dtype), first, rtol=0.13 if dtype == "float8_e4m3fn" else 0.01)
        np.testing.assert_allclose(c, second, rtol=1e-5, atol=1e-6)


def test_a_wider_loop_than_the_tile_before():
    """#2957: a loop over 100 elements, then one over all 256."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((256,), "float32")
            T.copy(A, f)
            for i in T.Parallel(100):
                f[i] = f[i] + 1.0
            for i in T.Parallel(256):
                f[i] = f[i] * 2.0
            for i in T.Parallel(256):
                B[i] = f[i]

    a = kit.numbers(np.random.default_rng(4), (256,), "float32")
    expected = np.where(np.arange(256) < 100, a + 1, a) * np.float32(2)
    kit.same(kit.launch(main, [a], [kit.guarded((256,), "float32")]), expected)


def test_private_arrays_and_inner_loops():
    """Every iteration has its own local array and variable; serial loops inside, also with trip counts from memory."""

    @T.prim_func
    def main(
        A: T.Tensor((17, 9), "float32"),
        N: T.Tensor((17,), "int32"),
        B: T.Tensor((17,), "float32"),
        C: T.Tensor((17, 9), "float32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(17):
                own = T.alloc_local((9,), "float32")
                total = T.alloc_var("float32", 0.0)
                for j in range(9):
                    own[j] = A[i, 8 - j]
                for j in T.serial(N[i]):
                    total = total + own[j]
                B[i] = total
                for j in T.unroll(9):
                    C[i, j] = own[j]

    rng = np.random.default_rng(5)
    a, n = kit.numbers(rng, (17, 9), "float32"), rng.integers(-2, 12, 17, dtype=np.int32)
    b, c = kit.launch(main, [a, n], [kit.guarded((17,), "float32"), kit.guarded((17, 9), "float32")])
    kit.same(c, a[:, ::-1])
    kit.same(b, np.array([row[::-1][: max(0, k)].sum() for row, k in zip(a, n, strict=True)], np.float32))


def test_branches():
    """#2616: untouched lanes keep their values; conditions on data, on the index, nested, with else."""
    n = 129

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float16"), C: T.Tensor((n,), "float16"), v: T.int32):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(n):
                if A[i] > 0.0:
                    if i % 4 == 0:
                        B[i] = A[i]
                    elif v > 3:
                        B[i] = -A[i]
                else:
                    C[i] = A[i] * 2.0
            for i in T.Parallel(n):
                if v > 3:
                    C[i] = C[i] + 1.0

    a = kit.numbers(np.random.default_rng(6), (n,), "float32", -9, 9)
    kernel = tile.compile(main, target="cpu")
    i = np.arange(n)
    for v in (3, 4):
        b, c = kit.stored(np.full(n, 100), "float16"), kit.stored(np.full(n, 50), "float16")
        kernel(a, b, c, v)
        assert kit.unharmed(b)
        assert kit.unharmed(c)
        kit.same(b, np.where(a > 0, np.where(i % 4 == 0, a, -a if v > 3 else 100), 100).astype(np.float16))
        kit.same(c, (np.where(a > 0, 50, 2 * a) + (v > 3)).astype(np.float16))


def test_runtime_extents():
    """Trip counts of 0, 1, 2 and more; negative ones run nothing."""

    @T.prim_func
    def main(n: T.int32, m: T.int32, B: T.Tensor((20, 30), "int32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(n, m):
                B[i, j] = i * 100 + j

    kernel = tile.compile(main, target="cpu")
    for n, m in ((0, 5), (1, 1), (2, 0), (2, 2), (20, 30), (25, 40), (-3, 4), (7, 29)):
        out = kit.guarded((20, 30), "int32")
        kernel(n, m, out)
        assert kit.unharmed(out)
        expected = kit.guarded((20, 30), "int32")
        if n > 0 and m > 0:
            full = (np.arange(20)[:, None] * 100 + np.arange(30))[:n, :m]
            expected[: max(0, n), : max(0, m)] = full
        kit.same(out, expected)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 17])
def test_vectorized_loops(width):
    """#2682, #3021: a selection and a negation in lanes; a width that no vector has."""

    @T.prim_func
    def main(
        A: T.Tensor((width,), "float32"),
        B: T.Tensor((width,), "float32"),
        C: T.Tensor((width,), "bool"),
        D: T.Tensor((width,), "bool"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.vectorized(width):
                B[i] = T.Select(A[i] > 0.0, A[i], A[i] + 1.0)
            for i in T.vectorized(width):
                D[i] = ~C[i]

    a = kit.numbers(np.random.default_rng(7), (width,), "float32")
    c = kit.numbers(np.random.default_rng(8), (width,), "bool")
    b, d = kit.guarded((width,), "float32"), kit.guarded((width,), "bool")
    tile.compile(main, target="cpu")(a, b, c, d)
    kit.same(b, np.where(a > 0, a, a + 1))
    kit.same(d, ~c)


RACES = {
    "every iteration the same element": (lambda A, s, i, j: s.__setitem__((0, 0), A[i, j]), True),
    "an index that leaves out a variable": (lambda A, s, i, j: s.__setitem__((i, 0), A[i, j]), True),
    "a sum without a reducer": (lambda A, s, i, j: s.__setitem__((i, 0), s[i, 0] + A[i, j]), True),
    "the neighbour's element": (lambda A, s, i, j: s.__setitem__((i, j), s[i, j - 1] + 1.0), True),
    "the same constant": (lambda A, s, i, j: s.__setitem__((0, 0), 1.0), False),
    "an element of its own": (lambda A, s, i, j: s.__setitem__((j % 8, i), A[i, j]), None),
    "its own element": (lambda A, s, i, j: s.__setitem__((i, j), s[i, j] + A[i, j]), False),
}


@pytest.mark.parametrize("name", RACES)
def test_races(name):
    body, refused = RACES[name]

    def build():
        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8, 8), "float32")
                T.clear(s)
                for i, j in T.Parallel(8, 8):
                    body(A, s, i, j)
                T.copy(s, A)

        return tile.compile(main, target="cpu")

    if not refused:
        build()
        return
    with pytest.raises(ParallelRace) as caught:
        build()
    assert caught.value.code == "K214"
    assert "RACES" not in str(caught.value)
    assert caught.value.where is not None


def test_a_race_names_line_loop_and_remedy():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[0] = B[0] + A[i]

    with pytest.raises(ParallelRace) as caught:
        tile.compile(main, target="cpu")
    text = str(caught.value)
    assert "iterations i=0 and i=1 of T.Parallel both write B[0]" in text
    assert "B[0] = B[0] + A[i]" in text
    assert "T.atomic_add" in text


def test_data_types_are_covered():
    assert {d for d in DTYPES if not DTYPES[d].is_narrow and not DTYPES[d].is_packed} == {*COMPUTED, "bool", "tfloat32"}
