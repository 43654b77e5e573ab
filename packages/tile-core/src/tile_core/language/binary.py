"""Functions of two floats: atan2, hypot, fmod, copysign, nextafter."""

from __future__ import annotations

import math as _math
from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Expr
from tile_core.dtypes import DType
from tile_core.numerics.build import bind
from tile_core.numerics.neighbours import copysign_expr, nextafter_expr
from tile_core.values import scalar
from tile_core.values.checks import argument
from tile_core.values.promotion import float_type
from tile_core.values.scalar import is_python
from tile_core.values.value import Number, Scalar, Value, derive, elementwise, promote


@elementwise
def atan2(y: Scalar, x: Scalar) -> Number:
    """Return the angle of (``x``, ``y``), -pi to pi, with IEEE special cases."""
    return _applied("atan2", tirx.atan2, _math.atan2, y, x)


@elementwise
def hypot(x: Scalar, y: Scalar) -> Number:
    """Return ``sqrt(x**2 + y**2)`` without intermediate overflow.

    It is infinite if a side is, even if the other is NaN.
    """
    return _applied("hypot", tirx.hypot, _math.hypot, x, y)


@elementwise
def fmod(x: Scalar, y: Scalar) -> Number:
    """Return the exact remainder of ``x / y`` with the sign of ``x``.

    It is NaN if ``y`` is 0 or ``x`` is infinite.
    """
    return _applied("fmod", tirx.fmod, _math.fmod, x, y)


@elementwise
def copysign(x: Scalar, y: Scalar) -> Number:
    """Return the magnitude of ``x`` with the sign of ``y``, zeros and NaN included."""
    if is_python(x) and is_python(y):
        return _math.copysign(x, y)
    a, b = _floats("copysign", x, y)
    return _bitwise(copysign_expr, a, b)


@elementwise
def nextafter(x: Scalar, y: Scalar) -> Number:
    """Return the next number after ``x`` towards ``y`` in their type, subnormals included.

    It is ``y`` if they are equal.

    Raises
    ------
    BadArgument
        If the two are neither Python numbers nor floats of 16 or more bits.
    """
    if is_python(x) and is_python(y):
        return _math.nextafter(x, y)
    a, b = _floats("nextafter", x, y)
    return _bitwise(nextafter_expr, a, b)


def _applied(name: str, node: BinaryNode, python: Callable[[float, float], float], x: Scalar, y: Scalar) -> Number:
    if is_python(x) and is_python(y):
        try:
            return python(x, y)
        except (ValueError, OverflowError):
            return _math.nan if name == "fmod" else _math.inf
    a, b = promote(x, y)
    work = float_type(a.dtype)
    wide = [scalar.cast(v, work) for v in (a, b)]
    result = derive(node(wide[0].expr, wide[1].expr), work, a, b, *wide)
    return scalar.cast(result, a.dtype) if a.dtype.is_float else result


def _floats(name: str, x: Scalar, y: Scalar) -> tuple[Value, Value]:
    a, b = promote(x, y)
    if not a.dtype.is_float:
        raise argument(name, "an operand", f"a {a.dtype} value", "a float", "cast it")
    return a, b


def _bitwise(build: Callable[[Expr, Expr, DType], Expr], a: Value, b: Value) -> Value:
    expr = bind(a.expr, lambda u: bind(b.expr, lambda v: build(u, v, a.dtype), "y"), "x")
    return derive(expr, a.dtype, a, b)
