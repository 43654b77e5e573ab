"""T.Parallel beyond testing/tables/loops.py: arithmetic of every type, indices by name, vector code, races."""

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
