"""Floats to integers: towards zero, saturating to the type's limits, and NaN becomes 0.

Processors and languages disagree: in C and LLVM an out-of-range conversion is undefined. Here is the rule as a Python
function, as an expression for any number of lanes, and as an operator for targets whose own conversion follows it.
"""

from __future__ import annotations

import math

import numpy as np

from tile_core.compat.tvm import ir
from tile_core.compat.types import Expr, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.numerics.build import as_type, bind, cast, constant, constants, is_nan, select, type_name

__all__ = ["limits_of", "truncate_call", "truncate_expr", "truncated"]


def limits_of(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    kind = DTYPES[dtype]
    if kind.kind == "uint":
        return 0, 2**kind.bits - 1
    return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1


def truncated(number: float, dtype: str) -> int:
    """Return a Python number converted to an integer type."""
    low, high = limits_of(dtype)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return high if number > 0 else low
    return min(max(math.trunc(number), low), high)


def truncate_call(value: Expr, dtype: str) -> Expr:
    """Return a call of ``tile.float_truncate``, which a target's text prints as its own conversion.

    Parameters
    ----------
    value
        Expression of type float32 or float64.
    dtype
        An integer type.
    """
    return ir.Call(nodes.register_scalar_op(f"{nodes.FLOAT_PREFIX}truncate"), [value], ret_ty=as_type(dtype, value))


def truncate_expr(value: Expr, dtype: str) -> Expr:
    """Return the expanded conversion, which only converts numbers in the type's range.

    Parameters
    ----------
    value
        Expression of type float32 or float64.
    dtype
        An integer type; of those of 4 bits an expression of type int8 or uint8 results.
    """
    return bind(value, lambda v: _written_out(v, dtype), "x")


def _written_out(v: Var, dtype: str) -> Expr:
    source = type_name(v)
    low, high = limits_of(dtype)
    result = dtype if DTYPES[dtype].bits >= 8 else ("u" if low == 0 else "") + "int8"
    k = constants(source, v)
    # NaN becomes the lower limit here, which is 0 for unsigned types.
    value = select(v > k(low), v, k(low))
    below = _largest_below(high + 1, source)
    value = bind(value, lambda c: select(c < k(below), c, k(below)), "c")
    if low:
        value = select(is_nan(v), k(0.0), value)
    integer = cast(result, value)
    if below < high:  # between them are integers that are not floats, and the limit itself
        integer = select(v > k(below), constant(high, result, v), integer)
    return integer


def _largest_below(power: int, source: str) -> float:
    """Return the greatest whole number below ``power`` that the float type holds."""
    exact = power - 1
    number = np.dtype(source).type(exact)
    return float(number) if int(number) == exact else float(np.nextafter(number, np.dtype(source).type(0)))
