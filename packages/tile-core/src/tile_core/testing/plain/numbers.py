"""Scalars of the language as Python numbers, an independent implementation.

Promotion, wrapping, rounding and conversion are written a second time here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Union

import numpy as np

from tile_core.compat.types import DTypeLike
from tile_core.numerics import codecs

BITS = {f"{k}{b}": b for k in ("int", "uint") for b in (4, 8, 16, 32, 64)}


class Illegal(ValueError):
    """A rejection by the language: a constant that does not fit, a zero divisor."""


_FLOATS = {"float64": 64, "float32": 32, "tfloat32": 32, "float16": 16, "bfloat16": 16}
_COMPUTED = ("float64", "float32", "float16", "bfloat16")


Computed = Union["Number", int, float]
"""A value that a kernel computes, or a Python number."""


class Number:
    """A scalar of an element type.

    Attributes
    ----------
    value
        A Python int, bool or float that the type holds.
    dtype
        Name of the element type.
    element
        ``(buffer, indices)`` if it was read from there.
    """

    __slots__ = ("dtype", "element", "value")

    def __init__(self, value: Any, dtype: str, element: Any = None) -> None:
        self.value, self.dtype, self.element = value, dtype, element

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        if isinstance(self.value, float):
            raise TypeError(f"{self!r} is not an integer")
        return int(self.value)

    __int__ = __index__
    __hash__ = object.__hash__

    # fmt: off
    def __add__(self, o: Computed) -> Number: return arith("+", self, o)
    def __radd__(self, o: Computed) -> Number: return arith("+", o, self)
    def __sub__(self, o: Computed) -> Number: return arith("-", self, o)
    def __rsub__(self, o: Computed) -> Number: return arith("-", o, self)
    def __mul__(self, o: Computed) -> Number: return arith("*", self, o)
    def __rmul__(self, o: Computed) -> Number: return arith("*", o, self)
    def __floordiv__(self, o: Computed) -> Number: return arith("//", self, o)
    def __rfloordiv__(self, o: Computed) -> Number: return arith("//", o, self)
    def __mod__(self, o: Computed) -> Number: return arith("%", self, o)
    def __rmod__(self, o: Computed) -> Number: return arith("%", o, self)
    def __truediv__(self, o: Computed) -> Number: return divide(self, o)
    def __rtruediv__(self, o: Computed) -> Number: return divide(o, self)
    def __and__(self, o: Computed) -> Number: return arith("&", self, o)
    def __rand__(self, o: Computed) -> Number: return arith("&", o, self)
    def __or__(self, o: Computed) -> Number: return arith("|", self, o)
    def __ror__(self, o: Computed) -> Number: return arith("|", o, self)
    def __xor__(self, o: Computed) -> Number: return arith("^", self, o)
    def __rxor__(self, o: Computed) -> Number: return arith("^", o, self)
    def __lshift__(self, o: Computed) -> Number: return shift("<<", self, o)
    def __rlshift__(self, o: Computed) -> Number: return shift("<<", o, self)
    def __rshift__(self, o: Computed) -> Number: return shift(">>", self, o)
    def __rrshift__(self, o: Computed) -> Number: return shift(">>", o, self)
    def __lt__(self, o: Computed) -> Number: return compare(self, o, lambda a, b: a < b)
    def __le__(self, o: Computed) -> Number: return compare(self, o, lambda a, b: a <= b)
    def __gt__(self, o: Computed) -> Number: return compare(self, o, lambda a, b: a > b)
    def __ge__(self, o: Computed) -> Number: return compare(self, o, lambda a, b: a >= b)
    def __eq__(self, o: Any) -> Number: return compare(self, o, lambda a, b: a == b)  # type: ignore[override]
    def __ne__(self, o: Any) -> Number: return compare(self, o, lambda a, b: a != b)  # type: ignore[override]
    # fmt: on

    def __neg__(self) -> Number:
        return Number(-self.value, self.dtype) if is_float(self.dtype) else arith("-", 0, self)

    def __pos__(self) -> Number:
        return self

    def __invert__(self) -> Number:
        if self.dtype == "bool":
            return Number(not self.value, "bool")
        return Number(fit(~self.value, self.dtype), self.dtype)

    def __abs__(self) -> Number:
        return Number(fit(abs(self.value), self.dtype), self.dtype)

    def __pow__(self, o: Computed) -> Number:
        result = Number(fit(1, self.dtype), self.dtype)
        for _ in range(int(o)):
            result = result * self
        return result

    def astype(self, dtype: DTypeLike) -> Number:
        """Return the value converted."""
        return convert(self, str(dtype))


def is_float(dtype: str) -> bool:
    """Return whether a type is a float."""
    return dtype not in BITS and dtype != "bool"


def fit(value: Any, dtype: str) -> float:
    """Return a result of arithmetic in a type's bits: integers wrap, floats round once."""
    bits = BITS.get(dtype)
    if bits is not None:
        value = int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value
    if dtype == "float64":
        return float(value)
    if dtype == "bool":
        return bool(value)
    with np.errstate(all="ignore"):
        if dtype == "float32":
            return float(np.float32(value))
        if dtype == "float16" and isinstance(value, float):
            return float(np.float16(value))
        return float(codecs.round_to(np.float64(value if isinstance(value, float) else _short(value)), dtype))


def _short(value: int) -> float:
    """Return an integer in 53 bits with a sticky last bit, for one rounding."""
    size, shift = abs(int(value)), max(int(value).bit_length() - 53, 0)
    kept = size >> shift
    lost = kept << shift != size
    return math.copysign(math.ldexp(kept | lost, shift), value)


def convert(x: Computed, dtype: str) -> Number:
    """Convert a number: floats truncate and saturate to integers, NaN becomes 0, integers wrap."""
    value = x.value if isinstance(x, Number) else x
    if isinstance(x, Number) and x.dtype == dtype:
        return Number(value, dtype)
    if dtype == "bool":
        return Number(value != 0, "bool")
    if dtype in BITS and isinstance(value, float):
        if math.isnan(value):
            return Number(0, dtype)
        signed, bits = dtype[0] == "i", BITS[dtype]
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return Number(low if value <= low else high if value >= high else math.trunc(value), dtype)
    if dtype == "float32" and not isinstance(value, float):
        whole: Any = np.uint64 if value >= 2**63 else np.int64
        return Number(float(np.float32(whole(value))), dtype)
    return Number(fit(value, dtype), dtype)


def number(x: Computed) -> Number:
    """Return anything scalar as a number; Python numbers take the default types."""
    if isinstance(x, Number):
        return x
    if hasattr(x, "get"):
        got: Number = x.get()
        return got
    if isinstance(x, bool):
        return Number(x, "bool")
    if isinstance(x, float):
        return Number(fit(x, "float32"), "float32")
    return Number(int(x), "int32" if -(2**31) <= x < 2**31 else "int64")


def pair(a: Computed, b: Computed) -> tuple[Number, Number]:
    """Return both operands in their common type."""
    if not isinstance(a, Number):
        a = number(a) if hasattr(a, "get") or not isinstance(b, Number) else _weak(a, b.dtype)
    if not isinstance(b, Number):
        b = number(b) if hasattr(b, "get") else _weak(b, a.dtype)
    common = _common(a.dtype, b.dtype)
    return (a if a.dtype == common else convert(a, common)), (b if b.dtype == common else convert(b, common))


def _weak(x: float, other: str) -> Number:
    if isinstance(x, bool):
        return Number(x, "bool")
    if isinstance(x, float) and not is_float(other):
        return Number(fit(x, "float32"), "float32")
    to = "int32" if other == "bool" else other if other in BITS or other in _COMPUTED else "float32"
    if to in BITS and fit(x, to) != x:
        raise Illegal(f"{x} does not fit {to}")
    return Number(fit(x, to), to)


def _common(a: str, b: str) -> str:
    if a == b and (a in BITS or a in _COMPUTED or a == "bool"):
        return a
    floats = [x if x in _COMPUTED else "float32" for x in (a, b) if is_float(x)]
    if floats:
        if len(floats) == 2 and floats[0] != floats[1] and _FLOATS[floats[0]] == _FLOATS[floats[1]]:
            return "float32"
        return max(floats, key=lambda d: _FLOATS[d])
    if "bool" in (a, b):
        return b if a == "bool" else a
    if BITS[a] != BITS[b]:
        return a if BITS[a] > BITS[b] else b
    return a if a[0] == "u" else b


def arith(symbol: str, a: Computed, b: Computed) -> Number:
    """Return a sum, difference, product, quotient or remainder rounded down, or a bitwise combination."""
    if _are_tiles(a, b):
        return NotImplemented
    x, y = pair(a, b)
    dtype = x.dtype
    if type(b) is int and b == 0 and symbol in _DIVISIONS:
        raise Illegal("a division by zero")
    if dtype == "bool" and symbol in "&|^":
        return Number(_EXACT[symbol](x.value, y.value), dtype)
    if dtype == "bool":
        dtype = "int32"
    if is_float(dtype):
        with np.errstate(all="ignore"):
            return Number(fit(float(_FLOATING[symbol](np.float64(x.value), np.float64(y.value))), dtype), dtype)
    return Number(fit(_EXACT[symbol](int(x.value), int(y.value)), dtype), dtype)


def divide(a: Computed, b: Computed) -> Number:
    """Return the true quotient."""
    if _are_tiles(a, b):
        return NotImplemented
    x, y = pair(a, b)
    if not is_float(x.dtype):
        wide = "float64" if BITS.get(x.dtype) == 64 else "float32"
        x, y = convert(x, wide), convert(y, wide)
    with np.errstate(all="ignore"):
        return Number(fit(float(np.float64(x.value) / np.float64(y.value)), x.dtype), x.dtype)


def shift(symbol: str, a: Computed, b: Computed) -> Number:
    """Return a shift; counts of the width or more leave 0 or the sign."""
    if _are_tiles(a, b):
        return NotImplemented
    if not isinstance(a, Number):
        a = number(a) if hasattr(a, "get") else _weak(a, b.dtype if isinstance(b, Number) else "int32")
    if a.dtype == "bool":
        a = convert(a, "int32")
    if isinstance(b, Number) and BITS.get(b.dtype, 0) > BITS[a.dtype]:
        a = convert(a, b.dtype)
    count, bits = int(b), BITS[a.dtype]
    if symbol == ">>":
        return Number(a.value >> min(count, bits) if count >= 0 else (-1 if a.value < 0 else 0), a.dtype)
    return Number(fit(a.value << count, a.dtype) if 0 <= count < bits else 0, a.dtype)


def compare(a: Computed, b: Computed, test: Callable[[Any, Any], bool]) -> Number:
    """Return the truth of a comparison in the common type."""
    if _are_tiles(a, b):
        return NotImplemented
    x, y = pair(a, b)
    return Number(bool(test(x.value, y.value)), "bool")


def _are_tiles(*operands: Any) -> bool:
    """Return whether an operand is a tile, whose own operator goes element by element."""
    return any(type(x) is not Number and getattr(x, "is_tile", False) for x in operands)


def truncdiv(a: int, b: int) -> int:
    """Return the quotient rounded towards zero; of a division by zero 0."""
    size = abs(a) // abs(b) if b else 0
    return size if (a >= 0) == (b >= 0) else -size


_DIVISIONS = ("//", "%", "ceil", "truncdiv", "truncmod")
#: A quotient and a remainder by zero are 0.
_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "ceil": lambda a, b: -(-a // b) if b else 0, "truncdiv": truncdiv,
    "truncmod": lambda a, b: a - truncdiv(a, b) * b if b else 0,
}  # fmt: skip
_FLOATING: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: np.floor(a / b), "%": lambda a, b: a - np.floor(a / b) * b,
}  # fmt: skip


def extreme(a: Computed, b: Computed, sign: int, nan_propagate: bool) -> Computed:
    """Return the maximum, or the minimum if ``sign`` is negative; +0 exceeds -0."""
    if type(a) is int and type(b) is int:
        return max(a, b) if sign > 0 else min(a, b)
    x, y = pair(a, b)
    if x.value != x.value:
        return x if nan_propagate else y
    if y.value != y.value:
        return y if nan_propagate else x
    if x.value == y.value and is_float(x.dtype):
        return x if (math.copysign(1.0, x.value) > 0) == (sign > 0) else y
    return x if (x.value > y.value) == (sign > 0) else y
