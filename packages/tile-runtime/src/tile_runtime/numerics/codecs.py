"""NumPy conversion between codes and values of the low-precision types, by integer arithmetic.

The rules for ties, overflow, infinities and NaN are on the page ``tile_core.numerics.rules``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tile_runtime.dtype_table import Format
from tile_runtime.numerics.formats import FORMATS, WIDE

__all__ = ["decode", "encode", "pack4", "round_to", "unpack4"]

Array = npt.NDArray[Any]


def decode(codes: npt.ArrayLike, dtype: str, to: str = "float32") -> Array:
    """Values of ``codes``.

    Parameters
    ----------
    codes
        Integer array of any shape; only the low bits that a code has are read. A float16 array of ml_dtypes or NumPy is
        not a code: view it as uint16 first.
    dtype
        One of ``FORMATS``, or ``"int4"`` / ``"uint4"`` (nibbles).
    to
        ``"float32"`` (exact for all of them) or ``"float64"``; integers come back as int8 / uint8 and ignore it.
    """
    raw = np.asarray(codes).astype(np.int64)
    if dtype in ("int4", "uint4"):
        nibble = raw & 15
        return ((nibble ^ 8) - 8).astype(np.int8) if dtype == "int4" else nibble.astype(np.uint8)
    form = FORMATS[dtype]
    if not form.signed:
        exact = np.where((raw & 0xFF) == form.nan, np.nan, np.ldexp(1.0, (raw & 0xFF) - form.bias))
        return exact.astype(to)
    magnitude = raw & (form.sign - 1)
    negative = (raw & form.sign) != 0
    field = magnitude >> form.mantissa
    fraction = magnitude & ((1 << form.mantissa) - 1)
    subnormal = field == 0
    significand = np.where(subnormal, fraction, fraction + (1 << form.mantissa)).astype(np.float64)
    power = np.where(subnormal, 1, field) - form.bias - form.mantissa
    value = np.ldexp(significand, power)
    if form.unsigned_zero:
        value = np.where(negative & (magnitude == 0), np.nan, value)
    elif form.has_nan:
        value = np.where(magnitude > form.largest, np.nan, value)
        if form.has_infinity:
            value = np.where(magnitude == form.infinity, np.inf, value)
    return np.where(negative, -value, value).astype(to)


def encode(values: npt.ArrayLike, dtype: str, saturate: bool = False) -> Array:
    """Codes of ``values``, rounded once to nearest even.

    Parameters
    ----------
    values
        float32 or float64 array (anything else is converted to float64 first, which is exact below 2^53).
    dtype
        One of ``FORMATS``, or ``"int4"`` / ``"uint4"`` (integers, wrapped to their low nibble).
    saturate
        Clamp finite overflow to the largest finite value.

    Returns
    -------
    ndarray
        Same shape; uint8, uint16 for the 16-bit types, uint32 for tfloat32 (the bits of the rounded float32).
    """
    if dtype in ("int4", "uint4"):
        return (np.asarray(values).astype(np.int64) & 15).astype(np.uint8)
    form = FORMATS[dtype]
    with np.errstate(invalid="ignore"):  # widening a signalling NaN warns
        exact = np.asarray(values).astype(np.float64)  # float32 to float64 is exact: no rounding happens here
    bits = exact.view(np.uint64) if exact.ndim else exact.reshape(1).view(np.uint64).reshape(())
    size = (bits & np.uint64((1 << 63) - 1)).astype(np.int64)
    negative = (bits >> np.uint64(63)) != 0
    code = (_encode_signed if form.signed else _encode_powers)(size, negative, form, saturate)
    if form.bits > 16:
        return (code << (32 - form.bits)).astype(np.uint32)
    return code.astype(np.uint8 if form.bits <= 8 else np.uint16)


def round_to(values: npt.ArrayLike, dtype: str, saturate: bool = False) -> Array:
    """Return ``values`` rounded to ``dtype`` and widened to float32, as by two casts."""
    codes = encode(values, dtype, saturate)
    return codes.view(np.float32) if FORMATS[dtype].bits > 16 else decode(codes, dtype)


def pack4(nibbles: npt.ArrayLike) -> Array:
    """Pack 4-bit codes in pairs along the last axis, low nibble first.

    The last axis of extent ``n`` becomes ``(n + 1) // 2`` bytes; an odd one leaves the last high nibble 0.
    """
    flat = np.asarray(nibbles).astype(np.uint8) & 15
    if flat.shape[-1] % 2:
        flat = np.concatenate([flat, np.zeros_like(flat[..., :1])], axis=-1)
    packed: Array = flat[..., 0::2] | (flat[..., 1::2] << 4)
    return packed


def unpack4(packed: npt.ArrayLike, count: int) -> Array:
    """Return the first ``count`` 4-bit codes along the last axis of ``packed``; inverse of ``pack4``."""
    data = np.asarray(packed).astype(np.uint8)
    return np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], 2 * data.shape[-1])[..., :count]


_DOUBLE = WIDE["float64"]


def _encode_signed(size: Array, negative: Array, form: Format, saturate: bool) -> Array:
    """Codes of the doubles whose magnitude has the bits ``size``."""
    lowest = 1 - form.bias  # the exponent of the smallest normal number, which subnormals share
    exponent = (size >> 52) - _DOUBLE.bias
    significand = (size & ((1 << 52) - 1)) | np.where(size >> 52 == 0, 0, 1 << 52)
    clamped = np.maximum(exponent, lowest)
    shift = np.minimum(52 - form.mantissa + clamped - exponent, 60)  # beyond 54 everything is dropped anyway
    kept = significand >> shift
    dropped = significand & ((np.int64(1) << shift) - 1)
    half = np.int64(1) << (shift - 1)
    kept += (dropped > half) | ((dropped == half) & (kept & 1 == 1))
    # A normal number's leading one adds 1 to the exponent field; a carry out of the mantissa does the right thing too.
    code = kept + ((clamped - lowest) << form.mantissa)
    infinite, nan = size == _DOUBLE.infinity, size > _DOUBLE.infinity
    code = np.where((code > form.largest) & ~infinite, form.largest if saturate else form.overflow, code)
    code = np.where(infinite, form.infinity, np.where(nan, form.nan, code))
    if form.unsigned_zero:
        return np.where(negative & (code != 0), code | form.sign, code)
    if not form.has_nan:
        negative = negative | nan
    return np.where(negative, code | form.sign, code)


def _encode_powers(size: Array, negative: Array, form: Format, saturate: bool) -> Array:
    """Codes of powers of two, without a sign."""
    size = np.minimum(size, _DOUBLE.infinity)  # no addition to a NaN's bits overflows
    rounded = ((size + (1 << 51)) >> 52) - _DOUBLE.bias + form.bias  # adding half goes up on a tie
    lowest = np.int64((_DOUBLE.bias - form.bias) << 52)
    rounded = np.where((rounded == 0) & (size > lowest), 1, rounded)  # just above the lowest value: up (see rules)
    infinite = size >= _DOUBLE.infinity
    code = np.where(rounded > form.largest, form.largest if saturate else form.nan, np.maximum(rounded, 0))
    return np.where(infinite | negative | (size == 0), form.nan, code)
