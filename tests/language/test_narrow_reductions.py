"""Maxima and minima of 8-bit floats, and the hint of reducers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import BadAttribute

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("target", TARGETS)
def test_extremes_of_eight_bits(target: str, dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((9, 33), dtype), B: T.Tensor((9,), dtype), C: T.Tensor((9,), dtype), D: T.Tensor((9,), dtype)):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((9, 33), dtype)
            b, c, d = T.alloc_fragment((9,), dtype), T.alloc_fragment((9,), dtype), T.alloc_fragment((9,), dtype)
            T.copy(A, a)
            T.reduce_max(a, b, dim=1)
            T.reduce_min(a, c, dim=1)
            T.reduce_absmax(a, d, dim=1)
            T.copy(b, B)
            T.copy(c, C)
            T.copy(d, D)

    a = np.random.default_rng(2).normal(0, 30, (9, 33)).astype(DTYPES[dtype].numpy())
    wide = a.astype(np.float32)
    found = compiled(main, target, out_idx=[1, 2, 3])(a)
    for got, want in zip(found, (wide.max(1), wide.min(1), np.abs(wide).max(1)), strict=True):
        np.testing.assert_array_equal(np.asarray(got).view(a.dtype).astype(np.float32), want)


@pytest.mark.parametrize("batch", [0, -1, 1.5])
def test_the_hint_of_reducers_is_checked(batch: Any) -> None:
    with raises_error(BadAttribute, name="batch"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                r = T.alloc_reducer((8,), "float32", "sum")
                T.finalize_reducer(r, batch=batch)
