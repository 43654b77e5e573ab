"""Operands of 8-bit floats: decoded once, on their way to threadgroup memory."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from zoo import launch
from zoo.case import Case, poisoned

import tile_core.language as T
import tile_emulator
from tile_core.numerics import codecs
from tile_metal.emulation import dialect

from .kit import TARGETS, context, right, text

FORMATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def product(m, n, k, fmt, tile=(32, 32, 32), stages=2, stored="", safe=None):
    """Return A times the transpose of B; ``stored`` is the type of the tensors, whose tiles are viewed as ``fmt``."""
    (tile_m, tile_n, tile_k), held = tile, stored or fmt

    @T.prim_func
    def product(A: T.Tensor((m, k), held), B: T.Tensor((n, k), held), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=128) as (bx, by):
            a = T.alloc_shared((tile_m, tile_k), held)
            b = T.alloc_shared((tile_n, tile_k), held)
            c = T.alloc_fragment((tile_m, tile_n), "float32")
            if safe is not None:
                T.annotate_safe_value({A: safe})
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, tile_k), num_stages=stages):
                T.copy(A[by * tile_m, i * tile_k], a)
                T.copy(B[bx * tile_n, i * tile_k], b)
                if stored:
                    T.gemm(T.view(a, dtype=fmt), T.view(b, dtype=fmt), c, transpose_B=True)
                else:
                    T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * tile_m, bx * tile_n])

    return product


def every_code():
    """Return rows with one code each, and what selects them."""
    a, b = np.zeros((256, 24), "uint8"), np.zeros((8, 24), "uint8")
    a[:, 3] = np.arange(256)
    return a, b


@pytest.mark.sweep(4)
@pytest.mark.parametrize("flags", [(), ("-include", "flush.h")], ids=["", "flushed"])
@pytest.mark.parametrize("stored", ["", "uint8"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_code_keeps_its_value(fmt, target, stored, flags, tmp_path):
    """Also subnormal ones, infinities and NaN, and where subnormal numbers of other types are zeros."""
    (tmp_path / "flush.h").write_text(
        "#include <xmmintrin.h>\n__attribute__((constructor)) static void f() { _mm_setcsr(_mm_getcsr() | 0x8040); }\n"
    )
    a, b = every_code()
    b[:, 3] = codecs.encode(np.float32([1]), fmt)
    numpy = "uint8" if stored else T.dtype(fmt).numpy()
    case = Case(
        product(256, 8, 24, fmt, stored=stored), (a.view(numpy), b.view(numpy), poisoned((256, 8), "float32")), ()
    )
    found, own = launch.text_for(case, context(target)), dialect(context(target).target)
    flags = tuple(str(tmp_path / x) if x.endswith(".h") else x for x in flags)
    result = tile_emulator.run(
        found.text, found.facts, launch.values_of(case, found), dataclasses.replace(own, flags=(*own.flags, *flags))
    )
    assert result.ok, "\n".join(map(str, result.reports))
    expected = codecs.decode(np.arange(256, dtype="uint8"), fmt).astype("float32")[:, None]
    np.testing.assert_array_equal(result.outputs["C"], np.broadcast_to(expected, (256, 8)))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (37, 70, 131), (67, 31, 33), (64, 64, 128)])
@pytest.mark.parametrize("stored", ["", "uint8"])
@pytest.mark.parametrize("stages", [0, 1, 3])
@pytest.mark.parametrize("target", TARGETS)
def test_products_of_awkward_sizes_are_right(target, stages, stored, sizes):
    m, n, k = sizes
    rng = np.random.default_rng(m + k)
    numpy = T.dtype("float8_e4m3fn").numpy()
    a, b = (rng.integers(-3, 4, shape).astype(numpy) for shape in ((m, k), (n, k)))
    given = [x.view("uint8") if stored else x for x in (a, b)]
    program = product(m, n, k, "float8_e4m3fn", stages=stages, stored=stored)
    _, out = right(program, *given, poisoned((m, n), "float32"), target=target)
    np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64").T)


def converted(found):
    """Whether a text's tiles in threadgroup memory are of a 16-bit type."""
    return bool(re.search(r"threadgroup (half|bfloat)\* const [ab] ", found.text))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("stored", ["", "uint8"])
def test_tiles_keep_padding_and_prefetch(stored):
    """Registers hold codes in flight; rows of threadgroup memory are apart by 16 bytes more."""
    found = text(product(128, 128, 128, "float8_e4m3fn", (64, 64, 32), stored=stored))
    assert converted(found)
    assert "uchar a_ahead[16]" in found.text
    assert found.facts.shared_bytes == 2 * 64 * (32 + 8) * 2
    loop = found.text[found.text.index("k_step = 0") :]
    assert "decode" not in loop
    assert found.text.count("decode_pair_float8_e4m3fn(a_ahead_pairs") == 1


@pytest.mark.sweep(1)
@pytest.mark.parametrize("how", [{"tile": (128, 128, 96)}, {"safe": 1.0}], ids=["too much memory", "another fill"])
def test_tiles_remain_codes(how):
    found = text(product(256, 256, 192, "float8_e4m3fn", stages=0, **how))
    assert "threadgroup uchar* const a " in found.text


@pytest.mark.sweep(1)
@pytest.mark.parametrize("reader", ["loop", "copy", "two views"])
def test_tiles_that_others_read_remain_codes(reader):
    @T.prim_func
    def product(
        A: T.Tensor((32, 32), "uint8"),
        B: T.Tensor((32, 32), "uint8"),
        C: T.Tensor((32, 32), "float32"),
        D: T.Tensor((32, 32), "uint8"),
    ):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((32, 32), "uint8"), T.alloc_shared((32, 32), "uint8")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(T.view(a, dtype="float8_e4m3fn"), T.view(b, dtype="float8_e4m3fn"), c)
            if reader == "two views":
                T.gemm(T.view(a, dtype="float8_e5m2"), T.view(b, dtype="float8_e4m3fn"), c)
            T.copy(c, C)
            if reader == "copy":
                T.copy(a, D)
            else:
                for i, j in T.Parallel(32, 32):
                    D[i, j] = a[j, i] if reader == "loop" else T.cast(7, "uint8")

    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 120, (32, 32)).astype("uint8") for _ in range(2))
    found, out = right(product, a, b, poisoned((32, 32), "float32"), poisoned((32, 32), "uint8"))
    wide_a, wide_b = (codecs.decode(x, "float8_e4m3fn").astype("float64") for x in (a, b))
    wide_a = wide_a + (codecs.decode(a, "float8_e5m2").astype("float64") if reader == "two views" else 0)
    np.testing.assert_allclose(out["C"], wide_a @ wide_b, rtol=1e-5)
    expected = {"loop": a.T, "copy": a}.get(reader, np.full_like(a, 7))
    np.testing.assert_array_equal(out["D"], expected)
    assert "threadgroup uchar* const a " in found.text
