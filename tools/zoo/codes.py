"""Kernels that decode and encode every code of an 8-bit float."""

# Annotations of kernels are shapes and names of element types, no types.
# ruff: noqa: ANN202
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import numpy as np

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.numerics import codecs

from .case import Case, Wanted, poisoned

FORMATS = tuple(name for name, d in DTYPES.items() if d.is_narrow and d.bits == 8)


class Same(Wanted):
    """Equal numbers, zeros of one sign, and NaN where NaN is expected."""

    def error(self, got: Any) -> float:
        """Return 0, or infinity if any element differs."""
        got, expected = np.asarray(got), np.asarray(self.expected)
        both = np.isnan(got) & np.isnan(expected)
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))
        return 0.0 if bool(np.all(same | both)) else float("inf")


def decode_case(fmt: str) -> Case:
    """Return the values of all 256 codes; NaN has no sign."""

    @T.prim_func
    def decode(X: T.Tensor((256,), fmt), Y: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = T.cast(X[bx * 128 + i], "float32")

    codes = np.arange(256, dtype="uint8")
    expected = codecs.decode(codes, fmt).astype("float32")
    return Case(decode, (codes.view(T.dtype(fmt).numpy()), poisoned((256,), "float32")), (Same(1, expected, 0.0),))


def encode_case(fmt: str) -> Case:
    """Return codes of a format's values, of midpoints, and of their surroundings."""
    numbers = codecs.decode(np.arange(256, dtype="uint8"), fmt).astype("float32")
    finite = np.unique(numbers[np.isfinite(numbers)])
    half = finite[:-1] / 2 + finite[1:] / 2
    around = np.nextafter(half, np.float32(-np.inf)), half, np.nextafter(half, np.float32(np.inf))
    largest = np.float32([finite.max() * 1.01, finite.max() * 1.5, np.inf, -np.inf, np.nan, 0.0, -0.0])
    values = np.concatenate([finite, *around, largest]).astype("float32")
    values = np.pad(values, (0, -len(values) % 128))
    count = len(values)

    @T.prim_func
    def encode(X: T.Tensor((count,), "float32"), Y: T.Tensor((count,), fmt)):
        with T.Kernel(count // 128, threads=128) as bx:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = T.cast(X[bx * 128 + i], fmt)

    expected = codecs.encode(values, fmt)
    stored = poisoned((count,), "uint8").view(T.dtype(fmt).numpy())
    return Case(encode, (values, stored), (Codes(1, expected, 0.0, fmt),))


class Codes(Wanted):
    """Equal codes; of NaN any that the format has."""

    def error(self, got: Any) -> float:
        """Return 0, or infinity if any element differs."""
        got, expected = np.asarray(got).view("uint8"), np.asarray(self.expected)
        both = np.isnan(codecs.decode(got, self.scale)) & np.isnan(codecs.decode(expected, self.scale))
        return 0.0 if bool(np.all((got == expected) | both)) else float("inf")
