"""Block-scaled products on matrix instructions, and 4-bit floats, decoded two at a time."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import launch
from zoo.case import poisoned
from zoo.programs import scaled_case

import tile_core.language as T
import tile_emulator
from tile_core.numerics import codecs
from tile_metal.emulation import dialect

from .kit import TARGETS, context, right

FORMATS = {
    "mxfp8": (("float8_e4m3fn", "float8_e8m0fnu"), 32), "e5m2": (("float8_e5m2", "float8_e8m0fnu"), 32),
    "mxfp4": (("float4_e2m1fn", "float8_e8m0fnu"), 32), "nvfp4": (("float4_e2m1fn", "float8_e4m3fn"), 16),
}  # fmt: skip
SIZES = [(64, 64, 128), (33, 50, 96), (1, 7, 64), (65, 31, 160)]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", FORMATS)
def test_scaled_products_are_right(name, sizes, target):
    types, per = FORMATS[name]
    case = scaled_case(*sizes, types, per, (32, 32, 64))
    text = launch.text_for(case, context(target))
    result = tile_emulator.run(text.text, text.facts, launch.values_of(case, text), dialect(context(target).target))
    assert result.ok, "\n".join(map(str, result.reports))
    assert not launch.wrong(case, text, result)
    assert ("matmul2d" if target == TARGETS[1] else "simdgroup_multiply_accumulate") in text.text


def test_scaled_operands_are_decoded_where_they_are_staged():
    """Codes of 8 bits become float16 once; fragments are loaded by instructions."""
    types, per = FORMATS["mxfp8"]
    text = launch.text_for(scaled_case(64, 64, 128, types, per, (32, 32, 64)), context(TARGETS[0])).text
    assert text.count("= decode_pair_float8_e4m3fn(") == 2
    assert "simdgroup_load_f16_threadgroup(" in text


def test_numbers_beyond_every_scale():
    """NaN of a scale, and scales whose product is no float32 by itself."""
    m, k = 16, 64

    @T.prim_func
    def scaled(
        A: T.Tensor((m, k), "float8_e4m3fn"), SA: T.Tensor((m, 2), "float8_e8m0fnu"),
        B: T.Tensor((m, k), "float8_e4m3fn"), SB: T.Tensor((m, 2), "float8_e8m0fnu"), C: T.Tensor((m, m), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            a, b = T.alloc_shared((m, k), "float8_e4m3fn"), T.alloc_shared((m, k), "float8_e4m3fn")
            sa, sb = T.alloc_shared((m, 2), "float8_e8m0fnu"), T.alloc_shared((m, 2), "float8_e8m0fnu")
            c = T.alloc_fragment((m, m), "float32")
            for source, tile in ((A, a), (B, b), (SA, sa), (SB, sb)):
                T.copy(source, tile)
            T.gemm_scaled(a, sa, b, sb, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    codes = codecs.encode(np.ones((m, k), "float32"), "float8_e4m3fn")
    sa, sb = np.full((m, 2), 127, "uint8"), np.full((m, 2), 127, "uint8")
    sa[1, 0] = 255
    sa[2], sb[3] = 254, 0  # 2^127 and 2^-127
    _, out = right(scaled, codes, sa, codes, sb, poisoned((m, m), "float32"))
    assert np.isnan(out["C"][1]).all()
    assert (out["C"][0, 4:] == k).all()
    assert out["C"][2, 3] == k


@pytest.mark.parametrize("target", TARGETS)
def test_every_pair_of_4_bit_floats(target):
    """Each byte is two codes; the product with selecting rows finds both."""
    m, k = 256, 32

    @T.prim_func
    def product(A: T.Tensor((m, k), "float4_e2m1fn"), B: T.Tensor((8, k), "float4_e2m1fn"), C: T.Tensor((m, 8))):
        with T.Kernel(m // 64, threads=128) as bx:
            a, b = T.alloc_shared((64, k), "float4_e2m1fn"), T.alloc_shared((8, k), "float4_e2m1fn")
            c = T.alloc_fragment((64, 8), "float32")
            T.copy(A[bx * 64, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.copy(c, C[bx * 64, 0])

    a, b = np.zeros((m, k), "uint8"), np.zeros((8, k), "uint8")
    a[:, 6], a[:, 7] = np.arange(m) % 16, np.arange(m) // 16
    b[0, 6] = b[1, 7] = 2  # one
    text, out = right(product, codecs.pack4(a), codecs.pack4(b), poisoned((m, 8), "float32"), target=target)
    expected = np.stack([codecs.decode(a[:, n], "float4_e2m1fn") for n in (6, 7)], axis=1)
    np.testing.assert_array_equal(out["C"][:, :2], expected)
    assert "decode_pair_float4_e2m1fn(" in text.text


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(33, 50, 96), (1, 7, 62), (64, 40, 34)])
def test_products_of_4_bit_floats(sizes, target):
    M, N, K = sizes

    @T.prim_func
    def product(A: T.Tensor((M, K), "float4_e2m1fn"), B: T.Tensor((N, K), "float4_e2m1fn"), C: T.Tensor((M, N))):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a, b = T.alloc_shared((32, 64), "float4_e2m1fn"), T.alloc_shared((32, 64), "float4_e2m1fn")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[by * 32, i * 64], a)
                T.copy(B[bx * 32, i * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * 32, bx * 32])

    rng = np.random.default_rng()
    a, b = (rng.integers(0, 16, (n, K)).astype("uint8") for n in (M, N))
    _, out = right(product, codecs.pack4(a), codecs.pack4(b), poisoned((M, N), "float32"), target=target)
    wide = [codecs.decode(x, "float4_e2m1fn").astype("float64") for x in (a, b)]
    np.testing.assert_array_equal(out["C"], wide[0] @ wide[1].T)


SCALES = {
    "tensor": lambda k: (1,), "rows": lambda k: (64,), "blocks": lambda k: (64, k // 64), "long": lambda k: (64, 2),
}  # fmt: skip


@pytest.mark.parametrize("scales", SCALES)
def test_operands_in_device_memory_are_staged_in_parts(scales):
    """Threadgroup memory does not depend on K, nor on the length of blocks."""
    sizes = []
    for k in (512, 2048):
        shape = SCALES[scales](k)

        @T.prim_func
        def scaled(
            A: T.Tensor((64, k), "float8_e4m3fn"), SA: T.Tensor(shape), B: T.Tensor((64, k), "float8_e4m3fn"),
            SB: T.Tensor(shape), C: T.Tensor((64, 64)),
        ):  # fmt: skip
            with T.Kernel(1, threads=128):
                c = T.alloc_fragment((64, 64), "float32")
                T.fp8_scaled_matmul(A, SA, B, SB, c, transpose_B=True)
                T.copy(c, C)

        sizes.append(launch.lowered(scaled, context(TARGETS[0])).facts.shared_bytes)
    assert sizes[0] == sizes[1] <= 2 * 64 * (64 * 2 + 16)
