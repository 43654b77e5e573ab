"""The kernel of each support row: the op, with operands in the row's scopes."""

# mypy: disable-error-code="untyped-decorator, valid-type"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tile_core.language as T
from pages.support import LONG, SIZE, THREADS, Row
from tile_core.dtypes import DTYPES
from tile_core.ops.gemm_sp import e_factor


def _placed(tensor: Any, scope: str, shape: tuple[int, ...], dtype: str) -> Any:
    """Return a tensor, or a tile with its elements."""
    if scope == "global":
        return tensor
    tile = _tile(scope, shape, dtype)
    T.copy(tensor, tile)
    return tile


def _tile(scope: str, shape: tuple[int, ...], dtype: str) -> Any:
    return T.alloc_shared(shape, dtype) if scope == "shared" else T.alloc_fragment(shape, dtype)


def _gemm(row: Row) -> Any:
    a, b, c = (row.types[x] for x in "ABC")

    @T.prim_func
    def kernel(A: T.Tensor((SIZE, SIZE), a), B: T.Tensor((SIZE, SIZE), b), C: T.Tensor((SIZE, SIZE), c)) -> None:
        with T.Kernel(1, threads=THREADS):
            left = _placed(A, row.scopes["A"], (SIZE, SIZE), a)
            right = _placed(B, row.scopes["B"], (SIZE, SIZE), b)
            total = _placed(C, row.scopes["C"], (SIZE, SIZE), c)
            T.gemm(left, right, total)
            if row.scopes["C"] != "global":
                T.copy(total, C)

    return kernel


def _gemm_sp(row: Row) -> Any:
    a, b, c, e = (row.types[x] for x in "ABCE")
    kept, words = (SIZE, SIZE // 2), (SIZE, SIZE // e_factor(DTYPES[a], DTYPES[e]))

    @T.prim_func
    def kernel(
        A: T.Tensor(kept, a),
        E: T.Tensor(words, e),
        B: T.Tensor((SIZE, SIZE), b),
        C: T.Tensor((SIZE, SIZE), c),
    ) -> None:
        with T.Kernel(1, threads=THREADS):
            left = _placed(A, row.scopes["A"], kept, a)
            metadata = _placed(E, row.scopes["E"], words, e)
            right = _placed(B, row.scopes["B"], (SIZE, SIZE), b)
            total = _placed(C, row.scopes["C"], (SIZE, SIZE), c)
            T.gemm_sp(left, metadata, right, total)
            T.copy(total, C)

    return kernel


def _fp8(row: Row) -> Any:
    a, b, c = (row.types[x] for x in "ABC")

    @T.prim_func
    def kernel(
        A: T.Tensor((SIZE, SIZE), a), B: T.Tensor((SIZE, SIZE), b), C: T.Tensor((SIZE, SIZE), c),
        scale: T.Tensor((SIZE,), "float32"),
    ) -> None:  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            left, right = _placed(A, "shared", (SIZE, SIZE), a), _placed(B, "shared", (SIZE, SIZE), b)
            T.fp8_scaled_matmul(left, scale, right, scale, C)

    return kernel


def _block_scaled(row: Row) -> Any:
    """Return a product with a power of two for each row of 32 elements."""
    a, b, c = (row.types[x] for x in "ABC")

    @T.prim_func
    def kernel(
        A: T.Tensor((SIZE, SIZE), a), B: T.Tensor((SIZE, SIZE), b), C: T.Tensor((SIZE, SIZE), c),
        P: T.Tensor((SIZE, 1), "float8_e8m0fnu"), Q: T.Tensor((SIZE, 1), "float8_e8m0fnu"),
    ) -> None:  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            left, right = _placed(A, "shared", (SIZE, SIZE), a), _placed(B, "shared", (SIZE, SIZE), b)
            rows = _placed(P, "shared", (SIZE, 1), "float8_e8m0fnu")
            columns = _placed(Q, "shared", (SIZE, 1), "float8_e8m0fnu")
            total = _placed(C, "fragment", (SIZE, SIZE), c)
            T.gemm_scaled(left, rows, right, columns, total, transpose_B=True)
            T.copy(total, C)

    return kernel


def _move(row: Row) -> Any:
    """Return a copy, transposition or movement of rows."""
    dtype, name = next(iter(row.types.values())), row.name

    @T.prim_func
    def kernel(
        A: T.Tensor((SIZE, SIZE), dtype), n: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE, SIZE), dtype)
    ) -> None:
        with T.Kernel(1, threads=THREADS):
            src = _placed(A, row.scopes.get("src", "global"), (SIZE, SIZE), dtype)
            dst = B if row.scopes["dst"] == "global" else _tile(row.scopes["dst"], (SIZE, SIZE), dtype)
            if name == "fill":
                T.fill(dst, 1)
            elif name == "gather":
                T.gather(src, n, dst)
            elif name == "scatter":
                T.scatter(src, dst, n)
            else:
                getattr(T, name)(src, dst)
            if row.scopes["dst"] != "global":
                T.copy(dst, B)

    return kernel


def _pipelined(row: Row) -> Any:
    dtype = row.types["src"]

    @T.prim_func
    def kernel(A: T.Tensor((SIZE, LONG), dtype), B: T.Tensor((SIZE, LONG), dtype)) -> None:
        with T.Kernel(1, threads=THREADS):
            tile = T.alloc_shared((SIZE, SIZE), dtype)
            for k in T.Pipelined(LONG // SIZE, num_stages=2):
                T.copy(A[0, k * SIZE], tile)
                for i, j in T.Parallel(SIZE, SIZE):
                    B[i, k * SIZE + j] = tile[i, j]

    return kernel


def _reduce(row: Row) -> Any:
    dtype, out = row.types["src"], row.types["dst"]
    whole = row.op == "scan"
    result = (4, LONG) if whole else (4,)

    @T.prim_func
    def kernel(A: T.Tensor((4, LONG), dtype), B: T.Tensor(result, out)) -> None:
        with T.Kernel(1, threads=THREADS):
            src, dst = _placed(A, row.scopes["src"], (4, LONG), dtype), _tile(row.scopes["dst"], result, out)
            getattr(T, row.name)(src, dst, dim=1)
            T.copy(dst, B)

    return kernel


def _atomic(row: Row) -> Any:
    dtype, name = row.types["dst"], row.name

    @T.prim_func
    def kernel(A: T.Tensor((SIZE,), dtype), B: T.Tensor((SIZE,), dtype)) -> None:
        with T.Kernel(1, threads=THREADS):
            dst = _placed(A, row.scopes["dst"], (SIZE,), dtype)
            if name == "atomic_load":
                B[0] = T.atomic_load(dst[0], memory_order="relaxed")
            elif name == "atomic_store":
                T.atomic_store(dst[0], 1, memory_order="relaxed")
            else:
                getattr(T, name)(dst[0], 1)
            T.copy(dst, B)

    return kernel


def _dp4a(row: Row) -> Any:
    a, c = row.types["A"], row.types["C"]

    @T.prim_func
    def kernel(A: T.Tensor((4,), a), B: T.Tensor((4,), a), C: T.Tensor((1,), c)) -> None:
        with T.Kernel(1, threads=THREADS):
            T.dp4a(A, B, C)

    return kernel


def _im2col(row: Row) -> Any:
    dtype = row.types["img"]

    @T.prim_func
    def kernel(A: T.Tensor((1, 8, 8, 8), dtype), B: T.Tensor((SIZE, SIZE), dtype)) -> None:
        with T.Kernel(1, threads=THREADS):
            dst = T.alloc_shared((SIZE, SIZE), dtype)
            T.c2d_im2col(A, dst, 0, 0, 2, 1, 1, 0)
            T.copy(dst, B)

    return kernel


PROGRAMS: dict[str, Callable[[Row], Any]] = {
    "gemm": _gemm, "gemm_sp": _gemm_sp, "fp8_scaled_matmul": _fp8, "gemm_scaled": _block_scaled, "copy": _move,
    "pipelined copy": _pipelined, "fill": _move, "transpose": _move,
    "gather": _move, "scatter": _move, "reduce": _reduce, "scan": _reduce, "fold": _reduce,
    "atomic": _atomic, "atomic_load": _atomic,
    "atomic_store": _atomic, "dp4a": _dp4a, "c2d_im2col": _im2col,
}  # fmt: skip
