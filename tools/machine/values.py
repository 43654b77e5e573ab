"""Element types as NumPy has them, and operators on the values of all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tile_core.compat.types import Array, BufferVar
from tile_core.ir import nodes

__all__ = ["BINARY", "UNARY", "element_of", "numpy_type", "poisoned"]


def numpy_type(name: str) -> Any:
    """Return the NumPy type of an element type."""
    return np.dtype(getattr(ml_dtypes, name, name))


def element_of(buffer: BufferVar) -> Any:
    """Return the NumPy type of a buffer's elements."""
    return numpy_type(nodes.element_type(buffer))


def poisoned(shape: tuple[int, ...], kind: Any) -> Array:
    """Return an array of poison: NaN, or a large odd integer."""
    if kind == np.dtype(bool):
        return np.ones(shape, bool)
    pattern = 0xFF if kind.kind in "fV" else 0x5B
    return np.full((*shape, kind.itemsize), pattern, np.uint8).view(kind).reshape(shape)


def _quotient(x: Any, y: Any) -> Any:
    """Return the quotient of floats, or that of integers truncated towards zero."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    whole = np.floor_divide(x, y)
    return whole + ((whole < 0) & (whole * y != x)).astype(x.dtype)


def _remainder(x: Any, y: Any) -> Any:
    return x - _quotient(x, y) * y


def _total(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a division that accepts zero divisors in lanes whose result is unused."""

    def divide(x: Array, y: Array) -> Array:
        return function(x, np.where(y == 0, y.dtype.type(1), y) if y.dtype.kind in "iu" else y)

    return divide


def _extreme(kind: str, nan_wins: bool) -> Callable[[Any, Any], Any]:
    """Return the maximum or minimum of floats, with +0 larger than -0."""

    def choose(a: Array, b: Array) -> Array:
        function = getattr(np, f"{kind}imum") if nan_wins else getattr(np, f"f{kind}")
        tied = np.where(np.signbit(a), b, a) if kind == "max" else np.where(np.signbit(a), a, b)
        return np.where(a == b, tied, function(a, b))

    return choose


#: By the name of a node or of an operator.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _total(_quotient), "Mod": _total(_remainder),
    "FloorDiv": _total(np.floor_divide), "FloorMod": _total(np.mod), "Min": np.minimum, "Max": np.maximum,
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right": np.right_shift,
    **{f"tile.float_{k}{'_nan' if n else ''}": _extreme(k, n) for k in ("max", "min") for n in (False, True)},
}  # fmt: skip
BINARY |= {
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "LShift": np.left_shift, "RShift": np.right_shift,
    "tile.wrapping_add": np.add, "tile.wrapping_sub": np.subtract, "tile.wrapping_mul": np.multiply,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "bitwise_not": np.invert, "fabs": np.abs, "abs": np.abs, "isnan": np.isnan,
}  # fmt: skip
