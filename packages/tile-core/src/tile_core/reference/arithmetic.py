"""Operators on held values (see ``elements``): integers wrap, floats round once per operation.

Quotients and remainders by zero are 0, and the least integer divided by -1 wraps to itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.reference.elements import CODED, decode, encode, wrap

__all__ = ["binary", "ceiling_divide", "floor_divide", "truncated_divide"]

Function = Callable[[Array, Array], Array]


def binary(node: str, dtype: str) -> Function | None:
    """Return the function of a binary IR node for a type, or ``None``.

    Parameters
    ----------
    node
        Name of the node: ``"Add"``, ``"FloorDiv"``, ``"LT"``, ``"BitwiseAnd"`` …
    dtype
        Element type of both operands. Comparisons return bools, all else a value of this type.
    """
    if node in _COMPARISONS:
        compare = _COMPARISONS[node]
        return (lambda a, b: compare(decode(a, dtype), decode(b, dtype))) if dtype in CODED else compare
    table = _FLOATS if DTYPES[dtype].is_float else _INTEGERS
    function = table.get(node)
    if function is None or not (dtype in CODED or DTYPES[dtype].is_packed):
        return function
    if dtype in CODED:
        return lambda a, b: encode(function(decode(a, dtype), decode(b, dtype)), dtype)
    return lambda a, b: wrap(function(a, b), dtype)


def floor_divide(a: Array, b: Array) -> Array:
    """Return the quotient of integers rounded down; 0 for a divisor of 0."""
    return np.floor_divide(a, b)


def truncated_divide(a: Array, b: Array) -> Array:
    """Return the quotient of integers rounded towards zero; 0 for a divisor of 0."""
    down = np.floor_divide(a, b)
    rest = a - down * b
    up = (rest != 0) & (b != 0) & ((a < 0) != (b < 0))
    return down + up.astype(down.dtype)


def ceiling_divide(a: Array, b: Array) -> Array:
    """Return the quotient of integers rounded up; 0 for a divisor of 0."""
    down = np.floor_divide(a, b)
    return down + ((a - down * b != 0) & (b != 0)).astype(down.dtype)


def _float_floor_divide(a: Array, b: Array) -> Array:
    return np.floor(np.divide(a, b))


_COMPARISONS: dict[str, Function] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_FLOATS: dict[str, Function] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "FloorDiv": _float_floor_divide,
    "FloorMod": lambda a, b: a - _float_floor_divide(a, b) * b, "Mod": np.fmod, "Max": np.fmax, "Min": np.fmin,
}  # fmt: skip
_INTEGERS: dict[str, Function] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": truncated_divide, "Mod": np.fmod,
    "FloorDiv": floor_divide, "FloorMod": np.remainder, "Max": np.maximum, "Min": np.minimum,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "LShift": np.left_shift, "RShift": np.right_shift,
}  # fmt: skip
