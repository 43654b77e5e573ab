"""Integer keys in the order of elements, for the position of an extreme.

The largest key is the element that wins.

A key is a signed integer. Floats are ordered by their bits, so that machines that flush subnormal numbers order them
too; the two zeros have one key, and NaN has the largest.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.numerics.build import bind, constant, is_nan, select, type_name
from tile_core.numerics.ordered import from_ordered, ordered

__all__ = ["key_of", "key_type", "sort_key", "sorted_value", "wide_type"]


def key_type(dtype: str) -> str:
    """The integer type of the keys of an element type."""
    return "int64" if DTYPES[dtype].bits == 64 else "int32"


def wide_type(dtype: str) -> str:
    """Return the type to which elements convert exactly before their keys; integers keep bits."""
    key = key_type(dtype)
    return key if not DTYPES[dtype].is_float else key.replace("int", "float")


def key_of(kind: str, value: Expr, dtype: str) -> Expr:
    """The key of an element for ``"argmax"`` or ``"argmin"``.

    Parameters
    ----------
    kind
        What is looked for.
    value
        The element, converted to ``wide_type(dtype)``.
    dtype
        The element's own type.
    """
    key = key_type(dtype)
    if not DTYPES[dtype].is_float:
        return _turned(kind, _signed(value, dtype, key))
    high = 2 ** (DTYPES[key].bits - 1) - 1
    return bind(value, lambda x: select(is_nan(x), constant(high, key, x), _turned(kind, _one_zero(ordered(x)))), "x")


def sort_key(value: Expr, dtype: str, descending: bool) -> Expr:
    """Return the key of an element in numeric order; -0 before +0, NaN last."""
    key = key_type(dtype)
    if not DTYPES[dtype].is_float:
        found = _signed(value, dtype, key)
    else:
        high = 2 ** (DTYPES[key].bits - 1) - 1
        found = bind(value, lambda x: select(is_nan(x), constant(high, key, x), ordered(x)), "x")
    return tirx.bitwise_not(found) if descending else found


def sorted_value(key: Expr, dtype: str, descending: bool) -> Expr:
    """The number of a key, in ``wide_type(dtype)``: the inverse of ``sort_key``."""
    found = tirx.bitwise_not(key) if descending else key
    return from_ordered(found) if DTYPES[dtype].is_float else _signed(found, dtype, type_name(key))


def _signed(value: Expr, dtype: str, key: str) -> Expr:
    """Unsigned integers of the key's width in the order of signed ones."""
    if dtype != f"u{key}":
        return value
    return tirx.bitwise_xor(value, constant(-(2 ** (DTYPES[key].bits - 1)), key, value))


def _one_zero(key: Expr) -> Expr:
    """The key of +0 for that of -0, just below it."""
    name = type_name(key)
    return bind(key, lambda k: select(tirx.EQ(k, constant(-1, name, k)), constant(0, name, k), k), "k")


def _turned(kind: str, key: Expr) -> Expr:
    return tirx.bitwise_not(key) if kind == "argmin" else key
