"""``tile.tilings`` on CUDA targets: proposed configurations are legal, first ranks follow from types and shapes."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.sparse import E_FACTOR_MAP

HOPPER = "cuda:sm_90a"


def dense(
    M: Any, N: int, K: int, trans_a: bool = False, trans_b: bool = True, dtype: str = "bfloat16", batch: int = 1,
    accum: str = "float32", block_M: int = 64, block_N: int = 64, block_K: int = 32, threads: int = 128,
    num_stages: int = 2,
) -> Any:  # fmt: skip
    @T.prim_func
    def gemm(
        A: T.Tensor((batch, K, M) if trans_a else (batch, M, K), dtype),
        B: T.Tensor((batch, N, K) if trans_b else (batch, K, N), dtype),
        C: T.Tensor((batch, M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=threads) as (bx, by, b):
            A_s = T.alloc_shared((block_K, block_M) if trans_a else (block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K) if trans_b else (block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_a:
                    T.copy(A[b, k * block_K, by * block_M], A_s)
                else:
                    T.copy(A[b, by * block_M, k * block_K], A_s)
                if trans_b:
                    T.copy(B[b, bx * block_N, k * block_K], B_s)
                else:
                    T.copy(B[b, k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f, transpose_A=trans_a, transpose_B=trans_b)
            T.copy(C_f, C[b, by * block_M, bx * block_N])

    return gemm


def sparse(
    M: int, N: int, K: int, trans_b: bool = False, dtype: str = "float16", meta: str = "int16", accum: str = "float32",
    block_M: int = 64, block_N: int = 64, block_K: int = 64, threads: int = 128, num_stages: int = 2,
) -> Any:  # fmt: skip
    e = E_FACTOR_MAP[dtype][meta]

    @T.prim_func
    def gemm_sp(
        A: T.Tensor((M, K // 2), dtype), E: T.Tensor((M, K // e), meta),
        B: T.Tensor((N, K) if trans_b else (K, N), dtype), C: T.Tensor((M, N), accum),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s, E_s = T.alloc_shared((block_M, block_K // 2), dtype), T.alloc_shared((block_M, block_K // e), meta)
            B_s = T.alloc_shared((block_N, block_K) if trans_b else (block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K // 2], A_s)
                T.copy(E[by * block_M, k * block_K // e], E_s)
                if trans_b:
                    T.copy(B[bx * block_N, k * block_K], B_s)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, transpose_B=trans_b)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm_sp


def attention(
    heads: int, S: int, D: int, causal: bool = False, block_M: int = 64, block_N: int = 64, threads: int = 128,
    num_stages: int = 1,
) -> Any:  # fmt: skip
    @T.prim_func
    def main(
        Q: T.Tensor((heads, S, D), "float16"), K: T.Tensor((heads, S, D), "float16"),
        V: T.Tensor((heads, S, D), "float16"), Out: T.Tensor((heads, S, D), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, block_M), heads, threads=threads) as (bx, h):
            Q_s, K_s = T.alloc_shared((block_M, D), "float16"), T.alloc_shared((block_N, D), "float16")
            V_s = T.alloc_shared((block_N, D), "float16")
            scores, weights = (
                T.alloc_fragment((block_M, block_N), "float32"),
                T.alloc_fragment((block_M, block_N), "float16"),
            )
            out = T.alloc_fragment((block_M, D), "float32")
            T.copy(Q[h, bx * block_M, 0], Q_s)
            T.clear(out)
            last = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(S, block_N)
            for k in T.Pipelined(last, num_stages=num_stages):
                T.copy(K[h, k * block_N, 0], K_s)
                T.copy(V[h, k * block_N, 0], V_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    weights[i, j] = T.exp2(scores[i, j])
                T.gemm(weights, V_s, out)
            T.copy(out, Out[h, bx * block_M, 0])

    return main


def gradients(
    heads: int, S: int, D: int, block_M: int = 32, block_N: int = 32, threads: int = 128, num_stages: int = 2
) -> Any:
    t = T.Tensor((heads, S, D), "float16")

    @T.prim_func
    def main(Q: t, K: t, V: t, G: t, dK: t, dV: t):
        with T.Kernel(T.ceildiv(S, block_N), heads, threads=threads) as (bx, h):
            K_s, V_s = T.alloc_shared((block_N, D), "float16"), T.alloc_shared((block_N, D), "float16")
            Q_s, G_s = T.alloc_shared((block_M, D), "float16"), T.alloc_shared((block_M, D), "float16")
            s, w = T.alloc_fragment((block_N, block_M), "float32"), T.alloc_fragment((block_N, block_M), "float32")
            half = T.alloc_fragment((block_N, block_M), "float16")
            dk, dv = T.alloc_fragment((block_N, D), "float32"), T.alloc_fragment((block_N, D), "float32")
            T.copy(K[h, bx * block_N, 0], K_s)
            T.copy(V[h, bx * block_N, 0], V_s)
            T.clear(dk)
            T.clear(dv)
            for m in T.Pipelined(T.ceildiv(S, block_M), num_stages=num_stages):
                T.copy(Q[h, m * block_M, 0], Q_s)
                T.copy(G[h, m * block_M, 0], G_s)
                T.gemm(K_s, Q_s, s, transpose_B=True, clear_accum=True)
                T.gemm(V_s, G_s, w, transpose_B=True, clear_accum=True)
                T.copy(s, half)
                T.gemm(half, G_s, dv)
                s *= w
                T.copy(s, half)
                T.gemm(half, Q_s, dk)
            T.copy(dk, dK[h, bx * block_N, 0])
            T.copy(dv, dV[h, bx * block_N, 0])

    return main


DENSE = {"M": 512, "N": 512, "K": 512}
TABLE = [
    *((dense, {**DENSE, "N": 384, "trans_a": a, "trans_b": b}) for a in (False, True) for b in (False, True)),
    (dense, {"M": 100, "N": 72, "K": 200, "dtype": "float16", "trans_b": False}),
    (dense, {"M": 8, "N": 1024, "K": 1024, "dtype": "float16"}),
    (dense, {**DENSE, "batch": 5}),
    (dense, {**DENSE, "M": T.dynamic("m")}),
    (dense, {**DENSE, "dtype": "int8", "accum": "int32"}),
    (dense, {**DENSE, "dtype": "int8", "accum": "int32", "trans_b": False}),
    (dense, {**DENSE, "dtype": "float32"}),
    (sparse, DENSE),
    (sparse, {**DENSE, "trans_b": True}),
    (sparse, {**DENSE, "dtype": "int8", "meta": "int32", "accum": "int32", "trans_b": True}),
    (attention, {"heads": 4, "S": 512, "D": 64}),
    (gradients, {"heads": 4, "S": 512, "D": 64}),
]
FLOATS = (dense, {**DENSE, "dtype": "float8_e4m3fn"})
CASES = [(target, {}, case) for target in ("cuda:sm_80", HOPPER, "cuda:sm_100a") for case in TABLE]
CASES += [
    (HOPPER, {}, FLOATS),
    (HOPPER, {"numerics": "fast"}, FLOATS),
    ("cuda:sm_100a", {"tcgen05": "always"}, TABLE[1]),
]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("target", "options", "case"), CASES)
def test_each_configuration_compiles(target: str, options: dict[str, Any], case: Any) -> None:
    factory, shapes = case
    found = tile.tilings(factory, shapes, target=target, options=options, most=2)
    assert found
    ctx = make_context(target, options, plugins=installed())
    for tiling in found:
        assert tiling.microseconds is None or tiling.microseconds > 0
        plan = lower(factory(**shapes, **tiling), ctx, installed())
        facts = plan.lowered.facts
        assert facts.shared_bytes <= ctx.capabilities.shared_bytes
        assert plan.source


def first(factory: Any, target: str = HOPPER, options: Any = None, **shapes: Any) -> dict[str, int]:
    return tile.tilings(factory, shapes, target=target, options=options, most=1)[0]


def tiles(found: dict[str, int]) -> tuple[int, int, int]:
    return found["block_M"], found["block_N"], found["threads"]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (False, True), (True, False), (True, True)])
def test_large_products_take_two_consumer_warpgroups(trans_a: bool, trans_b: bool) -> None:
    found = first(dense, M=4096, N=4096, K=4096, trans_a=trans_a, trans_b=trans_b)
    assert tiles(found) in ((128, 256, 256), (256, 128, 256))
    assert (found["block_K"], found["num_stages"]) == (64, 4)


@pytest.mark.sweep(0.25)
def test_few_tiles_are_small() -> None:
    found = first(dense, M=256, N=4096, K=4096)
    assert found["block_M"] * found["block_N"] <= 128 * 128
    assert first(dense, M=8, N=8192, K=8192)["block_M"] == 16


@pytest.mark.sweep(0.25)
def test_a_batch_counts_as_tiles() -> None:
    few, many = (first(dense, M=512, N=512, K=4096, batch=n) for n in (1, 33))
    assert few["block_M"] * few["block_N"] < many["block_M"] * many["block_N"] == 32768


@pytest.mark.sweep(0.25)
def test_bytes_have_twice_the_depth() -> None:
    found = first(dense, M=4096, N=4096, K=4096, dtype="int8", accum="int32")
    assert tiles(found) in ((128, 256, 256), (256, 128, 256))
    assert found["block_K"] == 128
    fast = first(dense, M=4096, N=4096, K=4096, dtype="float8_e4m3fn", options={"numerics": "fast"})
    assert tiles(fast) in ((128, 256, 256), (256, 128, 256))
    assert fast["block_K"] == 128


@pytest.mark.sweep(0.25)
def test_products_without_warpgroups_take_longer() -> None:
    """With the option wgmma="never", products of 8-bit floats run on mma.sync: a fourth of the rate."""
    slow, fast = (
        tile.tilings(
            dense, {"M": 4096, "N": 4096, "K": 4096, "dtype": "float8_e4m3fn"}, target=HOPPER, options=o, most=1
        )[0]
        for o in ({"wgmma": "never"}, {"numerics": "fast"})
    )
    assert slow.microseconds > 3 * fast.microseconds


@pytest.mark.sweep(0.25)
def test_sparse_products_are_estimated_by_their_kept_values() -> None:
    found = tile.tilings(sparse, {"M": 8192, "N": 8192, "K": 8192}, target=HOPPER, most=1)[0]
    assert tiles(found) == (128, 256, 256)
    half = tile.tilings(dense, {"M": 8192, "N": 8192, "K": 8192, "trans_b": False}, target=HOPPER, most=1)[0]
    assert 1.3 < half.microseconds / found.microseconds < 1.9  # 1.52 on an H200


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("dim", "expected"), [(128, (128, 192, 256)), (64, (128, 128, 256))])
def test_attention_takes_a_row_block_for_each_warpgroup(dim: int, expected: tuple[int, int, int]) -> None:
    found = first(attention, heads=32, S=4096, D=dim)
    assert found["block_M"] // 64 == found["threads"] // 128
    assert tiles(found) == expected


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dim", [64, 128])
def test_gradients_of_attention_have_whole_tiles(dim: int) -> None:
    found = tile.tilings(gradients, {"heads": 32, "S": 4096, "D": dim}, target=HOPPER, most=1)[0]
    # The factory's defaults have 32 rows, on mma.sync.
    assert found["block_N"] // 64 == found["threads"] // 128
    assert found["block_M"] >= 64


@pytest.mark.sweep(0.25)
def test_unaligned_rows_cost_lines() -> None:
    sizes, options = {"M": 4096, "K": 4096, "trans_b": False}, {"clusters": "never"}
    aligned, odd = (
        tile.tilings(dense, {**sizes, "N": n}, target=HOPPER, options=options, most=1)[0] for n in (4096, 4088)
    )
    assert odd.microseconds > aligned.microseconds
    (pairs,) = tile.tilings(dense, {**sizes, "N": 4088}, target=HOPPER, most=1)
    assert pairs.microseconds < odd.microseconds  # two blocks load a tile once


@pytest.mark.sweep(0.25)
def test_the_reason_names_waves_and_limit() -> None:
    found = tile.tilings(dense, {"M": 4096, "N": 4096, "K": 4096}, target=HOPPER, most=1)[0]
    assert found.reason == "512 tiles, at most 4 on each of 132 multiprocessors; limited by the matrix units"


def dequantized(
    M: int, N: int, K: int, block_M: int = 32, block_N: int = 32, block_K: int = 64, threads: int = 128,
    num_stages: int = 2,
) -> Any:  # fmt: skip
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "int4"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            a, w = T.alloc_shared((block_M, block_K), "float16"), T.alloc_shared((block_N, block_K), "float16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], a)
                for i, j in T.Parallel(block_N, block_K):
                    w[i, j] = T.cast(W[bx * block_N + i, k * block_K + j], "float16")
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * block_M, bx * block_N])

    return main


@pytest.mark.parametrize(("M", "expected"), [(16, (16, 64)), (256, (256, 64))])
def test_few_weights_are_converted(M: int, expected: tuple[int, int]) -> None:
    """With 256 rows such tiles took 51 us on an H200, and tiles of 128 x 64, which convert twice as much, 56 us."""
    best = tile.tilings(dequantized, {"M": M, "N": 8192, "K": 8192}, target=HOPPER, most=1)[0]
    assert (best["block_M"], best["block_N"]) == expected
