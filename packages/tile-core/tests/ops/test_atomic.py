"""Atomics beyond testing/tables/atomics.py: previous values of all types, adjacent elements, NaN, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors import KernelError

from . import kit

pytestmark = pytest.mark.sweep(5)


def initial(rng, shape, dtype):
    """An output with small numbers in it."""
    return kit.numbers(rng, shape, dtype, 0, 4)


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
