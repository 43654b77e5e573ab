"""Type promotion; see ``values/value.py`` for the rules."""

from __future__ import annotations

import math

from tile_core.dtypes import DTYPES, DType, integer_range, largest
from tile_core.errors.language import ConstantDoesNotFit


def common_type(a: DType, b: DType) -> DType:
    """Return the type in which two values are computed together."""
    if a == b and a.is_computed:
        return a
    if a.is_float or b.is_float:
        floats = [computed(d) for d in (a, b) if d.is_float]
        if len(floats) == 2 and floats[0] != floats[1] and floats[0].bits == floats[1].bits:
            return DTYPES["float32"]
        return max(floats, key=lambda d: d.bits)
    if "bool" in (a, b):
        return b if a == "bool" else a
    bits = max(a.bits, b.bits)
    wide = [d for d in (a, b) if d.bits == bits]
    return next((d for d in wide if d.kind == "uint"), wide[0])


def weak_type(number: object, other: DType) -> DType:
    """Return the type that a Python number takes beside a value of type ``other``."""
    if isinstance(number, bool):
        return DTYPES["bool"]
    if isinstance(number, float) and not other.is_float:
        return DTYPES["float32"]
    if other.is_float:
        return computed(other)
    return DTYPES["int32"] if other == "bool" else other


def computed(dtype: DType) -> DType:
    """Return the type that values of ``dtype`` are computed in."""
    return dtype if dtype.is_computed else DTYPES["float32"]


def float_type(dtype: DType) -> DType:
    """Return the type in which functions of ``dtype`` are computed."""
    return DTYPES["float64" if dtype in ("float64", "int64", "uint64") else "float32"]


def rounded(number: float, dtype: DType) -> float:
    """Return a Python number that fits a float type, rounded to that type.

    So what is printed or folded later is rounded no more.
    """
    from tile_runtime.numerics.literals import round_number

    if not math.isfinite(number):
        return number
    # What rounds to the greatest value may be greater than it.
    top = largest(dtype)
    return round_number(max(-top, min(number, top)), str(dtype))


def check_fits(x: float, dtype: DType) -> None:
    """Refuse a Python number that ``dtype`` cannot hold.

    Raises
    ------
    ConstantDoesNotFit
        For an integer outside the range, a fraction for an integer type, or a finite number that a float type would
        round to infinity. Infinities and NaN fit every float type.
    """
    if dtype == "bool" or isinstance(x, bool):
        return
    if dtype.is_integer:
        low, high = integer_range(dtype)
        if isinstance(x, float) and math.isfinite(x) and x != int(x):
            convert = f"convert it with T.cast({x}, {str(dtype)!r}), which rounds towards zero"
            raise ConstantDoesNotFit(value=x, dtype=dtype, low=low, high=high, kind="whole number", otherwise=convert)
        if not low <= x <= high:  # NaN neither
            raise ConstantDoesNotFit(value=x, dtype=dtype, low=low, high=high)
        return
    top = largest(dtype)
    if isinstance(x, float) and not math.isfinite(x):
        return
    # Half an ulp above the greatest value still rounds to it.
    if abs(x) > top * (1 + 2.0 ** -(dtype.mantissa + 2)):
        raise ConstantDoesNotFit(value=x, dtype=dtype, low=-top, high=top)
