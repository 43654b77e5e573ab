"""Atomics: every element type, elements, tiles and vectors, contention between blocks, previous values."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors import KernelError
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)

TYPES = (*kit.INTEGERS, *kit.FLOATS)
UPDATES = {"add": np.add, "max": np.fmax, "min": np.fmin}


def initial(rng, shape, dtype):
    """An output with small numbers in it."""
    return kit.numbers(rng, shape, dtype, 0, 4)


def kinds_program(dtype, source, rows, cols, threads, blocks):
    """Tiles added, and taken into maxima and minima, by several blocks at once."""

    @T.prim_func
    def main(
        A: T.Tensor((blocks, rows, cols), source), S: T.Tensor((rows, cols), dtype), X: T.Tensor((rows, cols), dtype),
        N: T.Tensor((rows, cols), dtype), F: T.Tensor((rows, cols), dtype), E: T.Tensor((3,), dtype),
    ):  # fmt: skip
        with T.Kernel(blocks, threads=threads) as b:
            s = T.alloc_shared((rows, cols), source)
            T.copy(A[b, 0, 0], s)
            T.atomic_add(S, s)
            T.atomic_max(X, s, memory_order="relaxed")
            T.atomic_min(N[0:rows, 0:cols], s)
            T.atomic_add(F, s[0, 0] + 0)
            T.atomic_add(E[0], 1)
            T.atomic_max(E[1], s[0, 0])
            T.atomic_min(E[2], s[0, 0])

    return main


AXES = {
    "rows": kit.SIZES, "cols": kit.SIZES, "threads": kit.THREADS, "blocks": (1, 2, 7), "dtype": TYPES,
    "source": ("same", "int8", "float32", "float16"),
}  # fmt: skip


def check(case):
    dtype, shape, blocks = case["dtype"], (case["rows"], case["cols"]), case["blocks"]
    source = dtype if case["source"] == "same" or not DTYPES[dtype].is_float else case["source"]
    rng = np.random.default_rng(kit.seed(case))
    data = kit.numbers(rng, (blocks, *shape), source, -2, 3)
    outs = [initial(rng, shape, dtype) for _ in range(4)] + [initial(rng, (3,), dtype)]
    before = [kit.values(x.copy(), dtype) for x in outs]
    kit.launch(kinds_program(dtype, source, *shape, case["threads"], blocks), [data], outs)
    x = kit.values(data, source)
    first = x[:, 0, 0]
    expected = [
        before[0] + x.sum(0),
        np.maximum(before[1], x.max(0)),
        np.minimum(before[2], x.min(0)),
        before[3] + first.sum(),
    ]
    expected.append(np.array([before[4][0] + blocks, max(before[4][1], *first), min(before[4][2], *first)]))
    for found, want in zip(outs, expected, strict=True):
        kit.same(
            kit.values(found, dtype), oracles.cast(np.asarray(want) + (0.0 if DTYPES[dtype].is_float else 0), dtype)
        )


@pytest.mark.sweep(26)
@pytest.mark.parametrize("case", kit.covering(2, **AXES), ids=kit.label)
def test_awkward_tiles(case):
    check(case)


@pytest.mark.parametrize("dtype", TYPES)
def test_histogram(dtype):
    """Iterations of T.Parallel and blocks meet in the same elements; each counts once."""

    @T.prim_func
    def main(A: T.Tensor((8, 100), "int32"), H: T.Tensor((10,), dtype), M: T.Tensor((10,), dtype)):
        with T.Kernel(8, threads=128) as b:
            for i in T.Parallel(100):
                T.atomic_add(H[A[b, i]], 1)
                T.atomic_max(M[A[b, i]], i)

    rng = np.random.default_rng(3)
    a = rng.integers(0, 12, (8, 100), dtype=np.int32)  # 10 and 11 lie outside
    h, m = kit.stored(np.zeros(10), dtype), kit.stored(np.zeros(10), dtype)
    kit.launch(main, [a], [h, m])
    kit.same(kit.values(h, dtype), np.array([(a == v).sum() for v in range(10)], kit.values(h, dtype).dtype))
    position = np.broadcast_to(np.arange(100), (8, 100))
    kit.same(kit.values(m, dtype), np.array([position[a == v].max() for v in range(10)], kit.values(m, dtype).dtype))


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float32", "bfloat16", "int64", "float64"])
def test_previous_values(dtype):
    """#2667: each update sees a different previous value; #2594: a value read before stays what it was."""
    out_type = dtype

    @T.prim_func
    def main(C: T.Tensor((4,), dtype), P: T.Tensor((3, 20), out_type), V: T.Tensor((2,), out_type)):
        with T.Kernel(1, threads=32):
            before = C[0]
            for i in range(20):
                P[0, i] = T.atomic_add(C[0], 2, return_prev=True)
                P[1, i] = T.atomic_max(C[1], i, return_prev=True)
                P[2, i] = T.atomic_min(C[2], 20 - i, return_prev=True)
            if C[3] == 0:
                old = C[3]
                T.atomic_add(C[3], 5)
                V[0] = old
            V[1] = before

    c = kit.stored([1, 3, 10, 0], dtype)
    p, v = kit.guarded((3, 20), dtype), kit.guarded((2,), dtype)
    kit.launch(main, [], [c, p, v])
    kit.same(kit.values(c, dtype), np.array([41, 19, 1, 5], kit.values(c, dtype).dtype))
    i = np.arange(20)
    expected = np.stack([1 + 2 * i, np.maximum(3, i - 1), np.minimum(10, 21 - i)])
    kit.same(kit.values(p, dtype), expected.astype(kit.values(p, dtype).dtype))
    kit.same(kit.values(v, dtype), np.array([0, 1], kit.values(v, dtype).dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64", "uint16", "float64"])
def test_adjacent_elements(dtype):
    """#2561, #2382: pairs and quadruples, integers too; the source has another type."""

    @T.prim_func
    def main(A: T.Tensor((3, 16), "float32" if DTYPES[dtype].is_float else dtype), C: T.Tensor((3, 16), dtype)):
        with T.Kernel(2, threads=32):
            for i, j in T.Parallel(3, 4):
                T.atomic_addx4(C[i, j * 4], A[i, j * 4])
            for i, j in T.Parallel(3, 8):
                T.atomic_addx2(C[i, j * 2], A[i, j * 2])

    rng = np.random.default_rng(5)
    a = kit.numbers(rng, (3, 16), "float32" if DTYPES[dtype].is_float else dtype, 0, 4)
    c = initial(rng, (3, 16), dtype)
    before = kit.values(c.copy(), dtype)
    kit.launch(main, [a], [c])
    kit.same(
        kit.values(c, dtype),
        (before + 4 * kit.values(a, "float32" if DTYPES[dtype].is_float else dtype)).astype(before.dtype),
    )


def test_threads_add_their_own_values():
    """#2959: a scalar that differs between threads is added by every thread."""

    @T.prim_func
    def main(C: T.Tensor((3,), "int32"), S: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=96):
            tx = T.get_thread_binding(0)
            T.atomic_add(C[0], 1)
            T.atomic_add(C[1], tx)
            if tx % 2 == 0:
                T.atomic_max(C[2], tx)
            T.atomic_add(S, tx)

    c, s = kit.stored([0, 0, 0], "int32"), kit.stored([0] * 4, "int32")
    kit.launch(main, [], [c, s])
    kit.same(c, np.array([192, 2 * 95 * 48, 94], np.int32))
    kit.same(s, np.full(4, 2 * 95 * 48, np.int32))


def test_load_store_and_nan():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in range(8):
                x = T.atomic_load(A[i], memory_order="acquire")
                T.atomic_store(B[i], x + 1.0, memory_order="release")
            T.atomic_max(B[0], A[6])
            T.atomic_min(B[1], A[6])
            T.atomic_add(B[2], A[6])
            T.atomic_max(B[6], 3.0)

    a = np.array([0, 1, 2, 3, 4, np.inf, np.nan, -0.0], np.float32)
    out = kit.launch(main, [a], [kit.guarded((8,), "float32")])
    kit.same(out, np.array([1, 2, np.nan, 4, 5, np.inf, 3, 1], np.float32))


def test_out_of_range_updates_are_dropped():
    @T.prim_func
    def main(C: T.Tensor((10,), "float32"), P: T.Tensor((4,), "float32"), at: T.int32):
        with T.Kernel(3, threads=32) as b:
            s = T.alloc_shared((4,), "float32")
            T.fill(s, 1.0)
            T.atomic_add(C[b * 4 + at], s)
            P[b] = T.atomic_add(C[at - 3], 1.0, return_prev=True)

    kernel = tile.compile(main, target="cpu")
    for at in (0, 1, -2, 5):
        c, p = kit.stored(np.zeros(10), "float32"), kit.guarded((4,), "float32")
        kernel(c, p, at)
        assert kit.unharmed(c)
        assert kit.unharmed(p)
        expected = oracles.write_region(np.zeros(10, np.float32), (at,), np.ones(12, np.float32))
        if at >= 3:
            expected[at - 3] += 3
        kit.same(c, expected)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda C, F: T.atomic_add(F[0], 1.0), "K211"),
        (lambda C, F: T.atomic_add(C[0], 1.0, memory_order="sometimes"), "K212"),
        (lambda C, F: T.atomic_load(C[0], memory_order="release"), "K212"),
        (lambda C, F: T.atomic_store(C[0], 1.0, memory_order="acquire"), "K212"),
        (lambda C, F: T.atomic_add(C, C, return_prev=True), "K213"),
        (lambda C, F: T.atomic_addx2(C[1], C[0]), "K217"),
        (lambda C, F: T.atomic_add(C[0:4], C[0:5]), "K203"),
        (lambda C, F: T.atomic_load(C[0:4]), "K213"),
    ],
)
def test_refusals(call, code):
    """#2574: memory orders that an op does not have, and what else does not fit."""
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def main(C: T.Tensor((8,), "float32"), F: T.Tensor((8,), "float8_e4m3fn")):
            with T.Kernel(1, threads=32):
                call(C, F)

    assert caught.value.code == code
    assert caught.value.where is not None
