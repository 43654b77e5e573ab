"""Index expressions evaluated on arrays of their variables, to prove layouts for every iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, Expr, Var
from tile_core.ir import nodes

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "Min": np.minimum,
    "Max": np.maximum,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "And": np.logical_and,
    "Or": np.logical_or,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LShift": np.left_shift,
    "RShift": np.right_shift,
}
_CALLS: dict[str, Callable[..., Array]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "if_then_else": np.where,
}


class Unknown(Exception):
    """An expression that depends on more than the given variables."""


def evaluate(e: Expr, env: Mapping[Var, Array]) -> Array:
    """Return the value of an integer expression as int64 (an array, or a number).

    Raises
    ------
    Unknown
        If it reads memory, or a variable that ``env`` does not have.
    """
    if isinstance(e, (int, np.ndarray)):
        return e
    if type(e) is tirx.IntImm:
        value = int(e.value)
        if value >= 2**63:  # of uint64: arrays hold int64
            raise Unknown
        return value
    kind = type(e).__name__
    if kind in _BINARY:
        a, b = evaluate(e.a, env), evaluate(e.b, env)
        if kind in ("FloorDiv", "FloorMod") and not np.all(b):
            raise Unknown
        return _held(_BINARY[kind](a, b))
    if type(e) is tirx.Var:
        found = env.get(e)
        if found is None:
            raise Unknown
        return found
    if type(e) is tirx.Cast and nodes.dtype_of(e).startswith("int"):
        return _wrapped(evaluate(e.value, env), int(nodes.dtype_of(e)[3:]))
    if type(e) is tirx.Not:
        return np.logical_not(evaluate(e.a, env))
    if type(e) is tirx.Select:
        return np.where(evaluate(e.condition, env), evaluate(e.true_value, env), evaluate(e.false_value, env))
    if type(e) is ir.Call and nodes.operator_name(e) in _CALLS:
        return _held(_CALLS[nodes.operator_name(e)](*(evaluate(a, env) for a in e.args)))
    raise Unknown


def _held(value: Array) -> Array:
    """Return a value that int64 holds.

    A number of Python may exceed it where the kernel's wraps.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Unknown
    return value


def _wrapped(value: Array, bits: int) -> Array:
    """Return an integer wrapped to a width; a bool as 0 or 1."""
    value = int(value) if isinstance(value, (bool, int)) else np.asarray(value).astype(np.int64)
    half = 1 << (bits - 1)
    return value if bits == 64 else ((value + half) & (2 * half - 1)) - half
