"""Overflow wraps and all shift counts are defined, for data, parameters and variables."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("target", TARGETS)
def test_shifts_by_any_count(target: str, dtype: str) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    counts = [0, 1, bits - 1, bits, bits + 1, 100, 127, *([] if dtype.startswith("u") else [-1, -8, -128])]
    values = [0, 1, 2, 100, np.iinfo(dtype).max, np.iinfo(dtype).min, *([] if dtype.startswith("u") else [-1, -3])]
    pairs = [(x, c) for x in values for c in counts]
    a, n = np.array([x for x, _ in pairs], dtype), np.array([c for _, c in pairs], dtype)
    size = len(a)

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), N: T.Tensor((size,), dtype), Q: T.Tensor((2, size), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(size):
                Q[0, i] = A[i] << N[i]
                Q[1, i] = A[i] >> N[i]

    q = compiled(main, target, out_idx=2)(a, n)
    for x, c, left, right in zip(a.tolist(), n.tolist(), q[0].tolist(), q[1].tolist(), strict=True):
        inside = 0 <= c < bits
        wrapped = np.array([x << c & (2**bits - 1) if inside else 0], f"uint{bits}").view(dtype).tolist()[0]
        assert left == wrapped, (x, c)
        assert right == (x >> c if inside else -1 if x < 0 else 0), (x, c)


@pytest.mark.parametrize("target", TARGETS)
def test_scalar_parameters_and_variables_wrap(target: str) -> None:
    @T.prim_func
    def main(n: T.int32, k: T.int64, A: T.Tensor((8,), "int32"), B: T.Tensor((3,), "int64")):
        with T.Kernel(1, threads=32):
            A[0] = n + 1
            A[1] = T.if_then_else(n + 1 > n, 1, 0)
            A[2] = n * 2
            A[3] = -n
            A[4] = T.abs(-n - 2)
            v = T.alloc_var("int32", init=n)
            v = v + 5
            A[5] = v
            A[6] = T.if_then_else(n * 2 // 2 == n, 1, 0)
            if n - -1 > n:
                A[7] = 1
            else:
                A[7] = 0
            B[0] = k + 1
            B[1] = T.if_then_else(k + 1 > k, 1, 0)
            B[2] = k * 3

    a, b = np.full(8, 9, np.int32), np.full(3, 9, np.int64)
    top, wide = 2**31 - 1, 2**63 - 1
    compiled(main, target)(top, wide, a, b)
    assert a.tolist() == [-(2**31), 0, -2, -top, top, -(2**31) + 4, 0, 0]
    assert b.tolist() == [-(2**63), 0, wide - 2]


@pytest.mark.parametrize("count", [-1, -40])
def test_negative_constant_counts_are_refused(count: int) -> None:
    with pytest.raises(tile.TileError, match="K103"):

        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                A[0] = A[1] << count
