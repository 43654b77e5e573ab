"""How NumPy holds values of every element type, and conversion between the types.

A value is an array (or a NumPy scalar) of the *holder* of its type. Floats that NumPy lacks are held by their codes,
so that a copy keeps every bit: bfloat16 in uint16, the floats of 8 and 4 bits in uint8. 4-bit integers are held in
int8 and uint8, one to a byte, and wrap after every operation.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.numerics.codecs import decode as decode_codes
from tile_core.numerics.codecs import encode as encode_values

__all__ = ["CODED", "constant", "convert", "decode", "encode", "holder", "round_tfloat32", "wrap"]

#: Types whose values are held by their codes.
CODED = frozenset(str(d) for d in DTYPES.values() if d.is_narrow) | {"bfloat16"}
_FOUR_BITS = {"int4": np.dtype("int8"), "uint4": np.dtype("uint8")}


@functools.cache
def holder(dtype: str) -> Any:
    """Return the NumPy type of the arrays that hold values of an element type."""
    if dtype == "bfloat16":
        return np.dtype("uint16")
    if dtype in CODED:
        return np.dtype("uint8")
    return _FOUR_BITS.get(dtype) or DTYPES[dtype].numpy()


def constant(value: Array, dtype: str) -> Array:
    """Return a Python number as a scalar of a type; integers wrap, floats are rounded."""
    d = DTYPES[dtype]
    if dtype in CODED:
        return encode(np.float64(value), dtype)
    if d.is_integer:
        bits = int(value) & (2**d.bits - 1)
        return holder(dtype).type(bits - 2**d.bits if d.kind == "int" and bits >> (d.bits - 1) else bits)
    return holder(dtype).type(value)


def nothing(dtype: str) -> Array:
    """Return the fill value of out-of-bounds reads: zero, or the least number without one."""
    return constant(DTYPES[dtype].fill, dtype)


def wrap(x: Array, dtype: str) -> Array:
    """Return integers wrapped to a 4-bit type; others are returned unchanged."""
    if dtype == "int4":
        return (((x & 15) ^ 8) - 8).astype(np.int8)
    return (x & 15).astype(np.uint8) if dtype == "uint4" else x


def decode(x: Array, dtype: str) -> Array:
    """Return the numbers that codes represent, as float32; values of NumPy's types are unchanged."""
    if dtype == "bfloat16":
        return (np.asarray(x).astype(np.uint32) << np.uint32(16)).view(np.float32)[()]
    return _table(dtype)[x] if dtype in CODED else x


def encode(x: Array, dtype: str) -> Array:
    """Return the codes of NumPy floats, rounded to nearest even by ``numerics/rules.py``."""
    x = np.asarray(x)
    if dtype == "bfloat16" and x.dtype == np.float32:
        return _bfloat16(x)[()]
    return encode_values(x, dtype)[()]


def convert(x: Array, source: str, target: str) -> Array:
    """Return values converted between element types by the language's rules.

    To floats: one rounding to nearest even. Integers to integers wrap. Floats to integers truncate and saturate; NaN
    gives 0. To bool: whether it is not zero.
    """
    if source == target:
        return x
    if source in CODED:
        x, source = decode(x, source), "float32"
    to = DTYPES[target]
    if to == "bool":
        return x != holder(source).type(0)
    if to.is_float:
        if target in CODED:
            return encode(_exact(np.asarray(x)), target)
        return x.astype(holder(target))
    if DTYPES[source].is_float:
        return _truncated(np.asarray(x), target)[()]
    return wrap(x, target) if target in _FOUR_BITS else x.astype(holder(target))


def round_tfloat32(x: Array, source: str) -> Array:
    """Return values of an element type rounded once to 10 mantissa bits, as float32."""
    return encode_values(_exact(np.asarray(decode(x, source))), "tfloat32").view(np.float32)


@functools.cache
def _table(dtype: str) -> Array:
    return decode_codes(np.arange(256, dtype=np.uint8), dtype)


def _bfloat16(x: Array) -> Array:
    bits = x.view(np.uint32)
    high = bits >> np.uint32(16)
    rounded = (bits + ((high & np.uint32(1)) + np.uint32(0x7FFF))) >> np.uint32(16)
    quiet = (high & np.uint32(0x8000)) | np.uint32(0x7FC0)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def _exact(x: Array) -> Array:
    """Return floats of integers with sticky bits beyond 2^53, so that one rounding suffices."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
        return x if x.dtype.kind == "f" else x.astype(np.float64)
    step = x.dtype.type(11)
    kept = (x >> step) << step
    sticky = np.where(kept == x, kept, kept | x.dtype.type(1 << 11))
    small = x < x.dtype.type(1 << 53)
    if x.dtype.kind == "i":
        small = small & (x > x.dtype.type(-(1 << 53)))
    return np.where(small, x, sticky).astype(np.float64)


def _truncated(x: Array, target: str) -> Array:
    d = DTYPES[target]
    low, high = (0, 2**d.bits - 1) if d.kind == "uint" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)
    whole = np.trunc(x.astype(np.float64))
    kind = holder(target)
    # The greatest 64-bit integers are not float64 values, so the comparison is with the power of two above them.
    above, below = whole >= float(high + 1), whole < float(low)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(kind)
    return np.where(above, kind.type(high), np.where(below, kind.type(low), inside))
