"""A product and a sum round twice, unless a tile op fuses its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tvm
from tile_core.cpu.products import fence_products, reveal_products
from tile_core.ir import nodes
from tile_core.ir.visit import collect

N = 512
TYPES = ["float32", "float64", "float16"]


def arrays(dtype: str, seed: int) -> list[np.ndarray]:
    return [np.random.default_rng([seed, k]).standard_normal(N).astype(dtype) for k in range(3)]


def at_once(dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(N // 4):
                C[b * (N // 4) + i] = A[b * (N // 4) + i] * W[b * (N // 4) + i] + B[b * (N // 4) + i]

    return k


def in_a_name(dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.serial(N):
                p = A[i] * W[i]
                C[i] = B[i] + p

    return k


def in_a_tile(dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            s = T.alloc_fragment((N,), dtype)
            for i in T.Parallel(N):
                s[i] = A[i] * W[i]
            for i in T.Parallel(N):
                C[i] = s[i] + B[i]

    return k


def in_a_variable(dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            v = T.alloc_var(dtype, init=0)
            for i in T.serial(N):
                v = A[i] * W[i]
                v += B[i]
                C[i] = v

    return k


def under_a_condition(dtype: str) -> Any:
    """LLVM vectorizes loops with conditions, the CPU's own vectorizer does not."""

    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            s = T.alloc_fragment((N,), dtype)
            for i in T.Parallel(N):
                s[i] = T.if_then_else(i < N, A[i] * W[i], 0)
                C[i] = T.if_then_else(i < N, s[i] + B[i], 0)

    return k


def in_the_output(dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((N,), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.unroll(N):
                C[i] = A[i]
                C[i] *= W[i]
                C[i] += B[i]

    return k


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", [3])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("make", [at_once, in_a_name, in_a_tile, in_a_variable, under_a_condition, in_the_output])
def test_a_product_is_rounded_before_it_is_added_to(make: Any, dtype: str, seed: int) -> None:
    a, w, b = arrays(dtype, seed)
    c = np.full(N, np.nan, dtype)
    tile.compile(make(dtype), target="cpu", options={"numerics": "strict"})(a, w, b, c)
    np.testing.assert_array_equal(c, a * w + b)


@pytest.mark.parametrize("seed", [5])
def test_fused_products_and_ieee_fma_round_once(seed: int) -> None:
    a, w, b = arrays("float32", seed)
    once = (a.astype("float64") * w + b).astype("float32")

    @T.prim_func
    def k(A: T.Tensor((N,)), W: T.Tensor((N,)), B: T.Tensor((N,)), C: T.Tensor((N,))):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                C[i] = T.ieee_fma(A[i], W[i], B[i])

    c = np.full(N, np.nan, "float32")
    tile.compile(k, target="cpu")(a, w, b, c)
    assert np.count_nonzero(c != once) <= 1  # float64 rounds the sum, too
    tile.compile(at_once("float32"), target="cpu", options={"numerics": "standard"})(a, w, b, c)
    np.testing.assert_allclose(c, once, rtol=1e-4, atol=1e-6)


def test_loops_that_llvm_may_vectorize_have_a_fence_with_vectors() -> None:
    @T.prim_func
    def k(A: T.Tensor((64,)), B: T.Tensor((64,))):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = A[i] * 2.5 + 1.0
            for i in T.serial(63):
                B[i + 1] = B[i] * 2.5 + 1.0

    fenced = fence_products(k.func.body)
    fences = {True: ["llvm.canonicalize", "llvm.arithmetic.fence"], False: ["llvm.arithmetic.fence"] * 2}
    for canonicalize, expected in fences.items():
        calls = collect(reveal_products(fenced, canonicalize=canonicalize), ir.Call)
        ids = [int(c.args[0]) for c in calls if nodes.operator_name(c) == "call_llvm_pure_intrin"]
        assert [str(tvm.target.codegen.llvm_get_intrinsic_name(i)) for i in ids] == expected


def test_only_what_may_be_added_to_is_fenced() -> None:
    @T.prim_func
    def k(A: T.Tensor((4,)), B: T.Tensor((4,))):
        with T.Kernel(1, threads=32):
            B[0] = A[0] * A[1] / (A[2] * A[3])
            B[1] = A[0] * A[1] * A[2] * A[3]
            B[2] = T.if_then_else(A[0] * A[1] > A[2] * A[3], 1.0, A[0])

    fenced = str(nodes.seq([fence_products(k.func.body)]))
    assert fenced.count("tile.float_product") == 1
