"""Data of the cases: arrays with poison around and inside, special values, comparison."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tile_core.dtypes import DTYPES, largest
from tile_core.numerics import codecs
from tile_core.testing import oracles
from tile_core.testing.case import Tolerance
from tile_runtime.numerics.formats import FORMATS

Array = npt.NDArray[Any]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "bfloat16", "float32", "float64")
NARROW = tuple(name for name, d in DTYPES.items() if d.is_narrow)
#: Every element type of the language.
TYPES = ("bool", "int4", "uint4", *INTEGERS, "tfloat32", *FLOATS, *NARROW)
#: Types with arithmetic.
COMPUTED = (*INTEGERS, *FLOATS)

_CANARY = 256
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0)


def more_fp8(*known: str) -> list[str]:
    """Return the 8-bit operands of products that are not among these."""
    return [name for name in NARROW if DTYPES[name].is_fp8 and name not in known]


def seed_of(*parts: str) -> int:
    """Return a number that depends on its arguments and not on the process."""
    return zlib.crc32(repr(parts).encode())


def poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array full of 0xFF bytes between two canaries.

    4-bit types are packed bytes, bools true.
    """
    d = DTYPES[dtype]
    kind = d.numpy()
    if d.is_packed:
        shape, kind = (*shape[:-1], -(-shape[-1] // 2)), np.dtype("uint8")
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(size + 2 * _CANARY, 1 if dtype == "bool" else 0xFF, np.uint8)
    return raw[_CANARY : _CANARY + size].view(kind).reshape(shape)


def unharmed(array: Array) -> bool:
    """Return whether the canaries around an array that ``poisoned`` made are intact."""
    raw: Array = array
    while raw.base is not None:
        raw = raw.base
    ends = np.concatenate([raw[:_CANARY], raw[-_CANARY:]])
    return bool((ends == ends[0]).all() and ends[0] in (1, 0xFF))


def stored(values: npt.ArrayLike, dtype: str) -> Array:
    """Return an array that holds values, converted as the language converts them."""
    exact = np.asarray(values)
    out = poisoned(exact.shape, dtype)
    with np.errstate(all="ignore"):
        if DTYPES[dtype].is_packed:
            out[...] = codecs.pack4(codecs.encode(exact, dtype))
        elif dtype in FORMATS:
            out[...] = np.asarray(codecs.encode(exact, dtype)).view(out.dtype)
        else:
            out[...] = exact.astype(out.dtype)
    return out


def from_codes(codes: npt.ArrayLike, dtype: str) -> Array:
    """Return an array with the given bit patterns.

    Patterns are nibbles for 4-bit types, unsigned integers of the same width for others.
    """
    raw = np.asarray(codes)
    out = poisoned(raw.shape, dtype)
    if DTYPES[dtype].is_packed:
        out[...] = codecs.pack4(raw)
    elif dtype == "bool":
        out[...] = raw % 2 == 1
    else:
        exact = raw.astype(f"uint{DTYPES[dtype].bits}")
        exact = exact & np.uint32(0xFFFFE000) if DTYPES[dtype].is_reduced else exact
        out[...] = np.ascontiguousarray(exact).view(out.dtype)
    return out


def values(array: Array, dtype: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return the values of an array: float64, or integers and bools unchanged."""
    d = DTYPES[dtype]
    if d.is_packed:
        nibbles = codecs.unpack4(array, shape[-1] if shape is not None else 2 * array.shape[-1])
        decoded: Array = codecs.decode(nibbles, dtype)
        return decoded.astype(np.float64 if d.is_float else np.int64)
    if d.is_float:
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    return array


def anything(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Return random bit patterns: NaN, infinities, subnormals and both zeros included."""
    count = int(np.prod(shape, dtype=np.int64))
    bits = DTYPES[dtype].bits
    codes = rng.integers(0, 2**bits - 1, shape, dtype=np.uint64, endpoint=True)
    out = from_codes(codes, dtype)
    if DTYPES[dtype].is_float and bits > 8 and count >= 8:
        # In place: a transposed or copied view would not reach the array.
        at = np.unravel_index(rng.permutation(count)[:8], shape)
        out[at] = stored(np.array(_SPECIAL), dtype)
    return out


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: int = -4, high: int = 4) -> Array:
    """Return small integers whose reductions and products are exact in the type."""
    d = DTYPES[dtype]
    if dtype == "bool":
        return stored(rng.integers(0, 2, shape), dtype)
    if not d.has_zero:
        return stored(2.0 ** rng.integers(0, 3, shape), dtype)
    if d.kind == "uint":
        low = max(low, 0)
    if d.bits <= 4:
        low, high = max(low, -4), min(high, 4)
    return stored(rng.integers(low, high + 1, shape), dtype)


def all_codes(dtype: str, shape: tuple[int, ...]) -> Array:
    """Return every bit pattern of a type of up to 16 bits, repeated in order."""
    count = int(np.prod(shape, dtype=np.int64))
    return from_codes((np.arange(count) % 2 ** min(DTYPES[dtype].bits, 16)).reshape(shape), dtype)


def near_ties(rng: np.random.Generator, shape: tuple[int, ...], source: str, target: str) -> Array:
    """Return values at and next to midpoints of neighbours, which expose double rounding.

    A quarter of them are any bits, and all where the source holds nothing that the target rounds, or has few values.
    """
    drawn = anything(rng, shape, source)
    s, t = DTYPES[source], DTYPES[target]
    if s.bits <= 16 or not t.is_float or t.mantissa + (1 if s.is_float else 2) > (s.mantissa or s.bits - 1):
        return drawn
    near = beside_ties(rng, shape, source, target) if s.is_float else _integers_beside_ties(rng, shape, source, target)
    return np.where(rng.integers(0, 4, shape) == 0, drawn, near)


def beside_ties(rng: np.random.Generator, shape: tuple[int, ...], source: str, target: str) -> Array:
    """Return floats at and next to midpoints of neighbours in a type.

    Values beyond the largest one are included.
    """
    if target == "float32":
        low = rng.integers(0, 0x7F800000, shape, np.uint32).view(np.float32)
        middle = (low.astype(np.float64) + np.nextafter(low, np.float32(np.inf))) / 2
    else:
        form = FORMATS[target]
        codes = rng.integers(0, form.largest + 1, shape)
        at, before = codecs.decode(codes, target, "float64"), codecs.decode(np.maximum(codes - 1, 0), target, "float64")
        last = 2 * at - before if form.mantissa else 2 * at
        middle = (at + np.where(codes < form.largest, codecs.decode(codes + 1, target, "float64"), last)) / 2
    with np.errstate(all="ignore"):
        held = middle.astype(DTYPES[source].numpy())
    bits = held.view(f"int{8 * held.itemsize}")
    steps = rng.choice([0, 1, -1], shape) << rng.integers(
        0, max(DTYPES[source].mantissa - DTYPES[target].mantissa, 1), shape
    )
    beside = np.clip(bits + steps, 0, None).astype(bits.dtype).view(held.dtype)
    signed = np.where(rng.integers(0, 2, shape) == 1, beside, -beside)
    return stored(signed, source) if DTYPES[source].is_reduced else signed


def _integers_beside_ties(rng: np.random.Generator, shape: tuple[int, ...], source: str, target: str) -> Array:
    s, digits = DTYPES[source], DTYPES[target].mantissa + 2
    bits = s.bits - (s.kind == "int")
    most = min(bits, max(int(np.log2(largest(DTYPES[target]))) + 2, digits))
    found = []
    for _ in range(int(np.prod(shape, dtype=np.int64))):
        odd = int(rng.integers(2 ** (digits - 1), 2**digits)) | 1
        shift = int(rng.integers(0, most - digits + 1))
        value = (odd << shift) + int(rng.choice([0, 1, -1])) * (
            1 << int(rng.integers(0, shift + 1) * rng.integers(0, 2))
        )
        value = min(value, 2**bits - 1)
        found.append(-value if s.kind == "int" and rng.integers(0, 2) else value)
    return np.array(found, source).reshape(shape)


def castable(rng: np.random.Generator, shape: tuple[int, ...], source: str, targets: tuple[str, ...]) -> Array:
    """Return data to convert.

    All codes of small types, any bits of others; half of the values are small integers if the target is an integer
    type.
    """
    if DTYPES[source].bits <= 16:
        return all_codes(source, shape)
    floats = [t for t in targets if DTYPES[t].is_float]
    if floats and len(floats) == len(targets):
        each = [near_ties(rng, shape, source, t) for t in floats]
        return np.choose(rng.integers(0, len(each), shape), each)
    drawn = anything(rng, shape, source)
    if DTYPES[source].is_float and any(DTYPES[t].is_integer for t in targets):
        small = rng.integers(-1200, 1200, shape) / 4.0
        return np.where(rng.integers(0, 2, shape) == 1, drawn, stored(small, source))
    return drawn


def different(
    found: Array, expected: Array, dtype: str, tolerance: Tolerance,
    admits: Callable[[Array, Array], Array] | None = None,
) -> str:  # fmt: skip
    """Return how an output differs from the expected one; empty if it does not.

    Parameters
    ----------
    found
        The array after the launch.
    expected
        Values of the same shape before rounding to ``dtype``.
    dtype
        Element type of the output.
    tolerance
        How close it must be.
    admits
        From the found and the expected values to elements that are right although they are not close.
    """
    want = np.asarray(expected)
    have = values(found, dtype, want.shape)
    if have.shape != want.shape:
        return f"the case expects shape {want.shape}, the output has {have.shape}"
    if DTYPES[dtype].is_float:
        want = np.asarray(oracles.cast(want, dtype)).astype(np.float64)
        good = _close(have, want, tolerance)
    else:
        want = np.asarray(oracles.cast(want, dtype))
        good = have == want
    if admits is not None and not good.all():
        good = good | admits(have, want)
    if good.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    count = int((~good).sum())
    return f"{count} of {good.size} elements are wrong, first at {at}: found {have[at]!r}, expected {want[at]!r}"


def _close(have: Array, want: Array, tolerance: Tolerance) -> Array:
    with np.errstate(all="ignore"):
        equal = (have == want) | (np.isnan(have) & np.isnan(want))
        if tolerance.zeros:
            equal &= (np.signbit(have) == np.signbit(want)) | (have != 0) | np.isnan(have)
        if tolerance.rtol or tolerance.atol:
            near = np.abs(have - want) <= tolerance.atol + tolerance.rtol * np.abs(want)
            equal |= near & np.isfinite(want)
    good: Array = equal
    return good
