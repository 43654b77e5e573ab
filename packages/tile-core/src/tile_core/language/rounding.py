"""Arithmetic with a named rounding: ``T.ieee_add(a, b, rounding_mode="rz")``.

Operands are ``float32`` or ``float64``. The result is the exact one, rounded once, and no compiler contracts the
operation with another. ``"rn"`` (to nearest, ties to even) works on every target; ``"rz"`` (towards zero), ``"ru"``
(up) and ``"rd"`` (down) where the target has instructions for them.
"""

from __future__ import annotations

from tile_core.numerics.inverse import function_call
from tile_core.values.checks import argument, shown
from tile_core.values.scalar import as_value, derive, promote
from tile_core.values.value import Scalar, Value, elementwise

MODES = ("rn", "rz", "ru", "rd")


@elementwise
def ieee_add(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a + b``, rounded as named."""
    return _apply("add", (a, b), rounding_mode)


@elementwise
def ieee_sub(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a - b``, rounded as named."""
    return _apply("sub", (a, b), rounding_mode)


@elementwise
def ieee_mul(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a * b``, rounded as named."""
    return _apply("mul", (a, b), rounding_mode)


@elementwise
def ieee_fma(a: Scalar, b: Scalar, c: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a * b + c`` with one rounding, as named."""
    return _apply("fma", (a, b, c), rounding_mode)


@elementwise
def ieee_fdiv(a: Scalar, b: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``a / b``, rounded as named."""
    return _apply("fdiv", (a, b), rounding_mode)


@elementwise
def ieee_frcp(a: Scalar, rounding_mode: str = "rn") -> Value:
    """Return ``1 / a``, rounded as named."""
    return _apply("frcp", (a,), rounding_mode)


@elementwise
def ieee_fsqrt(a: Scalar, rounding_mode: str = "rn") -> Value:
    """Return the square root of ``a``, rounded as named."""
    return _apply("fsqrt", (a,), rounding_mode)


@elementwise
def ieee_frsqrt(a: Scalar) -> Value:
    """Return ``1 / sqrt(a)`` of a ``float32``, rounded to the nearest."""
    value = as_value(a)
    if value.dtype != "float32":
        raise argument("ieee_frsqrt", "a", f"a {value.dtype} value", "a float32 value", "use 1 / T.sqrt(a)")
    return _apply("frsqrt", (a,), "rn")


def _apply(name: str, operands: tuple[Scalar, ...], mode: str) -> Value:
    function = f"ieee_{name}"
    if mode not in MODES:
        raise argument(function, "rounding_mode", shown(mode), " or ".join(map(repr, MODES)), "leave it out for 'rn'")
    values = [as_value(operands[0])]
    for x in operands[1:]:
        first, value = promote(values[0], x)
        values = [*[promote(v, first)[0] for v in values], value]
    if len({v.dtype for v in values}) != 1 or values[0].dtype not in ("float32", "float64"):
        found = " and ".join(sorted({str(v.dtype) for v in values}))
        raise argument(function, "an operand", found, "float32 or float64", "cast the operands")
    call = function_call(f"{function}_{mode}_{values[0].dtype}", *[v.expr for v in values])
    return derive(call, values[0].dtype, *values)
