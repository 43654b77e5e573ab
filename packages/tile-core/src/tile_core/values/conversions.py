"""Conversions by value and by bits, and the limits of types."""

from __future__ import annotations

import math as _math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DType, integer_range, largest
from tile_core.dtypes import dtype as to_dtype
from tile_core.values import scalar
from tile_core.values.checks import argument
from tile_core.values.constants import constant
from tile_core.values.promotion import computed
from tile_core.values.roundings import cast_as_named
from tile_core.values.scalar import Scalar, is_python
from tile_core.values.value import Buffer, Value, as_value, derive, elementwise


@elementwise
def cast(
    value: Scalar, dtype: DTypeLike, round: str | None = None, sat: bool | None = None, rbits: Scalar | None = None
) -> Value:
    """Return ``value`` as ``dtype``: rounded to nearest even; integers wrap.

    A float becomes the nearest integer of the type towards zero, NaN becomes 0, for Python's floats too.

    Parameters
    ----------
    round
        ``"rn"`` to nearest, ties to even; ``"rz"`` towards zero; ``"ru"`` up; ``"rd"`` down; ``"rs"`` up or down at
        random, by ``rbits``: the magnitude is rounded up with the probability of the fraction that is dropped. By
        default towards zero to integers, to nearest to floats.
    sat
        Whether values that are too large, infinities too, become the largest number of the type, and integers its
        limits. NaN stays NaN. Floats always saturate in integers.
    rbits
        For ``"rs"`` an integer of 32 random bits, such as ``T.philox(seed, i)[0]``.

    Raises
    ------
    BadArgument
        For an unknown mode; ``"rs"`` without ``rbits`` or of a Python number; a mode between integers; one but
        ``"rn"`` from integers of more than 16 bits to floats; ``sat=False`` from a float to an integer.
    """
    element = to_dtype(dtype)
    if round is not None or sat is not None or rbits is not None:
        return cast_as_named(value, element, round, sat, rbits)
    if isinstance(value, float) and element.is_integer:
        value = _truncated(value, element)
    if is_python(value):
        return constant(bool(value) if element == "bool" else value, element)
    return scalar.cast(value, element)


def _truncated(value: float, element: DType) -> int:
    if _math.isnan(value):
        return 0
    low, high = integer_range(element)
    return low if value <= low else high if value >= high else _math.trunc(value)


@elementwise
def reinterpret(value: Scalar | DTypeLike, dtype: DTypeLike | Scalar) -> Value:
    """Return the bits of ``value`` as ``dtype`` of equal width.

    ``reinterpret(dtype, value)`` works too.

    Raises
    ------
    BadArgument
        If the widths differ, or one of them is ``bool``.
    """
    if isinstance(value, (str, type)) or (
        isinstance(dtype, (Value, Buffer)) and not isinstance(value, (Value, Buffer))
    ):
        value, dtype = dtype, value
    source, element = as_value(value), to_dtype(dtype)
    if source.dtype != element and "bool" in (source.dtype, element):
        name, expected = ("value" if source.dtype == "bool" else "dtype"), "numbers: which bits a true bool has is open"
        raise argument("reinterpret", name, "bool", expected, "cast instead: to 0 or 1, or to whether x is not 0")
    if source.dtype.bits != element.bits:
        found, expected = f"{element} ({element.bits} bits)", f"{source.dtype.bits} bits, as {source.dtype} has"
        raise argument("reinterpret", "dtype", found, expected, "cast instead, or use T.view for buffers")
    if source.dtype == element:
        return source
    return derive(tirx.reinterpret(element.container, source.expr), element, source)


def infinity(dtype: DTypeLike) -> Value:
    """Return the infinity of a float type."""
    element = to_dtype(dtype)
    if not element.is_float or (element.is_narrow and element != "float8_e5m2"):
        raise argument("infinity", "dtype", repr(str(element)), "a type with infinities", "use T.max_value(dtype)")
    return as_value(_math.inf, computed(element))


def max_value(dtype: DTypeLike) -> Value:
    """Return the greatest finite value of a type."""
    element = to_dtype(dtype)
    if element == "bool":
        return as_value(True)
    return as_value(integer_range(element)[1] if element.is_integer else largest(element), computed(element))


def min_value(dtype: DTypeLike) -> Value:
    """Return the least finite value of a type: for floats the largest negative one."""
    element = to_dtype(dtype)
    if element == "bool":
        return as_value(False)
    return as_value(integer_range(element)[0] if element.is_integer else -largest(element), computed(element))
