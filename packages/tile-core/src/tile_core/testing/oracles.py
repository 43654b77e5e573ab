"""Reference implementations of the tile ops in NumPy and float64, which targets are tested against.

Inputs are arrays of *values* (see ``codecs.decode`` for stored codes). Results are float64, or int64 where all inputs
are integers; the caller rounds them to the destination type, once, with ``cast``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tile_core.dtypes import DTYPES
from tile_core.numerics.codecs import encode, round_to
from tile_runtime.numerics.formats import FORMATS

__all__ = [
    "cast", "copy_region", "cummax", "cumprod", "cumsum", "gemm", "reduce",
]  # fmt: skip

Array = npt.NDArray[Any]

_EXTREMES = {"max": -np.inf, "absmax": 0.0, "min": np.inf}


def cast(values: npt.ArrayLike, dtype: str, saturate: bool = False) -> Array:
    """Convert values to ``dtype``: float32 for floats of at most 16 bits, else itself.

    Integers wrap; floats become integers by truncation, limits where they end and 0 for NaN; bool is "not zero".
    """
    x = np.asarray(values)
    if x.dtype.kind == "f" and DTYPES[dtype].is_integer:
        return _truncated(x, dtype)
    if dtype in FORMATS:
        return round_to(_exact(x), dtype, saturate)
    if dtype in ("int4", "uint4"):
        nibble = encode(np.trunc(x), dtype).astype(np.int64)
        return (nibble ^ 8) - 8 if dtype == "int4" else nibble
    if dtype == "bool":
        return x != 0
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def gemm(
    a: Array, b: Array, c: Array | None = None, *, transpose_a: bool = False, transpose_b: bool = False,
    clear_accum: bool = False,
) -> Array:  # fmt: skip
    """``c + a b`` (or ``a b`` without ``c`` or with ``clear_accum``).

    Parameters
    ----------
    a, b
        (M, K) and (K, N); (K, M) and (N, K) where transposed.
    c
        (M, N), the accumulator before.
    """
    left = _wide(a).T if transpose_a else _wide(a)
    right = _wide(b).T if transpose_b else _wide(b)
    product: Array = left @ right
    return product if c is None or clear_accum else product + _wide(c)


def reduce(kind: str, x: Array, dim: int = -1, *, before: Array | None = None, nan_propagate: bool = False) -> Array:
    """Reduce one dimension.

    Parameters
    ----------
    kind
        ``"sum"``, ``"max"``, ``"min"``, ``"abssum"``, ``"absmax"``, ``"bitand"``, ``"bitor"``, ``"bitxor"``,
        ``"prod"``, ``"any"`` or ``"all"``.
    x
        The source.
    dim
        The dimension that goes away.
    before
        The destination before (``clear=False``), of the reduced shape; it takes part as it is, like one more element.
    nan_propagate
        Whether a NaN makes max, min and absmax NaN; otherwise it is skipped. Of NaN alone, the maximum is then
        -infinity, the minimum infinity and absmax 0: a reduction starts from its neutral element.
    """
    wide = _ordered if before is None or np.asarray(before).dtype == np.asarray(x).dtype else _wide
    data = np.abs(wide(x)) if kind.startswith("abs") else wide(x)
    if kind in ("any", "all"):
        truths = data != 0 if before is None else np.concatenate([data, np.expand_dims(wide(before), dim)], dim) != 0
        return np.asarray(truths.any(axis=dim) if kind == "any" else truths.all(axis=dim)).astype(np.int64)
    if before is not None:
        data = np.concatenate([data, np.expand_dims(wide(before), dim)], axis=dim)
    pick = {
        "sum": np.add, "abssum": np.add, "prod": np.multiply, "bitand": np.bitwise_and,
        "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
        "max": np.maximum if nan_propagate else np.fmax, "absmax": np.maximum if nan_propagate else np.fmax,
        "min": np.minimum if nan_propagate else np.fmin,
    }[kind]  # fmt: skip
    with np.errstate(invalid="ignore"):
        result = np.asarray(pick.reduce(data, axis=dim))
    if kind not in _EXTREMES or nan_propagate or result.dtype.kind != "f":
        return result
    return np.asarray(np.where(np.isnan(result), _EXTREMES[kind], result))


def cumsum(x: Array, dim: int = -1, reverse: bool = False) -> Array:
    """Inclusive running sum along ``dim``; from the end with ``reverse``."""
    return _scan(np.add, x, dim, reverse)


def cumprod(x: Array, dim: int = -1, reverse: bool = False) -> Array:
    """Inclusive running product along ``dim``; from the end with ``reverse``."""
    return _scan(np.multiply, x, dim, reverse)


def cummax(x: Array, dim: int = -1, reverse: bool = False, nan_propagate: bool = False) -> Array:
    """Inclusive running maximum along ``dim``, with NaN skipped or propagated.

    Up to the first number it is -infinity.
    """
    result = _scan(np.maximum if nan_propagate else np.fmax, x, dim, reverse)
    return result if nan_propagate or result.dtype.kind != "f" else np.fmax(result, -np.inf)


def copy_region(source: Array, mins: tuple[int, ...], extents: tuple[int, ...], fill: float = 0) -> Array:
    """Return the region of ``source`` with a corner and extents; ``fill`` outside.

    The corner may lie outside.
    """
    region = np.full(extents, fill, source.dtype)
    inside, part = _overlap(source.shape, mins, extents)
    region[part] = source[inside]
    return region


def _truncated(x: Array, dtype: str) -> Array:
    bits, signed = DTYPES[dtype].bits, DTYPES[dtype].kind == "int"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    kind = np.dtype(np.int64 if bits == 4 else dtype)
    inside = (x > low) & (x < high)
    with np.errstate(all="ignore"):
        whole = np.where(inside, np.trunc(x), 0).astype(kind)
    return np.where(inside | np.isnan(x), whole, np.where(x >= high, kind.type(high), kind.type(low)))


def _wide(x: npt.ArrayLike) -> Array:
    data = np.asarray(x)
    return data.astype(np.int64) if data.dtype.kind in "iub" else data.astype(np.float64)


def _ordered(x: npt.ArrayLike) -> Array:
    """Return values in a wide type that keeps their order: uint64 has no wider one."""
    data = np.asarray(x)
    return data if data.dtype == np.uint64 else _wide(data)


def _exact(x: Array) -> Array:
    """Return ``x`` as the float64 that rounds once correctly.

    Integers of 2^53 and more get a sticky bit.
    """
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
        return x.astype(np.float64) if x.dtype.kind in "iub" else x
    kept = (x >> 11) << 11
    sticky = np.where(kept == x, kept, kept | (1 << 11))
    small = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype.kind == "i" else x < 1 << 53
    return np.where(small, x, sticky).astype(np.float64)


def _scan(step: np.ufunc, x: Array, dim: int, reverse: bool) -> Array:
    data = _ordered(x)
    if reverse:
        data = np.flip(data, dim)
    result = step.accumulate(data, axis=dim)
    return np.asarray(np.flip(result, dim) if reverse else result)


def _overlap(
    shape: tuple[int, ...], mins: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return a region's part inside ``shape``, as slices of array and region."""
    starts = [min(max(m, 0), n) for m, n in zip(mins, shape, strict=True)]
    stops = [max(min(m + e, n), s) for m, e, n, s in zip(mins, extents, shape, starts, strict=True)]
    inside = tuple(slice(a, b) for a, b in zip(starts, stops, strict=True))
    part = tuple(slice(a - m, b - m) if b > a else slice(0, 0) for a, b, m in zip(starts, stops, mins, strict=True))
    return inside, part
