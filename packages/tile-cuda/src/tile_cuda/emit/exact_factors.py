"""Factors that fold into constants, and quotients that must be exact."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.regions import DIVIDE

__all__ = ["half_of", "integral_quotients", "inverse_of"]

#: Magnitudes of constants of float32 whose half and whose reciprocal are normal numbers.
_LEAST, _MOST = 2.0**-125, 2.0**125
#: Functions that make an integer of a float, and those whose result is one of their arguments, or its magnitude.
_INTEGRAL = frozenset(("floor", "ceil", "trunc", "round", "nearbyint", "tile.float_truncate"))
_SELECTING = frozenset(
    ("tile.float_max", "tile.float_min", "tile.float_max_nan", "tile.float_min_nan", "fabs", "if_then_else")
)


def half_of(x: Expr) -> Expr:
    """Return half of a float32, exact unless it is subnormal.

    A constant factor takes the half: of ``a * 0.5 - b`` it is ``a * 0.25 - b * 0.5``. The second product is one for all
    ``a``, and fused operations are as many as before.
    """
    if type(x) in (tirx.Add, tirx.Sub):
        return type(x)(half_of(x.a), half_of(x.b))
    found = _halved(x)
    return tirx.Mul(x, nodes.const(0.5, "float32")) if found is None else found


def inverse_of(x: Expr) -> Expr | None:
    """Return the reciprocal of a constant, or ``None`` if its product is less accurate.

    The reciprocal and the product are each rounded once: 1.5 units in the last place together.
    """
    value = _constant(x)
    return None if value is None else nodes.const(float(np.float32(1) / np.float32(value)), "float32")


def integral_quotients(body: Stmt) -> frozenset[int]:
    """Return the identities of the quotients of float32 that become integers.

    An error of one unit in the last place would become an error of 1: 49 / 49 must not become 0. A quotient may reach
    the function by the name of a variable, an array of registers, a minimum, a maximum, or a choice.
    """
    if not any(map(_is_quotient, collect(body, (tirx.Div, ir.Call)))):
        return frozenset()
    values: dict[int, list[Expr]] = defaultdict(list)
    for s in collect(body, (tirx.Bind, tirx.Let, tirx.BufferStore)):
        values[identity(s.buffer if type(s) is tirx.BufferStore else s.var)].append(s.value)
    pending = [a for e in collect(body, (ir.Call, tirx.Cast)) if _makes_integer(e) for a in _operands(e)]
    seen: set[int] = set()
    while pending:
        e = pending.pop()
        if identity(e) not in seen:
            seen.add(identity(e))
            pending += _sources(e, values)
    return frozenset(seen)


def _makes_integer(e: Expr) -> bool:
    """Whether an expression makes an integer of a float."""
    if type(e) is tirx.Cast:
        return "int" in nodes.dtype_of(e) and nodes.dtype_of(e.value) == "float32"
    return nodes.operator_name(e) in _INTEGRAL


def _sources(e: Expr, values: dict[int, list[Expr]]) -> Iterator[Expr]:
    """Yield the expressions of which one gives the value."""
    if type(e) is tirx.Var:
        yield from values[identity(e)]
    elif type(e) is ir.TensorLoad and nodes.scope_of(e.source) == "local":
        yield from values[identity(e.source)]
    elif type(e) in (tirx.Min, tirx.Max):
        yield from (e.a, e.b)
    elif type(e) is tirx.Select:
        yield from (e.true_value, e.false_value)
    elif type(e) is tirx.Let:
        yield e.body
    elif type(e) is ir.Call and nodes.operator_name(e) in _SELECTING:
        yield from _operands(e)


def _operands(e: Expr) -> list[Expr]:
    return [e.value] if type(e) is tirx.Cast else list(e.args)


def _is_quotient(e: Expr) -> bool:
    """Whether an expression divides floats of 32 bits."""
    return nodes.dtype_of(e) == "float32" and (type(e) is tirx.Div or nodes.operator_name(e) == DIVIDE)


def _halved(x: Expr) -> Expr | None:
    """Return half of a constant or of a product with one, or ``None``."""
    value = _constant(x)
    if value is not None:
        return nodes.const(value / 2, "float32")
    if type(x) is tirx.Mul:
        for factor, other in ((x.b, x.a), (x.a, x.b)):
            half = _halved(factor)
            if half is not None:
                return tirx.Mul(other, half)
    return None


def _constant(x: Expr) -> float | None:
    """Return the value of a constant float32 of moderate size."""
    if type(x) is not tirx.FloatImm:
        return None
    value = float(np.float32(x.value))
    return value if _LEAST <= math.fabs(value) <= _MOST else None
