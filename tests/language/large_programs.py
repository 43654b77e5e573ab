"""Programs on the last elements of tensors with more than 2**31 elements, for ``test_large_tensors``.

Each function returns a program, its arguments, and a function that returns the expected last rows of its result. The
extents are constants or symbols. Arrays are zeros that are touched in few pages, so that they take no memory.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tile_core.language as T

ROWS, COLUMNS = 70000, 65536
EXPERTS, N, K = 256, 4096, 7168
E = 64
"""Rows and columns at the end of a tensor that programs touch."""

Case = tuple[Any, tuple[Any, ...], Callable[[], list[tuple[Any, Any]]]]


def extents(symbolic: bool, *constants: int) -> tuple[Any, ...]:
    """Return extents: the constants, or symbols for them."""
    return tuple(T.dynamic(f"n{i}") if symbolic else n for i, n in enumerate(constants))


def untouched(shape: tuple[int, ...], dtype: str) -> Any:
    """Return zeros that take memory where they are touched only."""
    bytes_ = np.dtype(dtype).itemsize * math.prod(shape)
    lazily = (
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
    )
    return np.frombuffer(mmap.mmap(-1, bytes_, flags=lazily), dtype).reshape(shape)


def large(rng: np.random.Generator, *shape: int, dtype: str = "int8") -> Any:
    """Return an array with random values in its last rows and columns."""
    array = untouched(shape, dtype)
    corner = last(array)
    corner[...] = rng.integers(-9, 10, corner.shape)
    return array


def last(array: Any) -> Any:
    """Return the last rows and columns of the last matrix of an array."""
    return array[(-1,) * (array.ndim - 2)][-E:, -E:]


def copies(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "int8"), B: T.Tensor((m, n), "int8")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((16, E), "int8")
            T.copy(A[m - E + bx * 16, n - E], S)
            T.copy(S, B[m - E + bx * 16, n - E])

    a, b = large(rng, ROWS, COLUMNS), untouched((ROWS, COLUMNS), "int8")
    return main, (a, b), lambda: [(last(b), last(a))]


def transposed(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "float16"), B: T.Tensor((n, m), "float16")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((E, E), "float16")
            S = T.alloc_shared((E, E), "float16")
            T.copy(A[m - E, n - E], F)
            T.transpose(F, S)
            T.copy(S, B[n - E, m - E])
            for i, j in T.Parallel(E, 8):
                B[n - 2 * E + j, m - E + i] = A[m - E + i, n - E + j] * 2

    a, b = large(rng, ROWS, COLUMNS, dtype="float16"), untouched((COLUMNS, ROWS), "float16")
    return main, (a, b), lambda: [(last(b), last(a).T), (b[-2 * E : -2 * E + 8, -E:], last(a)[:, :8].T * 2)]


def past_the_end(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "int16"), B: T.Tensor((m, n), "int16"), C: T.Tensor((E, E), "int16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((E, E), "int16")
            T.copy(A[m - 40, n - 24], S)
            T.copy(S, C)
            T.copy(S, B[m - 40, n - 24])

    a, b = large(rng, ROWS, COLUMNS, dtype="int16"), untouched((ROWS, COLUMNS), "int16")
    c, expected = np.ones((E, E), "int16"), untouched((E, E), "int16")
    expected[:40, :24] = last(a)[-40:, -24:]
    return main, (a, b, c), lambda: [(c, expected), (b[-40:, -24:], a[-40:, -24:])]


def rows(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "int8"), R: T.Tensor((16,), "int32"), B: T.Tensor((m, n), "int8")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, E), "int8")
            T.gather(A[0, n - E], R, S)
            T.scatter(S, B[0, n - E], R)

    a, b = large(rng, ROWS, COLUMNS), untouched((ROWS, COLUMNS), "int8")
    picked = (ROWS - 1 - rng.permutation(E)[:16]).astype("int32")
    return main, (a, picked, b), lambda: [(b[picked, -E:], a[picked, -E:])]


def atomics(rng: np.random.Generator, symbolic: bool, dtype: str = "int32") -> Case:
    (m,), n = extents(symbolic, ROWS), COLUMNS

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype)):
        with T.Kernel(2, threads=64):
            S = T.alloc_shared((8, E), dtype)
            T.fill(S, 3)
            for i, j in T.Parallel(8, 32):
                T.atomic_add(A[m - E + i, n - E + j], T.cast(i + 1, dtype))
            T.atomic_add(A[m - 8, n - E], S)

    a = large(rng, ROWS, COLUMNS, dtype=dtype)
    expected = last(a).copy()
    expected[:8, :32] += 2 * np.arange(1, 9, dtype=dtype)[:, None]
    expected[-8:] += np.asarray(6, dtype)
    return main, (a,), lambda: [(last(a), expected)]


def half_atomics(rng: np.random.Generator, symbolic: bool) -> Case:
    return atomics(rng, symbolic, "float16")


def products(rng: np.random.Generator, symbolic: bool) -> Case:
    e, n, k = extents(symbolic, EXPERTS, N, K)
    depth = 192

    @T.prim_func
    def main(X: T.Tensor((E, depth), "float16"), W: T.Tensor((e, n, k), "float16"), C: T.Tensor((e, n, k), "float16")):
        with T.Kernel(2, threads=128) as bx:
            A = T.alloc_shared((E, 64), "float16")
            B = T.alloc_shared((64, 64), "float16")
            D = T.alloc_fragment((E, 64), "float32")
            T.clear(D)
            for step in T.Pipelined(depth // 64, num_stages=2):
                T.copy(X[0, step * 64], A)
                T.copy(W[e - 1, n - 128 + bx * 64, k - depth + step * 64], B)
                T.gemm(A, B, D, transpose_B=True)
            T.copy(D, C[e - 1, n - 64, k - 128 + bx * 64])

    x = rng.integers(-3, 4, (E, depth)).astype("float16")
    w, c = untouched((EXPERTS, N, K), "float16"), untouched((EXPERTS, N, K), "float16")
    w[-1, -128:, -depth:] = rng.integers(-3, 4, (128, depth))
    expected = x.astype("float32") @ w[-1, -128:, -depth:].astype("float32").T
    return main, (x, w, c), lambda: [(c[-1, -E:, -128:], expected.astype("float16"))]


def rows_reduced(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "int32"), B: T.Tensor((m, n), "int32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((E, E), "int32")
            total = T.alloc_fragment((E,), "int32")
            T.copy(A[m - E, n - E], F)
            T.reduce_sum(F, total, dim=1)
            T.copy(total, B[m - 1, n - E : n])
            T.cumsum(F, dim=1)
            T.copy(F, B[m - 2 * E, n - E])

    a, b = large(rng, ROWS, COLUMNS, dtype="int32"), untouched((ROWS, COLUMNS), "int32")
    return main, (a, b), lambda: [(b[-1, -E:], last(a).sum(1)), (b[-2 * E : -E, -E:], last(a).cumsum(1))]


def views(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS // 4)

    @T.prim_func
    def main(A: T.Tensor((m, n * 4), "int8"), B: T.Tensor((m, n * 4), "int8")):
        with T.Kernel(1, threads=32):
            words = T.view(A, (m, n), "int32")
            to = T.view(B, (m, n), "int32")
            for i, j in T.Parallel(E, 16):
                to[m - E + i, n - 16 + j] = words[m - E + i, n - 16 + j]

    a, b = large(rng, ROWS, COLUMNS), untouched((ROWS, COLUMNS), "int8")
    return main, (a, b), lambda: [(last(b), last(a))]


def strided(rng: np.random.Generator, symbolic: bool) -> Case:
    m, step = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.StridedTensor((m, E), (step, 1), "int8"), B: T.StridedTensor((E, m), (1, step), "int8")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(E, E):
                B[i, m - E + j] = A[m - E + j, i]

    a, b = large(rng, ROWS, COLUMNS), untouched((ROWS, COLUMNS), "int8")
    arrays = a[:, -E:], b[:, -E:].T
    return main, arrays, lambda: [(last(b), last(a))]


def nibbles(rng: np.random.Generator, symbolic: bool) -> Case:
    m, n = extents(symbolic, ROWS, COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((m, n), "uint4"), B: T.Tensor((m, n), "uint4"), C: T.Tensor((E, E), "uint8")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((E, E), "uint4")
            T.copy(A[m - E, n - E], S)
            T.copy(S, B[m - E, n - E])
            for i, j in T.Parallel(E, E):
                C[i, j] = T.cast(A[m - E + i, n - E + j], "uint8")

    a, b = untouched((ROWS, COLUMNS // 2), "uint8"), untouched((ROWS, COLUMNS // 2), "uint8")
    a[-E:, -E // 2 :] = rng.integers(0, 256, (E, E // 2))
    c, packed = untouched((E, E), "uint8"), a[-E:, -E // 2 :]
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(E, E)
    return main, (a, b, c), lambda: [(b[-E:, -E // 2 :], packed), (c, codes)]


def one_by_one(rng: np.random.Generator, symbolic: bool) -> Case:
    e, n, k = extents(symbolic, EXPERTS, N, K)

    @T.prim_func
    def main(A: T.Tensor((e, n, k), "int16"), B: T.Tensor((e, n, k), "int16")):
        with T.Kernel(2, threads=32) as bx:
            tid = T.get_thread_binding()
            total = T.alloc_var("int16")
            total = 0
            for i in T.serial(8):
                total += A[e - 1, n - 16 + bx * 8 + i, k - 32 + tid]
                B[e - 1, n - 16 + bx * 8 + i, k - 32 + tid] = total

    a, b = large(rng, EXPERTS, N, K, dtype="int16"), untouched((EXPERTS, N, K), "int16")
    expected = last(a)[-16:, -32:].reshape(2, 8, 32).cumsum(1).reshape(16, 32)
    return main, (a, b), lambda: [(last(b)[-16:, -32:], expected)]


PROGRAMS = {
    f.__name__: f
    for f in (
        copies, transposed, past_the_end, rows, atomics, half_atomics, products, rows_reduced, views, strided, nibbles,
        one_by_one,
    )
}  # fmt: skip
