"""Scalar functions. Python numbers in, Python numbers out; a runtime value anywhere makes a runtime value.

Functions of ``float16`` and ``bfloat16`` values are computed in ``float32`` and rounded; those of integers (other than
``abs``, ``min``, ``max``, ``clamp``, ``pow``) are computed in ``float32``.
"""

from __future__ import annotations

import builtins
import functools
import math as _math
from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadArgument
from tile_core.ir import nodes
from tile_core.language import scalar
from tile_core.language.checks import truth
from tile_core.language.promotion import computed, integer_range, largest
from tile_core.language.value import Buffer, Region, Value, as_value, derive, promote
from tile_core.numerics.build import bind
from tile_core.numerics.minmax import round_away_expr

_PYTHON = (bool, int, float)


def cast(value: Any, dtype: Any) -> Value:
    """Return ``value`` as ``dtype``: rounded to nearest even; integers wrap (see ``numerics/rules.py``)."""
    element = to_dtype(dtype)
    if isinstance(value, float) and element.is_integer and _math.isfinite(value):
        value = _math.trunc(value)
    if type(value) in _PYTHON:
        value = as_value(bool(value) if element == "bool" else value, computed(element))
    return scalar.cast(value, element)


def reinterpret(value: Any, dtype: Any) -> Value:
    """Return the bits of ``value`` as ``dtype``, which has the same width. ``reinterpret(dtype, value)`` works too.

    Raises
    ------
    BadArgument
        If the widths differ.
    """
    if isinstance(value, (str, type)) or (
        isinstance(dtype, (Value, Buffer)) and not isinstance(value, (Value, Buffer))
    ):
        value, dtype = dtype, value
    source, element = as_value(value), to_dtype(dtype)
    if source.dtype.bits != element.bits:
        found, expected = f"{element} ({element.bits} bits)", f"{source.dtype.bits} bits, as {source.dtype} has"
        raise _argument("reinterpret", "dtype", found, expected, "cast instead, or use T.view for buffers")
    if source.dtype == element:
        return source
    return derive(tirx.reinterpret(scalar.tvm_name(element), source.expr), element, source)


def _unary(name: str, node: Callable[[Any], Any], python: Callable[[float], float]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if type(x) in _PYTHON:
            return _python(name, python, _float(x))
        value = as_value(x)
        work = _float_type(value.dtype)
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


def _float_type(dtype: DType) -> DType:
    return DTYPES["float64" if dtype in ("float64", "int64", "uint64") else "float32"]


def _python(name: str, function: Callable[[float], float], x: float) -> float:
    if _math.isnan(x):
        return x
    try:
        return function(x)
    except (ValueError, OverflowError):
        # IEEE results where Python raises: poles, domain errors, overflow.
        if name in ("exp", "exp2", "exp10", "pow"):
            return _math.inf
        if name.startswith("log"):
            return -_math.inf if x == (-1.0 if name == "log1p" else 0.0) else _math.nan
        return _math.inf if name == "rsqrt" and x == 0 else _math.nan


def _round_half_away(x: float) -> float:
    return _math.copysign(_math.floor(builtins.abs(x) + 0.5), x) if _math.isfinite(x) and builtins.abs(x) < 2**52 else x


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: float(function(x)) if _math.isfinite(x) else x


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
tanh = _unary("tanh", tirx.tanh, _math.tanh)
sigmoid = _unary("sigmoid", tirx.sigmoid, lambda x: 1.0 / (1.0 + _math.exp(-x)) if x > -700 else 0.0)
erf = _unary("erf", tirx.erf, _math.erf)
floor = _unary("floor", tirx.floor, _whole(_math.floor))
ceil = _unary("ceil", tirx.ceil, _whole(_math.ceil))
trunc = _unary("trunc", tirx.trunc, _whole(_math.trunc))
nearbyint = _unary("nearbyint", tirx.nearbyint, _whole(builtins.round))
round = _unary("round", round_away_expr, _round_half_away)


def _predicate(name: str, node: Callable[[Any], Any], python: Callable[[float], bool]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if type(x) in _PYTHON:
            return python(_float(x))
        value = as_value(x)
        if not value.dtype.is_float:
            return as_value(name == "isfinite")
        wide = scalar.cast(value, _float_type(value.dtype))
        return derive(node(wide.expr), DTYPES["bool"], value, wide)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return whether x {name}; integers are finite."
    return function


isnan = _predicate("isnan", tirx.isnan, _math.isnan)
isinf = _predicate("isinf", lambda e: _is_infinite(e), _math.isinf)
isfinite = _predicate("isfinite", lambda e: tirx.LT(tirx.abs(e), _infinite(e)), _math.isfinite)


def _infinite(e: Any) -> Any:
    return tirx.FloatImm(nodes.dtype_of(e), _math.inf)


def _is_infinite(e: Any) -> Any:
    return tirx.EQ(tirx.abs(e), _infinite(e))


def abs(x: Any) -> Any:
    """Return the absolute value; of the least integer of a type it is that integer, as wrapping says."""
    if type(x) in _PYTHON:
        return builtins.abs(x)
    value = as_value(x)
    if value.dtype.kind == "uint" or value.dtype == "bool":
        return value
    if value.dtype.is_integer:
        zero = nodes.zero(str(value.dtype))
        size = bind(value.expr, lambda v: tirx.Select(tirx.LT(v, zero), tirx.Sub(zero, v), v))
        return derive(size, value.dtype, value)
    wide = scalar.cast(value, _float_type(value.dtype))
    result = derive(tirx.abs(wide.expr), wide.dtype, value, wide)
    return result if value.dtype.is_narrow else scalar.cast(result, value.dtype)


def max(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the greatest; a number beats NaN unless ``nan_propagate``, and +0 beats -0 (``numerics/rules.py``)."""
    return _extreme("max", (a, b, *more), nan_propagate)


def min(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the least; a number beats NaN unless ``nan_propagate``, and -0 beats +0 (``numerics/rules.py``)."""
    return _extreme("min", (a, b, *more), nan_propagate)


def _extreme(name: str, items: tuple[Any, ...], nan_propagate: bool) -> Any:
    result = items[0]
    for item in items[1:]:
        result = _extreme2(name, result, item, nan_propagate)
    return result


def _extreme2(name: str, a: Any, b: Any, nan_propagate: bool) -> Any:
    if type(a) in _PYTHON and type(b) in _PYTHON:
        numbers = [x for x in (a, b) if x == x]
        if len(numbers) < 2:
            return (_math.nan if nan_propagate else numbers[0]) if numbers else _math.nan
        return builtins.max(a, b) if name == "max" else builtins.min(a, b)
    x, y = promote(a, b)
    if not x.dtype.is_float:
        return derive((tirx.Max if name == "max" else tirx.Min)(x.expr, y.expr), x.dtype, x, y)
    from tile_core.numerics.extremes import float_extreme

    return derive(float_extreme(name, x.expr, y.expr, nan_propagate), x.dtype, x, y)


def clamp(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` limited to [``low``, ``high``] in the type of ``x``; NaN stays NaN."""
    if all(type(v) in _PYTHON for v in (x, low, high)):
        return x if x != x else builtins.min(builtins.max(x, low), high)
    x, low = promote(x, low)
    x, high = promote(x, high)
    low = scalar.cast(low, x.dtype)
    from tile_core.numerics.minmax import clamp_expr

    return derive(clamp_expr(x.expr, low.expr, high.expr), x.dtype, x, low, high)


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``; whether the product is rounded in between is the target's choice."""
    return a * b + c


def pow(x: Any, y: Any) -> Any:
    """Return ``x ** y``: constant integer powers of up to 64 by products, others by the target's function.

    Integers to a runtime or negative power are computed in ``float32`` (``float64`` for 64-bit ones).
    """
    if type(x) in _PYTHON and type(y) in _PYTHON:
        return _python_pow(x, y)
    exponent = y if isinstance(y, int) else int(y) if isinstance(y, float) and y.is_integer() else None
    base = as_value(x, None if not isinstance(y, Value) or type(x) not in _PYTHON else _weak(x, y))
    integral = not base.dtype.is_float and isinstance(y, int)
    if exponent is not None and builtins.abs(exponent) <= 64 and not (integral and exponent < 0):
        if not base.dtype.is_float and not integral:
            base = scalar.cast(base, _float_type(base.dtype))
        return _product(base, exponent)
    a, b = promote(base, y)
    work = _float_type(a.dtype)
    result = derive(tirx.pow(scalar.cast(a, work).expr, scalar.cast(b, work).expr), work, a, b)
    return scalar.cast(result, a.dtype) if a.dtype.is_float else result


def _python_pow(x: Any, y: Any) -> Any:
    try:
        result = x**y
    except OverflowError:
        return _math.copysign(_math.inf, x) if y % 2 == 1 else _math.inf
    except ZeroDivisionError:
        return _math.inf
    return _math.nan if isinstance(result, complex) else result


def _weak(number: Any, other: Value) -> DType:
    from tile_core.language.promotion import weak_type

    return weak_type(number, other.dtype)


def _product(base: Value, exponent: int) -> Value:
    if base.dtype == "bool":
        base = scalar.cast(base, DTYPES["int32"])
    narrow = base.dtype.is_float and base.dtype.bits < 32
    work = scalar.cast(base, DTYPES["float32"]) if narrow else base
    power = _power_expr(work.expr, builtins.abs(exponent), work.dtype)
    result = derive(power, work.dtype, work) if exponent else as_value(1, work.dtype)
    if exponent < 0:
        result = scalar.divide(as_value(1.0, work.dtype), result)
    return scalar.cast(result, base.dtype) if narrow and not base.dtype.is_narrow else result


def _power_expr(x: Any, n: int, dtype: DType) -> Any:
    """Return the product of ``n`` factors, squaring; every factor is computed once."""
    if n <= 1:
        return x
    multiply = tirx.Mul if dtype.is_float else lambda a, b: a * b

    def square(v: Any) -> Any:
        half = _power_expr(multiply(v, v), n // 2, dtype)
        return multiply(half, v) if n % 2 else half

    return bind(x, square, "p")


def if_then_else(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` or ``no``; only the chosen side is evaluated."""
    return _choice(tirx.if_then_else, condition, yes, no)


def Select(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` or ``no``; both sides are evaluated."""
    return _choice(tirx.Select, condition, yes, no)


def _choice(node: Any, condition: Any, yes: Any, no: Any) -> Any:
    from tile_core.frontend.conditions import as_condition

    value = as_condition(condition)
    if value is None:
        return yes if truth("if_then_else", condition) else no
    if all((isinstance(s, Buffer) and not s.is_scalar) or isinstance(s, Region) for s in (yes, no)):
        raise _argument("if_then_else", "a side", "a tile", "a scalar", "use an `if` statement around the tile ops")
    a, b = promote(yes, no)
    return derive(node(value.expr, a.expr, b.expr), a.dtype, value, a, b)


def ceildiv(a: Any, b: Any) -> Any:
    """Return the quotient rounded up; of Python ints a Python int."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // _nonzero("ceildiv", b))
    x, y = _integers("ceildiv", a, b)
    return derive(tirx.ceildiv(x.expr, y.expr), x.dtype, x, y)


def floordiv(a: Any, b: Any) -> Any:
    """Return the quotient rounded down."""
    if isinstance(a, int) and isinstance(b, int):
        return a // _nonzero("floordiv", b)
    return scalar.floordiv(a, b)


def floormod(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of ``b``; of floats ``a - floor(a / b) * b``: inexact for huge quotients."""
    if isinstance(a, int) and isinstance(b, int):
        return a % _nonzero("floormod", b)
    return scalar.floormod(a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """Return the quotient rounded towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        size = builtins.abs(a) // builtins.abs(_nonzero("truncdiv", b))
        return size if (a >= 0) == (b >= 0) else -size
    x, y = _integers("truncdiv", a, b)
    return derive(tirx.truncdiv(x.expr, y.expr), x.dtype, x, y)


def truncmod(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of ``a``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - truncdiv(a, b) * b
    x, y = _integers("truncmod", a, b)
    return derive(tirx.truncmod(x.expr, y.expr), x.dtype, x, y)


def _integers(name: str, a: Any, b: Any) -> tuple[Value, Value]:
    x, y = promote(a, b)
    if not x.dtype.is_integer:
        raise _argument(name, "an operand", f"a {x.dtype} value", "integers", "cast the operands")
    scalar.refuse_zero(f"T.{name}", y)
    return x, y


def _nonzero(name: str, b: int) -> int:
    if b == 0:
        raise _argument(name, "the divisor", "0", "another number", "check the block sizes")
    return b


def shift_left(a: Any, b: Any) -> Any:
    """Return ``a << b``, in the type of ``a`` or of a wider runtime count; 0 when the count is the width or more."""
    return a << b if isinstance(a, int) and isinstance(b, int) else scalar.shift("left", a, b)


def shift_right(a: Any, b: Any) -> Any:
    """Return ``a >> b`` with the sign for signed types, in the type of ``a`` or of a wider runtime count."""
    return a >> b if isinstance(a, int) and isinstance(b, int) else scalar.shift("right", a, b)


def bitwise_and(a: Any, b: Any) -> Any:
    """Return ``a & b``."""
    return a & b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("and", a, b)


def bitwise_or(a: Any, b: Any) -> Any:
    """Return ``a | b``."""
    return a | b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("or", a, b)


def bitwise_xor(a: Any, b: Any) -> Any:
    """Return ``a ^ b``."""
    return a ^ b if isinstance(a, int) and isinstance(b, int) else scalar.bitwise("xor", a, b)


def bitwise_not(a: Any) -> Any:
    """Return ``~a``."""
    return ~a if isinstance(a, int) else ~as_value(a)


def popcount(x: Any) -> Any:
    """Return the number of bits that are 1, as ``int32``; of Python ints a Python int."""
    if isinstance(x, int):
        return bin(x).count("1")
    value = as_value(x)
    scalar.need_integer("T.popcount", value)
    unsigned = scalar.cast(value, DTYPES["uint64" if value.dtype.bits == 64 else "uint32"])
    if value.dtype.kind == "int" and value.dtype.bits < 32:
        unsigned = unsigned & (2**value.dtype.bits - 1)
    return scalar.cast(derive(tirx.popcount(unsigned.expr), unsigned.dtype, value), DTYPES["int32"])


def infinity(dtype: Any) -> Value:
    """Return the infinity of a float type."""
    element = to_dtype(dtype)
    if not element.is_float or (element.is_narrow and element != "float8_e5m2"):
        raise _argument("infinity", "dtype", repr(str(element)), "a type with infinities", "use T.max_value(dtype)")
    return as_value(_math.inf, computed(element))


def max_value(dtype: Any) -> Value:
    """Return the greatest finite value of a type."""
    element = to_dtype(dtype)
    if element == "bool":
        return as_value(True)
    return as_value(integer_range(element)[1] if element.is_integer else largest(element), computed(element))


def min_value(dtype: Any) -> Value:
    """Return the least finite value of a type (of floats the negative one of greatest size)."""
    element = to_dtype(dtype)
    if element == "bool":
        return as_value(False)
    return as_value(integer_range(element)[0] if element.is_integer else -largest(element), computed(element))


def any_of(*items: Any) -> Any:
    """Return whether an element of a buffer, slice or list is true (not zero)."""
    return _combined("any_of", items)


def all_of(*items: Any) -> Any:
    """Return whether all elements of a buffer, slice or list are true (not zero)."""
    return _combined("all_of", items)


def _combined(name: str, items: tuple[Any, ...]) -> Any:
    from tile_core.frontend.support import and_, or_

    elements = [e for item in items for e in _elements(name, item)]
    if name == "any_of":
        result: Any = False
        for e in elements:
            result = or_(result, functools.partial(_same, e))
        return result
    result = True
    for e in elements:
        result = and_(result, functools.partial(_same, e))
    return result


def _same(x: Any) -> Any:
    return x


def _elements(name: str, item: Any) -> list[Any]:
    if isinstance(item, (tuple, list)):
        return [e for i in item for e in _elements(name, i)]
    if isinstance(item, Buffer) and not item.is_scalar:
        item = item.whole()
    if not isinstance(item, Region):
        if not isinstance(item, (Value, Buffer)):
            truth(name, item)
        return [item]
    count = 1
    for extent in item.extents:
        if not isinstance(extent, int):
            found, instead = "of runtime size", "write a loop with a T.alloc_var flag"
            raise _argument(name, "the slice", found, "a static slice", instead)
        count *= extent
    indices: list[tuple[Any, ...]] = [()]
    for low, extent in zip(item.mins, item.extents, strict=True):
        indices = [(*i, low + d) for i in indices for d in range(extent)]
    return [item.buffer[i] for i in indices]


def _argument(function: str, name: str, found: str, expected: str, instead: str) -> BadArgument:
    return BadArgument(function=function, name=name, found=found, expected=expected, instead=instead)
