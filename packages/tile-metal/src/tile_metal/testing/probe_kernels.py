"""Programs of the probes in ``probes.py``."""

# Parameters of kernels are annotated with shapes, which type checkers do not support.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import tile_core.language as T


def product(M: int, N: int, K: int) -> Any:
    """Return a product by one block."""

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")) -> None:
        with T.Kernel(1, threads=64):
            A_s, B_s = T.alloc_shared((M, K), "float16"), T.alloc_shared((K, N), "float16")
            C_f = T.alloc_fragment((M, N), "float32")
            T.clear(C_f)
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C)

    return gemm


def own_functions(names: list[str]) -> Any:
    """Return a program that applies functions to values."""

    @T.prim_func
    def functions(X: T.Tensor((2048,), "float32"), Y: T.Tensor((len(names), 2048), "float32")) -> None:
        with T.Kernel(8, threads=256) as b:
            for i in T.Parallel(256):
                for n, name in enumerate(names):
                    x = X[b * 256 + i]
                    Y[n, b * 256 + i] = getattr(T, name)(T.abs(x) if name == "log1p" else x)

    return functions


def larger(n: int) -> Any:
    """Return the larger of two floats."""

    @T.prim_func
    def larger_of(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")) -> None:
        with T.Kernel(1, threads=64):
            for i in T.Parallel(n):
                C[i] = T.max(A[i], B[i])

    return larger_of


def there_and_back(dtype: str) -> Any:
    """Return a program that decodes and encodes codes."""

    @T.prim_func
    def codes(A: T.Tensor((256,), dtype), B: T.Tensor((256,), "float32"), C: T.Tensor((256,), dtype)) -> None:
        with T.Kernel(1, threads=64):
            for i in T.Parallel(256):
                B[i] = A[i]
                C[i] = B[i]

    return codes


def counted() -> Any:
    """Return atomic additions to few elements."""

    @T.prim_func
    def count(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "float32"), C: T.Tensor((4,), "float16")) -> None:
        with T.Kernel(4, threads=64):
            for i in T.Parallel(64):
                T.atomic_add(A[i % 4], 1)
                T.atomic_add(B[i % 4], 1.0)
                T.atomic_add(C[i % 4], 1.0)

    return count
