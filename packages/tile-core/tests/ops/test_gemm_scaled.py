"""Test ``T.gemm_scaled``: every code of every format and scale, and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import BadElementType, GemmShape, GemmTypes, ScaleShape
from tile_core.numerics import codecs
from tile_core.ops.gemm_scaled import ELEMENTS, SCALES


def outer(a: str, b: str, scale: str, m: int, n: int, k: int, blocks: int) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), a), P: T.Tensor((m, blocks), scale), B: T.Tensor((n, k), b),
        Q: T.Tensor((n, blocks), scale), C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            c = T.alloc_fragment((m, n), "float32")
            T.gemm_scaled(A, P, B, Q, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    return kernel


def codes(dtype: str, count: int) -> np.ndarray:
    """Return all codes, one for each row of two equal elements."""
    column = (np.arange(count) % (16 if dtype == "float4_e2m1fn" else 256)).astype(np.uint8)
    pairs = np.repeat(column[:, None], 2, axis=1)
    return codecs.pack4(pairs) if dtype == "float4_e2m1fn" else pairs


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(ELEMENTS, 2)))
def test_every_pair_of_codes(a: str, b: str) -> None:
    one = np.full((256, 1), codecs.encode(np.ones(1), SCALES[0])[0])
    c = np.zeros((256, 256), np.float32)
    tile.compile(outer(a, b, SCALES[0], 256, 256, 2, 1), target="cpu")(codes(a, 256), one, codes(b, 256), one, c)
    x, y = (
        codecs.decode((np.arange(256) % (16 if d == "float4_e2m1fn" else 256)).astype(np.uint8), d).astype(np.float64)
        for d in (a, b)
    )
    with np.errstate(all="ignore"):
        want = (2 * x[:, None] * y[None] + 0.0).astype(np.float32)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_of_an_ordinary_size(scale: str) -> None:
    """A scale is a magnitude; NaN makes its row NaN; those that a float32 product holds are exact."""
    every = np.arange(256, dtype=np.uint8)[:, None]
    a, b = codes("float8_e4m3fn", 1) * 0 + 0x38, codes("float8_e4m3fn", 1) * 0 + 0x38
    c = np.zeros((256, 1), np.float32)
    one = codecs.encode(np.ones((1, 1)), scale)
    left = np.repeat(a, 256, axis=0)
    tile.compile(outer("float8_e4m3fn", "float8_e4m3fn", scale, 256, 1, 2, 1), target="cpu")(left, every, b, one, c)
    with np.errstate(all="ignore"):
        want = (2 * np.abs(codecs.decode(every, scale).astype(np.float64))).astype(np.float32)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize(("dtype", "code"), [("float8_e4m3fn", 0x01), ("float8_e5m2", 0x01), ("float8_e5m2", 0x78)])
def test_every_pair_of_powers_of_two(dtype: str, code: int) -> None:
    """Their product may leave float32 though the result does not: 2^127 by 2^9, and 2^-127 by 2^-25."""
    every, element = np.arange(256, dtype=np.uint8)[:, None], np.full((256, 2), code, np.uint8)
    c = np.zeros((256, 256), np.float32)
    tile.compile(outer(dtype, dtype, SCALES[0], 256, 256, 2, 1), target="cpu")(element, every, element, every, c)
    x = float(codecs.decode(np.array([code], np.uint8), dtype)[0])
    powers = codecs.decode(every, SCALES[0]).astype(np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(c, (2 * x * x * powers * powers.T).astype(np.float32))


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("p", "q", "shift"), [(120, 10, -9), (-120, -40, 14), (110, -100, 0)])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_100a"])
def test_targets_agree_on_products_of_scales_that_no_float32_holds(p: int, q: int, shift: int, target: str) -> None:
    rng = np.random.default_rng([p & 255, shift & 255])
    a, b = (codecs.encode(rng.integers(-3, 4, (n, 128)) * 2.0**shift, "float8_e5m2") for n in (128, 32))
    scales = (np.full((n, 4), 2.0**power) for n, power in ((128, p), (32, q)))
    left, right = (codecs.encode(x, SCALES[0]) for x in scales)

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 128), "float8_e5m2"), P: T.Tensor((128, 4), SCALES[0]),
        B: T.Tensor((32, 128), "float8_e5m2"), Q: T.Tensor((32, 4), SCALES[0]), C: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            s, t = T.alloc_shared((128, 128), "float8_e5m2"), T.alloc_shared((32, 128), "float8_e5m2")
            u, v = T.alloc_shared((128, 4), SCALES[0]), T.alloc_shared((32, 4), SCALES[0])
            c = T.alloc_fragment((128, 32), "float32")
            T.copy(A, s)
            T.copy(B, t)
            T.copy(P, u)
            T.copy(Q, v)
            T.gemm_scaled(s, u, t, v, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    c = np.zeros((128, 32), np.float32)
    how = {} if target == "cpu" else {"runtime": "emulator"}
    tile.compile(kernel, target=target, **how)(a, left, b, right, c)
    x, y = (codecs.decode(m, "float8_e5m2").astype(np.float64) for m in (a, b))
    np.testing.assert_array_equal(c, x @ y.T * 2.0 ** (p + q))


def refused(change: dict[str, Any]) -> Any:
    given = {"a": "float8_e4m3fn", "p": (16, 2), "scale": SCALES[0], "q": (16, 2), "c": "float32", "k": 64} | change

    @T.prim_func
    def kernel(X: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((16, given["k"]), given["a"]), T.alloc_shared((16, 64), "float8_e4m3fn")
            p, q = T.alloc_shared(given["p"], given["scale"]), T.alloc_shared(given["q"], SCALES[0])
            T.gemm_scaled(a, p, b, q, T.alloc_fragment((16, 16), given["c"]), transpose_B=True)

    return kernel


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"a": "float16"}, BadElementType, "float8_e4m3fn"), ({"scale": "float32"}, BadElementType, "float8_e8m0fnu"),
        ({"scale": SCALES[1]}, BadElementType, "legal: float8_e4m3fn"), ({"c": "int32"}, GemmTypes, "float32"),
        ({"k": 32}, GemmShape, "K of B"), ({"p": (8, 2)}, ScaleShape, "(16, K / block) with K = 64, such as (16, 2)"),
        ({"p": (16, 3)}, ScaleShape, "such as (16, 2)"), ({"p": (2, 16)}, ScaleShape, "(16, K / block)"),
        ({"q": (16, 4)}, ScaleShape, "blocks of one length, such as 32"),
    ],
)  # fmt: skip
def test_refusals_name_the_nearest_legal_value(change: dict[str, Any], error: type, said: str) -> None:
    with pytest.raises(error) as found:
        tile.compile(refused(change), target="cpu")
    if said.startswith("legal") or error is BadElementType:
        assert "gemm_scaled" in str(found.value)
    else:
        assert said in str(found.value)


def test_reads_outside_of_scales_change_nothing() -> None:
    """A read outside of powers of two gives the least of them, in copies of every kind."""

    @T.prim_func
    def kernel(P: T.Tensor((3, 5), "float8_e8m0fnu"), C: T.Tensor((8, 8), "float8_e8m0fnu")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8, 8), "float8_e8m0fnu")
            T.copy(P[0, 0], s)
            T.copy(s, C)

    found = np.asarray(tile.compile(kernel, target="cpu", out_idx=-1)(np.full((3, 5), 127, np.uint8))).view(np.uint8)
    assert (found[:3, :5] == 127).all()
    assert (found[3:] == 0).all()
