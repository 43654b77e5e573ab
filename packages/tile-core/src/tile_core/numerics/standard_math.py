"""Exponentials of levels ``"standard"`` and ``"fast"``, with fewer operations than those of ``math``.

Level ``"strict"`` keeps the functions of ``math``, whose bits are the language's. Like these they are straight-line
expressions for any number of lanes, right for subnormal numbers, infinities and NaN, and within 2 ulp (the sigmoid 3).

Adding 1.5 * 2^23 + k to a number leaves the integer nearest to it, plus k, in the low bits of the sum. A shift makes a
power of two of these bits if k is the bias of the exponent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tile_core.compat.types import BinaryNode, Expr, Var
from tile_core.numerics import math
from tile_core.numerics.build import bind, constant, constants, float_of, horner, signed_bits_of
from tile_core.numerics.math import EXP, EXP2, LN2_HIGH, LN2_LOW, LOG2E, limited

__all__ = ["erf", "exp", "exp2", "sigmoid", "tanh"]

_BIAS = 127
_ROUNDER = 1.5 * 2.0**23


def exp(x: Expr) -> Expr:
    """Return e^x.

    x = n ln2 + r with a high part of ln2 whose product with n is exact, then a polynomial of degree 6.
    """
    return bind(limited(x, -104.0, 89.0), lambda v: _natural(v, 2 * _BIAS, _scale_twice))


def exp2(x: Expr) -> Expr:
    """2^x, exact for integers. The reduction x = n + r is exact."""

    def reduced(v: Var, t: Var, n: Var) -> Expr:
        one = constant(1.0, "float32", v)
        return _scale_twice(bind(v - n, lambda r: one + r * horner(r, EXP2["float32"]), "r"), t, n)

    return bind(limited(x, -151.0, 130.0), lambda v: _nearest(v, 2 * _BIAS, lambda t, n: reduced(v, t, n)))


def _power(x: Var) -> Expr:
    return _natural(x, _BIAS, lambda p, t, n: p * _power_of_two(t))


sigmoid = functools.partial(math.sigmoid, exponential=exp)
tanh = functools.partial(math.tanh, power=_power)
erf = functools.partial(math.erf, power=_power)


def _natural(v: Var, bias: int, scale: Callable[[Expr, Var, Var], Expr]) -> Expr:
    k = constants("float32", v)

    def reduced(t: Var, n: Var) -> Expr:
        rest = (v - n * k(LN2_HIGH)) - n * k(LN2_LOW)
        return scale(bind(rest, lambda r: k(1.0) + r * (k(1.0) + r * horner(r, EXP)), "r"), t, n)

    return _nearest(v * k(LOG2E), bias, reduced)


def _nearest(x: Expr, bias: int, body: BinaryNode) -> Expr:
    """Return ``body(t, n)`` of the integer nearest to ``x``.

    The low bits of ``t`` are ``n + bias``.
    """
    magic = constant(_ROUNDER + bias, "float32", x)
    return bind(x + magic, lambda t: bind(t - magic, lambda n: body(t, n), "n"))


def _power_of_two(t: Expr) -> Expr:
    bits = signed_bits_of(t)
    return float_of(bits << constant(23, "int32", bits))


def _scale_twice(p: Expr, t: Var, n: Var) -> Expr:
    """Return p 2^n by two products.

    It is p 2^h 2^(n - h) with h = n / 2; the last product rounds into the subnormals. The low bits of
    ``t`` are n and both biases, so that their difference from those of h is a biased exponent, too.
    """
    k = constants("float32", n)

    def scaled(h: Var) -> Expr:
        rest = signed_bits_of(t) - signed_bits_of(h)
        return p * _power_of_two(h) * float_of(rest << constant(23, "int32", h))

    return bind(n * k(0.5) + k(_ROUNDER + _BIAS), scaled, "h")
