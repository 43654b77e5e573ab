"""Math functions by operator name, computed in float64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.numerics.levels import FAST
from tile_core.reference import rounded
from tile_core.reference.elements import CODED, convert, decode, encode, holder

if TYPE_CHECKING:
    from tile_core.reference.rounding import Shaker

__all__ = ["BITS", "FUNCTIONS", "PREDICATES", "apply", "reinterpret"]


def apply(
    name: str,
    values: list[Array],
    types: list[str],
    dtype: str,
    shaker: Shaker | None = None,
    region: str | None = None,
) -> Array:
    """Return a function of ``FUNCTIONS`` as a value of type ``dtype``.

    With ``shaker`` it is one that a target may compute, at the level of its region of numerics if it is in any.
    """
    flushes = shaker is not None and region in (None, FAST)
    if shaker is not None and flushes:
        values = [shaker.flushed(x, t) for x, t in zip(values, types, strict=True)]
    wide = [np.asarray(decode(x, t)).astype(np.float64) for x, t in zip(values, types, strict=True)]
    result = np.asarray(FUNCTIONS[name](*wide))
    if not DTYPES[dtype].is_float:
        return convert(result, "float64", dtype)
    if shaker is not None:
        result = shaker.function(name, result, wide, dtype, region)
    found = encode(result, dtype) if dtype in CODED else result.astype(holder(dtype))[()]
    return shaker.flushed(found, dtype) if shaker is not None and flushes else found


def reinterpret(x: Array, source: str, target: str) -> Array:
    """Return the bits of values as another type of the same width."""
    x = np.asarray(x)
    if DTYPES[source].is_packed:
        bits = x.astype(np.uint8) & np.uint8(15)
        return convert(bits, "uint8", "int4")[()] if target == "int4" else bits[()]
    return np.ascontiguousarray(x).view(holder(target)).reshape(x.shape)[()]


def _each(function: Callable[..., float], count: int) -> Callable[..., Array]:
    """Apply a Python function to every element, with IEEE results where it raises."""

    def one(*x: float) -> float:
        try:
            return function(*x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    ufunc = np.frompyfunc(one, count, 1)
    return lambda *x: np.asarray(ufunc(*x)).astype(np.float64)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _popcount(x: Array) -> Array:
    return np.bitwise_count(x)


def _clz(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    wide = x.astype(np.uint64) & np.uint64(2**bits - 1)
    zeros = np.full(np.shape(x), bits)
    for shift in range(bits):
        zeros = np.where((wide >> np.uint64(shift)) != 0, bits - 1 - shift, zeros)
    return zeros


#: Functions of float64 arrays.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": _sigmoid, "erf": _each(math.erf, 1), "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint, "rint": np.rint, "round": np.rint,
    "roundaway": _round_away, "fabs": np.abs, "abs": np.abs, "pow": np.power, "hypot": np.hypot,
    "copysign": np.copysign, "fmod": np.fmod,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int64)), "fma": lambda a, b, c: a * b + c,
    "div": np.divide,
}  # fmt: skip
FUNCTIONS.update(rounded.FUNCTIONS)
#: Functions of integers that count bits.
BITS: dict[str, Callable[[Array], Array]] = {"popcount": _popcount, "clz": _clz}
#: Functions from floats to bools.
PREDICATES: dict[str, Callable[[Array], Array]] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
