"""A program of one thread whose machine code lost registers when the assembler optimised it."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reference import execute

pytestmark = pytest.mark.device

m, n = T.dynamic("m, n")


@T.prim_func
def maximum_beside_a_sparse_product(
    X1: T.Tensor((m, n), "int32"), X4: T.Tensor((m, n), "uint32"), X6: T.Tensor((m, n), "float64"),
    X13: T.Tensor((m, n), "float16"), S8: T.Tensor((8, 16), "float16"), S8E: T.Tensor((8, 2), "int16"),
    v: T.int32, O14: T.Tensor((m, n), "uint8"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(m, 3), threads=1) as bx:
        t2 = T.alloc_shared((3, 16), "uint8")
        T.clear(t2)
        t3 = T.alloc_shared((16, 3), "uint8")
        t5 = T.alloc_shared((3, 1), "uint32")
        t7 = T.alloc_fragment((33, 3), "float64")
        t9 = T.alloc_shared((8, 16), "float16")
        t10 = T.alloc_shared((8, 2), "int16")
        t11 = T.alloc_shared((32, 17), "float16")
        t12 = T.alloc_fragment((8, 17), "float32")
        T.copy(X1[bx * 3 + -2, 2], t2)
        T.transpose(t2, t3)
        T.copy(X4[bx * 3 + 1, 1], t5)
        T.cummax(t2, t2, dim=0, reverse=False)
        for i, j in T.Parallel(3, 1):
            if bx * 3 + i < m:
                t5[i, j] = t5[i, j]
        if v > 0 and bx < 2:
            T.copy(X6[bx * 3 + -2, v + 2], t7)
        else:
            for i, j in T.Parallel(16, 3):
                if t3[i, j] > 1:
                    t3[i, j] = T.cast(3, "uint8") | t3[i, j]
        T.copy(S8, t9)
        T.copy(S8E, t10)
        T.copy(X13[v + 1, 0], t11)
        T.gemm_sp(t9, t10, t11, t12, clear_accum=True)
        T.copy(t2, O14[bx * 3, 0])


@pytest.mark.parametrize("rows", [3, 7])
def test_bytes_survive_a_product_that_does_not_touch_them(rows):
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(rows)
    arrays = [rng.integers(-3, 4, (rows, 16)).astype(t) for t in ("int32", "uint32", "float64", "float16")]
    arrays += [rng.integers(-3, 4, (8, 16)).astype("float16"), np.full((8, 2), 0x4444, "int16")]
    expected, found = (np.full((rows, 16), 77, "uint8") for _ in range(2))
    execute(maximum_beside_a_sparse_product, [*arrays, 1, expected])
    there = [cupy.asarray(x) for x in (*arrays, found)]
    tile.compile(maximum_beside_a_sparse_product, target="cuda")(*there[:-1], 1, there[-1])
    np.testing.assert_array_equal(there[-1].get(), expected)
