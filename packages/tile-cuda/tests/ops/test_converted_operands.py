"""Operands that threads convert between their copy and a product: packed copies, pairs, registers, prefetched loads."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

KINDS = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
#: Storage, numbers of a word, and a number from a word ``q`` and its position ``e``.
FORMS = {
    "int4": ("int4", 1, lambda q, e: q),
    "uint4": ("uint4", 1, lambda q, e: q),
    "bytes": ("uint8", 2, lambda q, e: T.cast(q, "int32") >> e * 4 & 15),
    "signed": ("uint8", 2, lambda q, e: (T.cast(q, "int32") >> e * 4 & 15 ^ 8) - 8),
    "words": ("int32", 8, lambda q, e: (q >> e * 4 & 15) - 8),
}


def program(form, kind, m, n, k, tile_of, threads=128, stages=3, scaled=True, trips=None):
    """A product with a converted operand: W of (n, k) numbers, a scale for 32 of them."""
    storage, per, number = FORMS[form]
    bm, bn, bk = tile_of
    steps = -(-k // bk) if trips is None else trips

    @T.prim_func
    def main(
        A: T.Tensor((m, k), kind), W: T.Tensor((n, k // per), storage), S: T.Tensor((n, k // 32), kind),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), kind)
            q = T.alloc_shared((bn, bk // per), storage)
            w = T.alloc_shared((bn, bk), kind)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for o in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, o * bk], a)
                T.copy(W[bx * bn, o * bk // per], q)
                for i, j in T.Parallel(bn, bk):
                    x = T.cast(number(q[i, j // per], j % per), kind)
                    w[i, j] = x * S[bx * bn + i, (o * bk + j) // 32] if scaled else x
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * bm, bx * bn])

    return main


def data(form, kind, m, n, k):
    rng = np.random.default_rng()
    codes = rng.integers(0, 16, (n, k))
    values = codes if form in ("uint4", "bytes") else codes - 8 if form == "words" else (codes ^ 8) - 8
    if form == "words":
        packed = sum(codes[:, e::8].astype(np.uint32) << np.uint32(4 * e) for e in range(8)).view(np.int32)
    else:
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    a = rng.integers(-3, 4, (m, k)).astype(KINDS[kind])
    return a, packed, np.exp2(rng.integers(-1, 2, (n, k // 32))).astype(KINDS[kind]), values


def check(form, kind, m, n, k, tile_of, target, trips=None, **how):
    kernel = tile.compile(
        program(form, kind, m, n, k, tile_of, trips=trips, **how), target, runtime="emulator", options={}
    )
    a, packed, s, values = data(form, kind, m, n, k)
    c = np.full((m, n), np.nan, np.float32)
    kernel(a, packed, s, c)
    depth = k if trips is None else min(k, trips * tile_of[2])
    w = values[:, :depth] * np.repeat(s.astype(float), 32, 1)[:, :depth]
    np.testing.assert_array_equal(c, a[:, :depth].astype(float) @ w.T)
    return kernel.source


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_small_integers_are_converted_in_pairs(form, kind, target):
    text = check(form, kind, 16, 64, 128, (16, 64, 64), target)
    # The bits of 128 or 1024, with others flipped, by one instruction with the mask of nibbles.
    assert re.search(r"lop3_b32_6a\(.*, 983055u, (1124|168|167)\d+u\)", text)
    assert f"cvt_rn_{'bf16' if kind == 'bfloat16' else 'f16'}_f32((float)" not in text


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("form", ["int4", "words"])
def test_exchanged_products_last_across_iterations(form, trips):
    text = check(form, "bfloat16", 9, 70, 640, (16, 64, 128), "cuda:sm_90a", trips=trips)
    assert bool(re.search(r"wgmma_m64n16k16_f32_bf16_bf16_rs\(", text)) == (trips > 0)
    assert ("wgmma_wait_group_sync_aligned_1" in text) == (trips > 1)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("m", "tile_of", "threads"), [(70, (64, 64, 64), 128), (9, (16, 128, 32), 256), (5, (8, 64, 64), 64)]
)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
def test_tails_of_all_dimensions(target, m, tile_of, threads):
    check("int4", "float16", m, 70, 160, tile_of, target, threads=threads)


def test_an_operand_that_warps_would_compute_twice_stays_in_shared_memory():
    text = check("int4", "float16", 64, 32, 64, (64, 32, 32), "cuda:sm_80")
    assert re.search(r"f16\* const w = ", text)


@pytest.mark.parametrize("target", ["cuda:sm_80", "metal"])
def test_scales_are_loaded_an_iteration_before(target):
    text = check("int4", "float16", 16, 64, 160, (16, 64, 32), target)
    loop = text[text.index("for (int o") :]
    # The next iteration's scales are loaded behind the use of this one's, and before the product.
    used, loaded, product = (
        re.search(form, loop).start() for form in (r" = .*S_ahead\[", r"S_ahead\[.*\] = S\[", r"mma_sync|multiply")
    )
    assert used < loaded < product


def test_loads_of_a_grid_are_not_prefetched():
    @T.prim_func
    def main(S: T.Tensor((2,), "int32"), A: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            T.atomic_add(A[S[bx]], 1)

    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator")
    assert "_ahead" not in kernel.source


def test_tiles_of_odd_rows_keep_a_byte_for_each_element():
    @T.prim_func
    def main(W: T.Tensor((8, 15), "int4"), B: T.Tensor((8, 15), "float16")):
        with T.Kernel(1, threads=32):
            q = T.alloc_shared((8, 15), "int4")
            T.copy(W, q)
            for i, j in T.Parallel(8, 15):
                B[i, j] = T.cast(q[i, j], "float16")

    kernel = tile.compile(main, "cuda:sm_80", runtime="emulator")
    codes = np.random.default_rng().integers(0, 16, (8, 16))
    b = np.full((8, 15), np.nan, np.float16)
    kernel((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), b)
    np.testing.assert_array_equal(b, ((codes ^ 8) - 8)[:, :15])


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal"])
@pytest.mark.parametrize(("k", "stages"), [(64, 2), (192, 3), (96, 0)])
def test_weights_that_are_converted_from_global_memory_are_prefetched(target, k, stages):
    @T.prim_func
    def main(A: T.Tensor((16, k), "float16"), W: T.Tensor((64, k), "int4"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((16, 32), "float16")
            w = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((16, 64), "float32")
            T.clear(c)
            for o in T.Pipelined(k // 32, num_stages=stages):
                T.copy(A[0, o * 32], a)
                for i, j in T.Parallel(64, 32):
                    w[i, j] = T.cast(W[i, o * 32 + j], "float16")
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C)

    kernel = tile.compile(main, target, runtime="emulator")
    rng = np.random.default_rng()
    a, codes = rng.integers(-3, 4, (16, k)).astype(np.float16), rng.integers(0, 16, (64, k))
    c = np.full((16, 64), np.nan, np.float32)
    kernel(a, (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), c)
    np.testing.assert_array_equal(c, a.astype(float) @ ((codes ^ 8) - 8).T)
    # Where copies are asynchronous, a pipeline prefetches them; elsewhere threads load elements an iteration before.
    assert ("W_tile_stages[" if stages and target != "metal" else "W_ahead[") in kernel.source


def test_an_operand_that_other_threads_compute_stays_in_shared_memory():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), W: T.Tensor((64, 64), "int8"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((16, 64), "float16")
            q = T.alloc_shared((64, 64), "int8")
            w = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(128)
            T.copy(A, a)
            T.copy(W, q)
            with T.ws(0, size=128):
                for i, j in T.Parallel(64, 64):
                    w[i, j] = T.cast(q[i, j], "float16")
                T.mbarrier_arrive(ready)
            with T.ws(1, size=128):
                T.mbarrier_wait_parity(ready, 0)
                c = T.alloc_fragment((16, 64), "float32")
                T.clear(c)
                T.gemm(a, w, c, transpose_B=True)
                T.copy(c, C)

    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options={"wgmma": "never"})
    assert re.search(r"w +float16\[64, 64\] .* declared", str(kernel.explain()))  # never a fragment
    rng = np.random.default_rng()
    a, w = rng.integers(-3, 4, (16, 64)).astype(np.float16), rng.integers(-3, 4, (64, 64)).astype(np.int8)
    c = np.full((16, 64), np.nan, np.float32)
    kernel(a, w, c)
    np.testing.assert_array_equal(c, a.astype(float) @ w.T)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
@pytest.mark.parametrize("n", [0, 9])
def test_conditions_of_one_element_are_those_of_each_iteration(target, n):
    @T.prim_func
    def main(
        X: T.Tensor((4, 64), "float32"), S: T.Tensor((64,), "float32"), n: T.int32, B: T.Tensor((4, 64), "float32")
    ):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((64,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(X[k, 0], x)
                for i in T.Parallel(64):
                    B[k, i] = x[63 - i] + T.if_then_else(n > 5, S[i], 0) + T.if_then_else(k > 1, S[i] * 2, 0)

    kernel = tile.compile(main, target, runtime="emulator")
    rng = np.random.default_rng()
    x, s = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 64), (64,)))
    b = np.full((4, 64), np.nan, np.float32)
    kernel(x, s, n, b)
    want = x[:, ::-1] + (s if n > 5 else 0) + np.where(np.arange(4)[:, None] > 1, 2 * s, 0)
    np.testing.assert_array_equal(b, want)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("before", [0, 24, 28, 32, 40, 56])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "metal"])
def test_nibbles_of_long_words(target, dtype, before):
    @T.prim_func
    def main(W: T.Tensor((8, 32), dtype), B: T.Tensor((8, 64), "float16")):
        with T.Kernel(1, threads=32):
            q = T.alloc_shared((8, 32), dtype)
            b = T.alloc_shared((8, 64), "float16")
            T.copy(W, q)
            for i, j in T.Parallel(8, 64):
                b[i, j] = T.cast((q[i, j // 2] >> (j % 2 * 4 + before)) & 15, "float16")
            T.copy(b, B)

    kernel = tile.compile(main, target, runtime="emulator")
    bits = np.iinfo(dtype)
    w = np.random.default_rng().integers(bits.min, bits.max, (8, 32), dtype=dtype, endpoint=True)
    b = np.full((8, 64), np.nan, np.float16)
    kernel(w, b)
    shifts = np.asarray([before, before + 4], dtype)
    np.testing.assert_array_equal(b, (w[..., None] >> shifts & np.asarray(15, dtype)).reshape(8, 64))


@pytest.mark.parametrize("form", ["int4", "words"])
@pytest.mark.parametrize(("depth", "groups"), [(32, 4), (64, 2), (128, 4)])  # of 32: a vector for four iterations
def test_a_group_of_elements_loads_its_scale_once(form, depth, groups):
    """A scale of 32 elements is one register of a row for the 4 steps of 8 that a lane multiplies in them."""
    source = tile.compile(program(form, "bfloat16", 16, 1024, 2048, (16, 64, depth)), "cuda:sm_90a").source
    held = re.findall(r"bf16 S_ahead\w*\[(\d+)\];", source)
    assert held
    assert set(held) == {str(2 * groups)}
    assert not re.search(r"w_pairs\[.*\bS\[", source)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
def test_scales_under_conditions_of_single_elements(target):
    """The first use is under a condition of the group, the second one under one of its steps."""

    @T.prim_func
    def main(
        A: T.Tensor((16, 256), "float16"), W: T.Tensor((70, 256), "int4"), S: T.Tensor((70, 8), "float16"),
        C: T.Tensor((16, 70), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            a, w = T.alloc_shared((16, 64), "float16"), T.alloc_shared((64, 64), "float16")
            q, c = T.alloc_shared((64, 64), "int4"), T.alloc_fragment((16, 64), "float32")
            T.clear(c)
            for o in T.Pipelined(4, num_stages=3):
                T.copy(A[0, o * 64], a)
                T.copy(W[bx * 64, o * 64], q)
                for i, j in T.Parallel(64, 64):
                    group = (o * 64 + j) // 32
                    first = T.if_then_else(group > 0, S[bx * 64 + i, group], 1)
                    w[i, j] = T.cast(q[i, j], "float16") * first * T.if_then_else(j % 16 >= 8, S[bx * 64 + i, group], 1)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[0, bx * 64])

    rng, k = np.random.default_rng(), np.arange(256)
    a, codes = rng.integers(-3, 4, (16, 256)).astype(np.float16), rng.integers(0, 16, (70, 256))
    s = np.exp2(rng.integers(-1, 2, (70, 8))).astype(np.float16)
    found = np.full((16, 70), np.nan, np.float32)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    tile.compile(main, target, runtime="emulator")(a, packed, s, found)
    scales = np.repeat(s, 32, 1).astype(float)
    w = ((codes ^ 8) - 8) * np.where(k >= 32, scales, 1) * np.where(k % 16 >= 8, scales, 1)
    np.testing.assert_array_equal(found, a.astype(float) @ w.T)
