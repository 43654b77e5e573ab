"""Conversions of 8-bit floats in the text: by instruction if available, same values everywhere."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.numerics import codecs
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

KINDS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


def conversion(n: int, source: str, target: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), source), B: T.Tensor((n,), target)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = T.cast(A[i], target)

    return main


def numpy_type(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def run(a: np.ndarray, source: str, target: str, arch: str) -> np.ndarray:
    out = np.full(a.size * numpy_type(target).itemsize, 0xA5, np.uint8).view(numpy_type(target))
    tile.compile(conversion(a.size, source, target), target=f"cuda:{arch}", runtime="emulator")(a, out)
    return out


def text_of(source: str, target: str, arch: str) -> str:
    plan = lower(conversion(64, source, target), make_context(f"cuda:{arch}"), installed())
    return str(plan.lowered.text)


def hard(dtype: str) -> np.ndarray:
    """Return all values of a format, midpoints, their neighbours, and values out of range."""
    finite = np.arange(128, dtype=np.uint8).view(numpy_type(dtype)).astype(np.float32)
    finite = np.sort(finite[np.isfinite(finite)])
    top = np.float32(2 * finite[-1] - finite[-2])  # where the next number would be
    ladder = np.append(finite, top)
    middle = ((ladder[:-1].astype(np.float64) + ladder[1:]) / 2).astype(np.float32)
    near = np.concatenate([ladder, middle])
    near = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))])
    more = np.array([np.inf, np.nan, 1e-45, 1e-38, 3e38, 1e5, 65504, 470, 512], np.float32)
    every = np.concatenate([near, more])
    return np.concatenate([every, -every])


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", list(KINDS))
@pytest.mark.parametrize("target", ["float32", "float16"])
def test_every_code(dtype: str, target: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    found = run(codes.view(numpy_type(dtype)), dtype, target, "sm_89")
    expected = codecs.decode(codes, dtype, "float32").astype(target)
    np.testing.assert_array_equal(found, expected)
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(expected[real]))


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", list(KINDS))
@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_hard_numbers(dtype: str, arch: str) -> None:
    values = hard(dtype)
    found = run(values, "float32", dtype, arch).view(np.uint8)
    np.testing.assert_array_equal(found, codecs.encode(values, dtype))


@pytest.mark.parametrize("dtype", list(KINDS))
def test_instructions_are_used_where_they_are(dtype: str) -> None:
    kind = KINDS[dtype]
    assert f"cvt.rn.f16x2.{kind}x2" in text_of(dtype, "float32", "sm_89")
    assert f"cvt.rn.satfinite.{kind}x2.f32" in text_of("float32", dtype, "sm_90a")
    assert "x2 %0" not in text_of(dtype, "float32", "sm_80")
    assert "cvt.rn.f16x2" not in text_of("float8_e4m3fnuz", "float32", "sm_90a")
