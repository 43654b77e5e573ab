"""Float-to-integer conversion: towards zero, saturating, and 0 for NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.numerics.codecs import encode
from tile_core.numerics.truncation import limits_of, truncated

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(8)

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")


def edges() -> list[float]:
    """Numbers around the limits of every integer type."""
    found = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 300.0, 1e10, -1e10, 1e30, -1e30, 1e-45]
    found += [math.nan, -math.nan, math.inf, -math.inf]
    for dtype in (*INTEGERS, "int4", "uint4"):
        for limit in limits_of(dtype):
            for kind in (np.float32, np.float64):
                x = kind(limit)
                near = [x, np.nextafter(x, kind(0)), np.nextafter(x, kind(np.inf)), np.nextafter(x, kind(-np.inf))]
                found += [float(v) for v in (*near, x + kind(0.5), x - kind(0.5), x + kind(1), x - kind(1))]
    return found


def numbers(source: str) -> Any:
    rng = np.random.default_rng(DTYPES[source].bits)
    drawn = rng.standard_normal(45) * 10.0 ** rng.integers(-2, 21, 45)
    with np.errstate(all="ignore"):
        return np.array([*edges(), *drawn.tolist()]).astype(DTYPES[source].numpy())


def expected(a: Any, dtype: str) -> Any:
    return np.array([truncated(float(x), dtype) for x in a], DTYPES[dtype].numpy())


def nibbles(stored: Any, dtype: str) -> Any:
    """The numbers of a packed array."""
    stored = np.asarray(stored).view(np.uint8)
    codes = np.stack([stored & 15, stored >> 4], axis=-1).reshape(-1).astype(np.int32)
    return np.where(codes > 7, codes - 16, codes) if dtype == "int4" else codes


def program(count: int, source: str, dtype: str, how: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), source), B: T.Tensor((count,), dtype)):
        with T.Kernel(1, threads=32):
            if how == "copy":
                T.copy(A, B)
            else:
                for i in T.Parallel(count):
                    B[i] = T.cast(A[i], dtype)

    return main


def all_integers(count: int, source: str, how: str) -> Any:
    """One kernel for all integer types: building one takes longer than running it."""

    @T.prim_func
    def main(
        A: T.Tensor((count,), source), B0: T.Tensor((count,), "int8"), B1: T.Tensor((count,), "uint8"),
        B2: T.Tensor((count,), "int16"), B3: T.Tensor((count,), "uint16"), B4: T.Tensor((count,), "int32"),
        B5: T.Tensor((count,), "uint32"), B6: T.Tensor((count,), "int64"), B7: T.Tensor((count,), "uint64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for dtype, B in zip(INTEGERS, (B0, B1, B2, B3, B4, B5, B6, B7), strict=True):
                if how == "copy":
                    T.copy(A, B)
                elif how == "fragment":
                    x, y = T.alloc_fragment((count,), source), T.alloc_fragment((count,), dtype)
                    T.copy(A, x)
                    T.copy(x, y)
                    T.copy(y, B)
                else:
                    for i in T.serial(count) if how == "serial" else T.Parallel(count):
                        B[i] = A[i] if how == "store" else T.cast(A[i], dtype)

    return main


@pytest.mark.parametrize("how", ["copy", "fragment", "serial", "store", "cast"])
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_pair_of_types(target: str, source: str, how: str) -> None:
    if target != "cpu" and (how != "serial" or source not in ("float32", "float64", "bfloat16", "float8_e5m2")):
        pytest.skip("the texts of these are those of the others")
    if source == "float64" and target == "metal":
        pytest.skip("Metal has no float64")
    a = numbers(source)
    found = compiled(all_integers(len(a), source, how), target, out_idx=list(range(1, 9)))(a)
    for dtype, b in zip(INTEGERS, found, strict=True):
        np.testing.assert_array_equal(b, expected(a, dtype), err_msg=f"{source} to {dtype}")


NARROW = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu")


def code_of(value: int, dtype: str) -> int:
    """The code of an integer, rounded once via a sticky last bit in float64."""
    size, shift = abs(value), 0
    while size >= 1 << 50:
        size, shift = size >> 1 | size & 1, shift + 1
    return int(encode(np.array(math.ldexp(-size if value < 0 else size, shift)), dtype))


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", TARGETS)
def test_integers_become_narrow_floats_by_one_rounding(target: str, source: str) -> None:
    info = np.iinfo(source)
    rng = np.random.default_rng(info.bits)
    a = rng.integers(info.min, info.max, 120, dtype=source, endpoint=True) >> rng.integers(0, info.bits, 120, np.uint8)
    ties = [(1 << e) + s * (1 << e) // 32 + d for e in range(5, info.bits - 2) for s in (1, 3, 9) for d in (-1, 0, 1)]
    a = np.array([*a.tolist(), int(info.min), int(info.max), 0, *(x for x in ties if x <= info.max)], source)
    count = len(a)

    @T.prim_func
    def main(
        A: T.Tensor((count,), source), B0: T.Tensor((count,), NARROW[0]), B1: T.Tensor((count,), NARROW[1]),
        B2: T.Tensor((count,), NARROW[2]), B3: T.Tensor((count,), NARROW[3]),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                for B in (B0, B1, B2, B3):
                    B[i] = A[i]

    found = compiled(main, target, out_idx=[1, 2, 3, 4])(a)
    for dtype, codes in zip(NARROW, found, strict=True):
        expected_codes = [code_of(int(v), dtype) for v in a]
        assert np.asarray(codes).view(np.uint8).tolist() == expected_codes, dtype


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("target", TARGETS)
def test_four_bits(target: str, dtype: str) -> None:
    for source in ("float32", "bfloat16", "float8_e5m2"):
        a = numbers(source)
        b = compiled(program(len(a), source, dtype, "copy"), target, out_idx=1)(a)
        wide = np.array([truncated(float(x), dtype) for x in a])
        np.testing.assert_array_equal(nibbles(b, dtype)[: len(a)], wide)


def test_a_source_of_four_bits() -> None:
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = np.concatenate([numbers, -numbers])
    packed = np.arange(0, 16, 2, dtype=np.uint8) | np.arange(1, 16, 2, dtype=np.uint8) << 4
    for dtype in ("int8", "uint8", "int32"):
        b = compiled(program(16, "float4_e2m1fn", dtype, "cast"), "cpu", out_idx=1)(packed)
        np.testing.assert_array_equal(b, expected(numbers, dtype))


@pytest.mark.parametrize("count", [1, 7, 8, 16, 31, 64, 100])
def test_the_length_of_a_loop_does_not_matter(count: int) -> None:
    a = np.resize(np.array([300.0, -5.0, np.nan, np.inf, 255.9, 1e20, -1e20], np.float32), count)
    for dtype in ("uint8", "int32"):
        b = compiled(program(count, "float32", dtype, "cast"), "cpu", out_idx=1)(a)
        np.testing.assert_array_equal(b, expected(a, dtype))


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_constants_and_indices(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), x: T.float32, B: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                C[i] = B[T.cast(A[i], "int32")]  # what is outside reads 0
            B[0] = T.cast(x, "int32")
            B[1] = T.cast(T.infinity("float32"), "int32")
            B[2] = T.cast(-T.infinity("float64"), "int16") if target != "metal" else -32768
            B[3] = T.cast(x * 0.0, "uint8")

    a = np.array([0, 7.9, 8, -0.9, -1, np.nan, np.inf, 3], np.float32)
    b, c = np.arange(1, 9, dtype=np.int32) * 10, np.full(8, -1, np.int32)
    compiled(main, target)(a, math.inf, b, c)
    assert c.tolist() == [10, 80, 0, 10, 0, 10, 0, 40]
    assert b.tolist() == [2**31 - 1, 2**31 - 1, -(2**15), 0, 50, 60, 70, 80]


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_and_gathers_convert_alike(target: str) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((4, 33), "float32"), R: T.Tensor((2,), "int32"), S: T.Tensor((4,), "int8"),
        G: T.Tensor((2, 33), "uint8"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            a, s = T.alloc_fragment((4, 33), "float32"), T.alloc_fragment((4,), "float32")
            T.copy(A, a)
            T.reduce_max(a, s, dim=1)
            for i in T.Parallel(4):
                S[i] = s[i]
            picked = T.alloc_shared((2, 33), "float32")
            T.gather(A, R, picked)
            T.copy(picked, G)

    a = np.linspace(-400, 400, 132).astype(np.float32).reshape(4, 33)
    a[2, 5] = np.nan
    s, g = compiled(main, target, out_idx=[2, 3])(a, np.array([3, 1], np.int32))
    np.testing.assert_array_equal(s, expected(np.nanmax(a, axis=1), "int8"))
    np.testing.assert_array_equal(g, expected(a[[3, 1]].ravel(), "uint8").reshape(2, 33))


def test_what_provably_fits_is_converted_as_it_is() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), H: T.Tensor((64,), "float4_e2m1fn"), B: T.Tensor((5, 64), "int8")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[0, i] = T.cast(T.cast(H[i], "float32") * 20.0, "int8")
                x = T.if_then_else(T.isnan(A[i]), 0.0, T.clamp(A[i], -127.0, 127.0))
                B[2, i] = T.cast(T.max(T.min(A[i], 127.0), -128.0), "int8")
                B[3, i] = T.cast(T.cast(A[i] > 0.0, "float32"), "int8")
                B[4, i] = T.cast(x, "int8")
            for i in T.serial(64):
                B[1, i] = T.cast(T.floor(T.cast(i, "float32") * 1.5), "int8")

    text = tile.compile(main, "cuda:sm_80").source
    assert text.count("__float2int_rz") == 1  # TVM does not see that a test for NaN and the number belong together
