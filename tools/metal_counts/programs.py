"""Programs whose texts are counted, with arguments and results; products are the zoo's."""

# Annotations of kernels are shapes and names of element types, no types.
# ruff: noqa: ANN202
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from zoo.case import Case, Wanted, example, from_example, poisoned

import tile_core.language as T
from tile_core.numerics import codecs

N, K, GROUP = 64, 1024, 64


def scaled_vector_case(dtype: str, block_N: int = 8, *, block_K: int) -> Case:
    """Return a vector times a matrix of integers that are scaled per group."""

    @T.prim_func
    def vecmat(
        A: T.Tensor((1, K), "float16"),
        W: T.Tensor((N, K), dtype),
        scale: T.Tensor((N, K // GROUP), "float16"),
        C: T.Tensor((1, N), "float32"),
    ):
        with T.Kernel(N // block_N, threads=64) as bx:
            x = T.alloc_fragment((block_K,), "float16")
            total = T.alloc_reducer((block_N,), "float32", "sum")
            for k in T.serial(K // block_K):
                T.copy(A[0, k * block_K], x)
                for i, j in T.Parallel(block_N, block_K):
                    n, kk = bx * block_N + i, k * block_K + j
                    w = T.cast(W[n, kk], "float32") * T.cast(scale[n, kk // GROUP], "float32")
                    total[i] += T.cast(x[j], "float32") * w
            T.finalize_reducer(total)
            T.copy(total, C[0, bx * block_N])

    rng = np.random.default_rng(K)
    bits, low = (8, -128) if dtype == "int8" else (4, -8 if dtype == "int4" else 0)
    w = rng.integers(low, low + 2**bits, (N, K))
    a = rng.standard_normal((1, K)).astype("float16")
    scale = (2.0 ** rng.integers(-4, 1, (N, K // GROUP))).astype("float16")
    stored = w.astype("int8") if dtype == "int8" else codecs.pack4((w & 15).astype("uint8"))
    a64, w64 = a.astype("float64"), w * np.repeat(scale.astype("float64"), GROUP, 1)
    wanted = Wanted(3, a64 @ w64.T, K * 2.0**-24, np.abs(a64) @ (np.abs(w64).T + 8))
    return Case(vecmat, (a, stored, scale, poisoned((1, N), "float32")), (wanted,))


def fp8_vector_case(block_N: int = 8, block_K: int = 256) -> Case:
    """Return a vector times a matrix of 8-bit floats."""

    @T.prim_func
    def vecmat(
        A: T.Tensor((1, K), "float16"), W: T.Tensor((N, K), "float8_e4m3fn"), C: T.Tensor((1, N), "float32")
    ):  # fmt: skip
        with T.Kernel(N // block_N, threads=64) as bx:
            x = T.alloc_fragment((block_K,), "float16")
            total = T.alloc_reducer((block_N,), "float32", "sum")
            for k in T.serial(K // block_K):
                T.copy(A[0, k * block_K], x)
                for i, j in T.Parallel(block_N, block_K):
                    w = T.cast(W[bx * block_N + i, k * block_K + j], "float32")
                    total[i] += T.cast(x[j], "float32") * w
            T.finalize_reducer(total)
            T.copy(total, C[0, bx * block_N])

    rng = np.random.default_rng(N)
    a = rng.standard_normal((1, K)).astype("float16")
    w = rng.standard_normal((N, K)).astype(T.dtype("float8_e4m3fn").numpy())
    a64, w64 = a.astype("float64"), w.astype("float64")
    wanted = Wanted(2, a64 @ w64.T, K * 2.0**-24, np.abs(a64) @ np.abs(w64).T)
    return Case(vecmat, (a, w, poisoned((1, N), "float32")), (wanted,))


def attention_case(dim: int, block_N: int) -> Case:
    """Return attention of 128 queries to 128 keys, 32 queries per block."""
    program = example("flash_attention").attention(1, 1, 128, 128, dim, False, "float16", 32, block_N)
    case = from_example("flash_attention", 1, 1, 128, 128, dim, False)()
    return Case(program, case.args, case.wanted)


def decode_case(heads: int, keys: int, dim: int) -> Case:
    """Return attention of one query per head to a cache, a head per block."""

    @T.prim_func
    def decode(
        Q: T.Tensor((heads, dim), "float16"), K: T.Tensor((heads, keys, dim), "float16"),
        V: T.Tensor((heads, keys, dim), "float16"), Output: T.Tensor((heads, dim), "float32"),
    ):  # fmt: skip
        with T.Kernel(heads, threads=256) as h:
            scores = T.alloc_fragment((1, keys), "float32")
            top, total = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            weights, result = T.alloc_shared((1, keys), "float32"), T.alloc_fragment((1, dim), "float32")
            T.gemm(Q[h : h + 1, :], K[h, :, :], scores, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(1, keys):
                scores[i, j] *= 1.4426950408889634 / dim**0.5
            T.reduce_max(scores, top, dim=1)
            for i, j in T.Parallel(1, keys):
                scores[i, j] = T.exp2(scores[i, j] - top[i])
            T.reduce_sum(scores, total, dim=1)
            T.copy(scores, weights)
            T.gemm(weights, V[h, :, :], result, clear_accum=True)
            for i, j in T.Parallel(1, dim):
                Output[h, j] = result[i, j] / total[i]

    rng = np.random.default_rng(keys)
    q = rng.standard_normal((heads, dim)).astype("float16")
    k, v = (rng.standard_normal((heads, keys, dim)).astype("float16") for _ in range(2))
    scores = np.einsum("hd,hkd->hk", q.astype("float64"), k.astype("float64")) / dim**0.5
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = np.einsum("hk,hkd->hd", weights / weights.sum(1, keepdims=True), v.astype("float64"))
    return Case(decode, (q, k, v, poisoned((heads, dim), "float32")), (Wanted(3, exact, 1e-5),))


def dequant_case() -> Case:
    """Return a product with 4-bit integers that are decoded while they are staged, scaled per group."""
    program = example("dequant_gemm").dequant_matmul(64, 64, 128, GROUP, 32, 32, 64, 64)
    rng = np.random.default_rng(GROUP)
    a, w = rng.standard_normal((64, 128)).astype("float16"), rng.integers(-8, 8, (64, 128))
    scale = (2.0 ** rng.integers(-4, 1, (64, 128 // GROUP))).astype("float16")
    a64, w64 = a.astype("float64"), w * np.repeat(scale.astype("float64"), GROUP, 1)
    wanted = Wanted(3, a64 @ w64.T, 2.0**-17, np.abs(a64) @ np.abs(w64).T)
    return Case(program, (a, codecs.pack4((w & 15).astype("uint8")), scale, poisoned((64, 64), "float32")), (wanted,))


def row_sum_case(rows: int, columns: int) -> Case:
    """Return row reductions, 4 rows per block."""

    @T.prim_func
    def row_sum(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(rows // 4, threads=128) as bx:
            x = T.alloc_fragment((4, columns), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_sum(x, Y[bx * 4 : bx * 4 + 4], dim=1)

    x = np.random.default_rng(rows).standard_normal((rows, columns), "float32")
    wanted = Wanted(1, x.astype("float64").sum(1), columns * 2.0**-24, np.abs(x).sum(1))
    return Case(row_sum, (x, poisoned((rows,), "float32")), (wanted,))


def softmax_case(rows: int, columns: int) -> Case:
    """Return the softmax of rows, 4 elements per thread."""
    case = from_example("softmax", "@softmax", rows, columns, "float32", 1e-6)()
    program = example("softmax").softmax(rows, columns, "float32", threads=columns // 4)
    return Case(program, case.args, case.wanted)


def rms_norm_case(rows: int, columns: int) -> Case:
    """Return rows divided by the roots of their mean squares, 4 elements per thread."""
    case = from_example("rms_norm", rows, columns, "float16", 1e-3)()
    program = example("rms_norm").rms_norm(rows, columns, "float16", threads=columns // 4)
    return Case(program, case.args, case.wanted)
