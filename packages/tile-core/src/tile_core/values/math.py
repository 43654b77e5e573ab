"""Scalar functions. Python numbers in, Python numbers out; a runtime value anywhere makes a runtime value.

Functions of ``float16`` and ``bfloat16`` values are computed in ``float32`` and rounded; those of integers (other than
``abs``, ``min``, ``max``, ``clamp``, ``pow``) are computed in ``float32``.
"""

from __future__ import annotations

import builtins
import math as _math
from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.numerics.inverse import function_call
from tile_core.numerics.minmax import round_away_expr
from tile_core.values import scalar
from tile_core.values.promotion import float_type
from tile_core.values.value import as_value, derive

_PYTHON = (bool, int, float)


def _unary(name: str, node: Callable[[Any], Any], python: Callable[[float], float]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if type(x) in _PYTHON:
            return _python(name, python, _float(x))
        value = as_value(x)
        work = float_type(value.dtype)
        wide = scalar.cast(value, work)
        result = derive(node(wide.expr), work, value, wide)
        return scalar.cast(result, value.dtype) if value.dtype.is_float and not value.dtype.is_narrow else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {name}(x); of Python numbers a float, of runtime values a value of the same float type."
    return function


def _float(x: Any) -> float:
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
round = _unary("round", round_away_expr, _round_half_away)


def _python_cbrt(x: float) -> float:
    root = x ** (1 / 3) if _math.isfinite(x) else x
    whole = builtins.round(root) if _math.isfinite(root) else 0
    return float(whole) if whole**3 == x else root


def _predicate(name: str, node: Callable[[Any], Any], python: Callable[[float], bool]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if type(x) in _PYTHON:
            return python(_float(x))
        value = as_value(x)
        if not value.dtype.is_float:
            return as_value(name == "isfinite")
        wide = scalar.cast(value, float_type(value.dtype))
        return derive(node(wide.expr), DTYPES["bool"], value, wide)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return whether x {name}; integers are finite."
    return function


isnan = _predicate("isnan", tirx.isnan, _math.isnan)
isinf = _predicate("isinf", lambda e: _is_infinite(e), _math.isinf)
isfinite = _predicate("isfinite", lambda e: tirx.LT(tirx.abs(e), _infinite(e)), _math.isfinite)


def _infinite(e: Expr) -> Any:
    return tirx.FloatImm(nodes.dtype_of(e), _math.inf)


def _is_infinite(e: Expr) -> Any:
    return tirx.EQ(tirx.abs(e), _infinite(e))


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``: two roundings, unless an option of the target allows one; see ``ieee_fma``."""
    return a * b + c
