"""Named roundings: equal bits everywhere, for tiles and elements, and unbiased."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.codecs import decode
from tile_runtime.numerics.formats import FORMATS

from .targets import TARGETS, compiled

NARROW = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "bfloat16")


def program(count: int, source: str, dtype: str, mode: str | None, sat: bool | None) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), source), R: T.Tensor((count,), "uint32"), B: T.Tensor((count,), dtype)):
        with T.Kernel(T.ceildiv(count, 512), threads=64) as bx:
            for t in T.Parallel(512):
                i = bx * 512 + t
                B[i] = T.cast(A[i], dtype, round=mode, sat=sat, rbits=R[i] if mode == "rs" else None)

    return main


def neighbours(dtype: str) -> Any:
    """All finite numbers of a type in order."""
    form = FORMATS[dtype]
    positive = decode(np.arange(form.largest + 1), dtype, "float64")
    return np.unique(np.concatenate([-positive, positive]))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("target", TARGETS)
def test_every_float16_goes_in_the_named_direction(target: str, dtype: str) -> None:
    """All 16-bit codes, against a search in the result type's sorted values."""
    a = np.arange(2**16, dtype=np.uint16).view(np.float16)
    a = a[np.isfinite(a)]
    every = neighbours(dtype)
    inside = (a >= every[0]) & (a <= every[-1])
    wide = a.astype(np.float64)
    down = every[np.clip(np.searchsorted(every, wide, side="right") - 1, 0, None)]
    up = every[np.clip(np.searchsorted(every, wide), None, len(every) - 1)]
    words = np.zeros(len(a), np.uint32)
    expected = {"rd": down, "ru": up, "rz": np.where(wide < 0, up, down)}
    for mode, want in expected.items():
        b = compiled(program(len(a), "float16", dtype, mode, None), target, out_idx=2)(a, words)
        found = np.asarray(b).astype(np.float64)
        np.testing.assert_array_equal(found[inside], want[inside])
        cut = {"rd": wide > every[-1], "ru": wide < every[0], "rz": ~inside}[mode]
        np.testing.assert_array_equal(found[cut], np.sign(wide[cut]) * every[-1])
        assert not np.isfinite(found[~inside & ~cut]).any()


def test_zeros_keep_their_sign_and_no_word_moves_what_is_exact() -> None:
    a = np.array([0.0, -0.0, 1.5, -448.0, 0.001953125], np.float32)
    for word in (0, 2**31, 2**32 - 1):
        words = np.full(len(a), word, np.uint32)
        b = compiled(program(len(a), "float32", "float8_e4m3fn", "rs", None), "cpu", out_idx=2)(a, words)
        np.testing.assert_array_equal(b.astype(np.float32), a)
        assert np.signbit(b.astype(np.float32)).tolist() == np.signbit(a).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float8_e5m2", "int8"])
def test_the_mean_of_random_roundings_is_the_number(dtype: str) -> None:
    """With equidistant words the fraction rounded up is exact, to one over their count."""
    count = 4096
    words = (np.arange(count, dtype=np.uint64) * 2**32 // count).astype(np.uint32)
    kernel = compiled(program(count, "float32", dtype, "rs", None), "cpu", out_idx=2)
    for x in (1.003, -1.37, 100.6, *([2.0**-15 * 1.1] if dtype != "int8" else [])):
        b = np.asarray(kernel(np.full(count, x, np.float32), words)).astype(np.float64)
        low, high = b.min(), b.max()
        assert low <= np.float32(x) <= high
        assert len(np.unique(b)) <= 2
        assert abs(b.mean() - np.float32(x)) <= (high - low) / count


def test_saturation_is_of_infinities_too_and_leaves_nan() -> None:
    a = np.array([np.inf, -np.inf, np.nan, 1e9, -1e9, 3.0], np.float32)
    words = np.zeros(len(a), np.uint32)
    for mode in (None, "rn", "rz", "ru", "rs"):
        b = compiled(program(len(a), "float32", "float8_e5m2", mode, True), "cpu", out_idx=2)(a, words)
        np.testing.assert_array_equal(b.astype(np.float32), [57344, -57344, np.nan, 57344, -57344, 3])
    wide = compiled(program(len(a), "float32", "float64", None, True), "cpu", out_idx=2)(a, words)
    largest = np.finfo(np.float64).max
    np.testing.assert_array_equal(wide, [largest, -largest, np.nan, np.float32(1e9), np.float32(-1e9), 3])


def test_tiles_are_converted_as_their_elements_are() -> None:
    def kernel(whole: bool) -> Any:
        @T.prim_func
        def main(A: T.Tensor((8, 40), "float32"), R: T.Tensor((8, 40), "uint32"), B: T.Tensor((8, 40), "bfloat16")):
            with T.Kernel(1, threads=64):
                a, r = T.alloc_fragment((8, 40), "float32"), T.alloc_fragment((8, 40), "uint32")
                T.copy(A, a)
                T.copy(R, r)
                b = T.alloc_fragment((8, 40), "bfloat16")
                if whole:
                    b[...] = T.cast(T.round(a, "ru") / 3, "bfloat16", round="rs", rbits=r)
                else:
                    for i, j in T.Parallel(8, 40):
                        b[i, j] = T.cast(T.round(a[i, j], "ru") / 3, "bfloat16", round="rs", rbits=r[i, j])
                T.copy(b, B)

        return main

    texts = [tile.compile(kernel(whole), "cuda:sm_80", runtime="emulator").source for whole in (True, False)]
    assert texts[0] == texts[1]
    rng = np.random.default_rng(3)
    a, r = (rng.standard_normal((8, 40)) * 9).astype(np.float32), rng.integers(0, 2**32, (8, 40)).astype(np.uint32)
    found = [compiled(kernel(whole), "cpu", out_idx=2) for whole in (True, False)]
    np.testing.assert_array_equal(found[0](a, r), found[1](a, r))
    found[0].verify(a, r)


def test_what_one_mode_says_about_another() -> None:
    with pytest.raises(tile.errors.KernelError, match="'rd' rounds down") as caught:
        program(8, "float32", "float16", "rm", None)
    assert caught.value.code == "K128"
