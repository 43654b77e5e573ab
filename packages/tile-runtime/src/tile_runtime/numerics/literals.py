"""Python numbers rounded once to what a format holds: exact arithmetic, without TVM."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from tile_runtime.dtypes import DTYPES, largest
from tile_runtime.numerics.formats import EVERY

__all__ = ["round_number"]


def round_number(number: float, dtype: str, mode: str = "rn") -> float:
    """Round a Python number once to a format, in one of four directions.

    They are to nearest, towards zero, up and down, as on a target.
    """
    form = EVERY[dtype]
    if not math.isfinite(number) or number == 0:
        return float(number)
    if mode == "rn":
        return _nearest(number, dtype)
    size = Fraction(abs(number))
    lowest = -form.bias if not form.signed else 1 - form.bias
    exponent = max(math.frexp(abs(number))[1] - 1, lowest)
    unit = Fraction(2) ** (exponent - form.mantissa)
    away = mode == ("ru" if number > 0 else "rd")
    rounded = (math.ceil(size / unit) if away else math.floor(size / unit)) * unit
    if not form.signed:
        rounded = max(rounded, unit)
    if rounded > Fraction(largest(DTYPES[dtype])):
        return math.copysign(math.inf if away else largest(DTYPES[dtype]), number)
    return math.copysign(float(rounded), number)


def _nearest(number: float, dtype: str) -> float:
    exact = float(number)
    if exact != number and not struct.unpack("<Q", struct.pack("<d", exact))[0] & 1 and dtype != "float64":
        # Of the two neighbours of an integer of many bits the odd one, from which one rounding is right.
        exact = math.nextafter(exact, math.inf if number > exact else -math.inf)
    if dtype == "float64":
        return exact
    if dtype == "float32":
        return float(struct.unpack("<f", struct.pack("<f", exact))[0])
    from tile_runtime.numerics.codecs import round_to

    return float(round_to(exact, dtype))
