"""Factors that fold into constants: halves and reciprocals."""

from __future__ import annotations

import math

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import nodes

__all__ = ["half_of", "inverse_of"]

#: Magnitudes of constants of float32 whose half and whose reciprocal are normal numbers.
_LEAST, _MOST = 2.0**-125, 2.0**125


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
