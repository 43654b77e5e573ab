"""Conversions with a named rounding, by search in the list of a type's values."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DTYPES
from tile_core.numerics.codecs import decode
from tile_core.testing.plain.numbers import BITS, Computed, Number, convert, is_float, number
from tile_runtime.numerics.formats import FORMATS

_WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


def rounded(x: Computed, dtype: DTypeLike, mode: Any, saturate: Any, rbits: Computed | None) -> Number:
    """Return a number converted as ``T.cast`` with these arguments does."""
    to, source = str(dtype), number(x)
    word = None if rbits is None else int(number(rbits).value) % 2**32
    if to == "bool" or source.dtype == "bool":
        return convert(source, to)
    value = x if isinstance(x, (int, float)) else source.value
    if to in BITS:
        return _integer(value, source, to, mode, saturate, word)
    if mode not in (None, "rn") and math.isfinite(value) and value:
        value = _neighbour(float(value), to, mode, word)
    if saturate and value == value and abs(value) > _largest(to):
        value = math.copysign(_largest(to), value)
    wide = "float64" if isinstance(value, float) else source.dtype
    return convert(Number(value, wide), to)


def _integer(value: Any, source: Number, to: str, mode: Any, saturate: Any, word: int | None) -> Number:
    if not is_float(source.dtype):
        if saturate:
            bits, signed = BITS[to], to[0] == "i"
            high = (1 << (bits - signed)) - 1
            value = min(max(value, -high - 1 if signed else 0), high)
        return convert(Number(value, source.dtype), to)
    if math.isfinite(value) and mode == "rs":
        low = Fraction(math.floor(abs(value)))
        value = math.copysign(float(_chosen(low, low + 1, Fraction(abs(value)), word)), value)
    elif math.isfinite(value) and mode is not None:
        value = float(_WHOLE[mode](np.float64(value)))
    return convert(Number(value, "float64"), to)


def _neighbour(value: float, to: str, mode: str, word: int | None) -> float:
    """Return the number of a type that a finite number becomes; infinite where that overflows."""
    size = Fraction(abs(value))
    low, high = _around(abs(value), to)
    if mode == "rs":
        found = high if size >= high else _chosen(low, high, size, word)
    else:
        found = high if mode == ("ru" if value > 0 else "rd") and size > low else low
    return math.copysign(math.inf if found > Fraction(_largest(to)) else float(found), value)


def _chosen(low: Fraction, high: Fraction, size: Fraction, word: int | None) -> Fraction:
    """Return one of two neighbours, by the fraction between them and a random word."""
    assert word is not None
    part = math.floor((size - low) / (high - low) * 2**32) if high > low else 0
    return high if part + word >= 2**32 else low


def _around(size: float, to: str) -> tuple[Fraction, Fraction]:
    """Return the neighbours of a positive value: the greatest not above, and the next."""
    if to in ("float32", "float64"):
        kind = np.dtype(to).type
        with np.errstate(over="ignore"):
            near = min(kind(size), np.finfo(kind).max)
        low = near if float(near) <= size else np.nextafter(near, kind(0))
        step = Fraction(float(low)) - Fraction(float(np.nextafter(low, kind(0)))) if low == np.finfo(kind).max else None
        following = Fraction(float(low)) + step if step else Fraction(float(np.nextafter(low, kind(math.inf))))
        return Fraction(float(low)), following
    every = _numbers(to)
    at = bisect_right(every, size)
    if at == 0:  # below the least power of two of e8m0
        return Fraction(every[0]), Fraction(every[0])
    if at == len(every):
        last = Fraction(every[-1])
        return last, 2 * last - Fraction(every[-2]) if DTYPES[to].mantissa else 2 * last
    return Fraction(every[at - 1]), Fraction(every[at])


def _largest(to: str) -> float:
    return float(np.finfo(to).max) if to in ("float32", "float64") else _numbers(to)[-1]


@cache
def _numbers(to: str) -> list[float]:
    """Return all finite numbers of a type that are not negative, in order."""
    form = FORMATS[to]
    codes = np.arange(form.largest + 1)
    if to == "tfloat32":
        return (codes.astype(np.uint32) << 13).view(np.float32).astype(np.float64).tolist()
    assert DTYPES[to].bits <= 16
    return decode(codes, to, "float64").tolist()
