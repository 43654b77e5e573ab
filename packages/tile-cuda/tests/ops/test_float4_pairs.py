"""4-bit floats that threads convert two at a time: all codes, halves of bytes, weights with scales."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

KINDS = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}
#: The power of two that the moved bits are multiplied by, in both halves of a word.
FACTORS = {"bfloat16": 0x7E807E80, "float16": 0x74007400}
TARGETS = ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"]


def from_shared(n, kind):
    @T.prim_func
    def main(X: T.Tensor((n,), "float4_e2m1fn"), Y: T.Tensor((n,), kind)):
        with T.Kernel(1, threads=32):
            q = T.alloc_shared((n,), "float4_e2m1fn")
            T.copy(X, q)
            for i in T.Parallel(n):
                Y[i] = T.cast(q[i], kind)

    return main


def from_registers(n, kind):
    @T.prim_func
    def main(X: T.Tensor((n,), "float4_e2m1fn"), Y: T.Tensor((n,), kind)):
        with T.Kernel(1, threads=32):
            q = T.alloc_fragment((n,), "float4_e2m1fn")
            y = T.alloc_fragment((n,), kind)
            T.copy(X, q)
            for i in T.Parallel(n):
                y[i] = T.cast(q[i], kind)
            T.copy(y, Y)

    return main


@pytest.mark.sweep(0.5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [from_shared, from_registers])
@pytest.mark.parametrize("n", [512, 30])
def test_all_codes_keep_their_bits(made, kind, target, n):
    kernel = tile.compile(made(n, kind), target, runtime="emulator")
    packed, y = np.arange(n // 2, dtype=np.uint8), np.full(n, np.nan, KINDS[kind])
    kernel(packed, y)
    codes = np.stack([packed & 15, packed >> 4], 1).ravel()
    wanted = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32).astype(KINDS[kind])
    assert y.tobytes() == wanted.tobytes()  # also of -0
    if target.startswith("cuda") and kind in FACTORS and n == 512:
        assert f"{FACTORS[kind]}u" in kernel.source


def weights(m, n, k, kind, tile_of, threads):
    bm, bn, bk = tile_of

    @T.prim_func
    def main(
        A: T.Tensor((m, k), kind), W: T.Tensor((n, k), "float4_e2m1fn"), S: T.Tensor((n, k // 32), "float8_e8m0fnu"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), kind)
            q = T.alloc_shared((bn, bk), "float4_e2m1fn")
            w = T.alloc_shared((bn, bk), kind)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for o in T.Pipelined(T.ceildiv(k, bk), num_stages=3):
                T.copy(A[by * bm, o * bk], a)
                T.copy(W[bx * bn, o * bk], q)
                for i, j in T.Parallel(bn, bk):
                    w[i, j] = T.cast(q[i, j], kind) * T.cast(S[bx * bn + i, (o * bk + j) // 32], kind)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * bm, bx * bn])

    return main


@pytest.mark.sweep(0.5)
@pytest.mark.parametrize(("m", "tile_of", "threads"), [(16, (16, 64, 128), 128), (70, (64, 64, 64), 128)])
@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("target", TARGETS)
def test_weights_with_a_scale_for_32(target, kind, m, tile_of, threads):
    n, k, rng = 70, 320, np.random.default_rng()
    kernel = tile.compile(weights(m, n, k, kind, tile_of, threads), target, runtime="emulator")
    codes = rng.integers(0, 16, (n, k), np.uint8)
    scale = rng.integers(126, 129, (n, k // 32), np.uint8)
    a = rng.integers(-3, 4, (m, k)).astype(KINDS[kind])
    c = np.full((m, n), np.nan, np.float32)
    kernel(a, codes[:, ::2] | codes[:, 1::2] << 4, scale.view(ml_dtypes.float8_e8m0fnu), c)
    w = codes.view(ml_dtypes.float4_e2m1fn).astype(float) * np.exp2(np.repeat(scale.astype(float) - 127, 32, 1))
    np.testing.assert_array_equal(c, a.astype(float) @ w.T)
    if target.startswith("cuda"):
        # Loops over registers are unrolled: their indices are constants, and arrays stay out of memory.
        assert f"{FACTORS[kind]}u" in kernel.source
        assert "#pragma unroll 1\n" not in kernel.source
