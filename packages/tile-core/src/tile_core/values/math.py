"""Scalar functions: of Python numbers at trace time, of runtime values at run time.

Functions of ``float16`` and ``bfloat16`` values are computed in ``float32`` and rounded; those of integers (other than
``abs``, ``min``, ``max``, ``clamp``, ``pow``) are computed in ``float32``.
"""

from __future__ import annotations

import builtins
import math as _math
from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, UnaryNode
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.numerics.inverse import function_call
from tile_core.numerics.minmax import round_away_expr
from tile_core.values import scalar
from tile_core.values.checks import argument, shown
from tile_core.values.promotion import float_type
from tile_core.values.scalar import Number, Scalar, Value, is_python
from tile_core.values.value import as_value, derive, elementwise

_MEANINGS = {
    "exp": "e to the power ``x``", "exp2": "2 to the power ``x``", "exp10": "10 to the power ``x``",
    "expm1": "``exp(x) - 1``, accurate near 0", "log": "the natural logarithm", "log2": "the logarithm to base 2",
    "log10": "the logarithm to base 10", "log1p": "``log(1 + x)``, accurate near 0", "sqrt": "the square root",
    "rsqrt": "``1 / sqrt(x)``", "cbrt": "the cube root", "sin": "the sine of an angle in radians",
    "cos": "the cosine of an angle in radians", "tan": "the tangent of an angle in radians",
    "asin": "the angle from -pi/2 to pi/2 whose sine is ``x``", "acos": "the angle from 0 to pi whose cosine is ``x``",
    "atan": "the angle from -pi/2 to pi/2 whose tangent is ``x``", "sinh": "the hyperbolic sine",
    "cosh": "the hyperbolic cosine", "tanh": "the hyperbolic tangent", "asinh": "the inverse hyperbolic sine",
    "acosh": "the inverse hyperbolic cosine", "atanh": "the inverse hyperbolic tangent",
    "sigmoid": "``1 / (1 + exp(-x))``", "erf": "the error function", "floor": "``x`` rounded down to an integer",
    "ceil": "``x`` rounded up to an integer", "trunc": "``x`` rounded to an integer towards zero",
    "nearbyint": "``x`` rounded to the nearest integer, ties to even", "round":
    "``x`` rounded to the nearest integer, ties away from zero", "rint":
    "``x`` rounded to the nearest integer, ties to even", "isnan": "is NaN", "isinf": "is an infinity",
    "isfinite": "is neither NaN nor an infinity",
}  # fmt: skip


def _unary(name: str, node: UnaryNode, python: Callable[[float], float]) -> Callable[[Scalar], Number]:
    def function(x: Scalar) -> Number:
        if is_python(x):
            return _python(name, python, _float(x))
        value = as_value(x)
        work = float_type(value.dtype)
        wide = scalar.cast(value, work)
        result = derive(node(wide.expr), work, value, wide)
        return scalar.cast(result, value.dtype) if value.dtype.is_float and not value.dtype.is_narrow else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {_MEANINGS[name]}, as a float of the type of ``x``; of Python numbers a Python float."
    return elementwise(function)


def _float(x: float) -> float:
    try:
        return float(x)
    except OverflowError:
        return _math.inf if x > 0 else -_math.inf


def _python(name: str, function: Callable[[float], float], x: float) -> float:
    if _math.isnan(x):
        return x
    try:
        return function(x)
    except (ValueError, OverflowError):
        # IEEE results where Python raises: poles, domain errors, overflow.
        if name in ("exp", "exp2", "exp10", "pow", "cosh", "expm1"):
            return _math.inf
        if name == "sinh" or (name == "atanh" and builtins.abs(x) == 1):
            return _math.copysign(_math.inf, x)
        if name.startswith("log"):
            return -_math.inf if x == (-1.0 if name == "log1p" else 0.0) else _math.nan
        return _math.inf if name == "rsqrt" and x == 0 else _math.nan


def _round_half_away(x: float) -> float:
    return _math.copysign(_math.floor(builtins.abs(x) + 0.5), x) if _math.isfinite(x) and builtins.abs(x) < 2**52 else x


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: _math.copysign(function(x), x) if _math.isfinite(x) else x


exp = _unary("exp", tirx.exp, _math.exp)
exp2 = _unary("exp2", tirx.exp2, lambda x: 2.0**x)
exp10 = _unary("exp10", tirx.exp10, lambda x: 10.0**x)
log = _unary("log", tirx.log, _math.log)
log2 = _unary("log2", tirx.log2, _math.log2)
log10 = _unary("log10", tirx.log10, _math.log10)
log1p = _unary("log1p", tirx.log1p, _math.log1p)
sqrt = _unary("sqrt", tirx.sqrt, _math.sqrt)
rsqrt = _unary("rsqrt", tirx.rsqrt, lambda x: 1.0 / _math.sqrt(x) if x else _math.inf)
sin = _unary("sin", tirx.sin, _math.sin)
cos = _unary("cos", tirx.cos, _math.cos)
tan = _unary("tan", tirx.tan, _math.tan)
asin = _unary("asin", tirx.asin, _math.asin)
acos = _unary("acos", tirx.acos, _math.acos)
atan = _unary("atan", tirx.atan, _math.atan)
sinh = _unary("sinh", tirx.sinh, _math.sinh)
cosh = _unary("cosh", tirx.cosh, _math.cosh)
asinh = _unary("asinh", tirx.asinh, _math.asinh)
acosh = _unary("acosh", tirx.acosh, _math.acosh)
atanh = _unary("atanh", tirx.atanh, _math.atanh)
expm1 = _unary("expm1", lambda e: function_call("expm1", e), _math.expm1)
cbrt = _unary("cbrt", lambda e: function_call("cbrt", e), lambda x: _math.copysign(_python_cbrt(builtins.abs(x)), x))
tanh = _unary("tanh", tirx.tanh, _math.tanh)
sigmoid = _unary("sigmoid", tirx.sigmoid, lambda x: 1.0 / (1.0 + _math.exp(-x)) if x > -700 else 0.0)
erf = _unary("erf", tirx.erf, _math.erf)
floor = _unary("floor", tirx.floor, _whole(_math.floor))
ceil = _unary("ceil", tirx.ceil, _whole(_math.ceil))
trunc = _unary("trunc", tirx.trunc, _whole(_math.trunc))
nearbyint = _unary("nearbyint", tirx.nearbyint, _whole(builtins.round))
rint = _unary("rint", tirx.nearbyint, _whole(builtins.round))
_round_away = _unary("round", round_away_expr, _round_half_away)
_ROUNDINGS = {"rna": _round_away, "rn": nearbyint, "rz": trunc, "ru": ceil, "rd": floor}


def round(x: Scalar, mode: str = "rna") -> Number:
    """Return ``x`` rounded to an integer, as a float of its type.

    Parameters
    ----------
    mode
        ``"rna"`` to the nearest, ties away from zero; ``"rn"`` to the nearest, ties to even; ``"rz"`` towards zero;
        ``"ru"`` up; ``"rd"`` down.

    Raises
    ------
    BadArgument
        For another mode.
    """
    if not isinstance(mode, str) or mode not in _ROUNDINGS:
        raise argument("round", "mode", shown(mode), " or ".join(map(repr, _ROUNDINGS)), "leave it out for 'rna'")
    return _ROUNDINGS[mode](x)


def _python_cbrt(x: float) -> float:
    root = x ** (1 / 3) if _math.isfinite(x) else x
    whole = builtins.round(root) if _math.isfinite(root) else 0
    return float(whole) if whole**3 == x else root


def _predicate(name: str, node: UnaryNode, python: Callable[[float], bool]) -> Callable[[Scalar], bool | Value]:
    def function(x: Scalar) -> bool | Value:
        if is_python(x):
            return python(_float(x))
        value = as_value(x)
        if not value.dtype.is_float:
            return as_value(name == "isfinite")
        wide = scalar.cast(value, float_type(value.dtype))
        return derive(node(wide.expr), DTYPES["bool"], value, wide)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return whether ``x`` {_MEANINGS[name]}; integers are finite."
    return elementwise(function)


isnan = _predicate("isnan", tirx.isnan, _math.isnan)
isinf = _predicate("isinf", lambda e: _is_infinite(e), _math.isinf)
isfinite = _predicate("isfinite", lambda e: tirx.LT(tirx.abs(e), _infinite(e)), _math.isfinite)


def _infinite(e: Expr) -> Expr:
    return tirx.FloatImm(nodes.dtype_of(e), _math.inf)


def _is_infinite(e: Expr) -> Expr:
    return tirx.EQ(tirx.abs(e), _infinite(e))


@elementwise
def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` with two roundings, unless a target option allows one.

    See ``ieee_fma``.
    """
    return a * b + c
