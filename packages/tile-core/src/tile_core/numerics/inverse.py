"""Inverse and hyperbolic functions on float32, computed in float64 and rounded once; see ``numerics/math.py``.

Their identities lose nothing there that float32 would keep: arguments near 1 are exact as differences, and results near
0 come from series. Within 1 unit in the last place over all inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BinaryNode, Call, Expr, UnaryNode, Var
from tile_core.ir import nodes
from tile_core.numerics.build import (
    bind,
    cast,
    constant,
    constants,
    equal,
    horner,
    is_nan,
    magnitude,
    select,
    signed_bits_of,
    with_sign_of,
)
from tile_core.numerics.math import atanh_wide, exp2_wide, log2_wide

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "expm1", "fmod", "function_call",
    "hypot", "library", "sinh",
]  # fmt: skip

# (atan(t) / t - 1) / t^2 in t^2, 0 <= t <= 1; relative error of atan below 2^-36.
_ATAN = [-0.33333333111086133, 0.19999984220711806, -0.1428532086427923, 0.1110614322186936, -0.09053628395556163,
         0.07510506951582067, -0.06056945909402873, 0.044178937365135264, -0.026547604229498215, 0.011778526040389196,
         -0.00332644260882662, 0.0004406856996896358]  # fmt: skip
# (e^x - 1) / x and sinh(x) / x by Taylor's series, 2^-34 below 1/2.
_EXPM1 = [1 / math.factorial(n) for n in range(1, 12)]
_SINH = [1 / math.factorial(n) for n in range(1, 13, 2)]


def function_call(name: str, *args: Expr) -> Call:
    """Return a call of a function that TVM has no operator for, as ``tirx.<name>``."""
    return ir.Call(nodes.register_scalar_op(f"tirx.{name}"), list(args), ret_ty=args[0].ty)


def library(name: str) -> Callable[..., Expr]:
    """Return the builder of a call of the C library's function on float64."""
    return lambda *args: tirx.call_pure_extern("float64", name, *args)


def fmod(x: Expr, y: Expr) -> Expr:
    """Return the exact remainder with the sign of ``x``, by the C library in float64."""
    return cast("float32", library("fmod")(cast("float64", x), cast("float64", y)))


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y), with the special values of C99 Annex F."""
    return _wide2(y, x, _angle)


def atan(x: Expr) -> Expr:
    """Inverse tangent."""
    return _wide(x, lambda d: _angle(d, constant(1.0, "float64", d)))


def asin(x: Expr) -> Expr:
    """Inverse sine: the angle of (sqrt((1 - x) (1 + x)), x)."""
    return _wide(x, lambda d: bind(_cofunction(d), lambda c: _angle(d, c), "c"))


def acos(x: Expr) -> Expr:
    """Inverse cosine: the angle of (x, sqrt((1 - x) (1 + x)))."""
    return _wide(x, lambda d: bind(_cofunction(d), lambda s: _angle(s, d), "s"))


def sinh(x: Expr) -> Expr:
    """Hyperbolic sine: a series below 1/2, (e^a - e^-a) / 2 above."""

    def of(d: Var, a: Expr) -> Expr:
        k = constants("float64", d)
        large = bind(_exp(a), lambda e: (e - k(1.0) / e) * k(0.5), "e")
        small = bind(a * a, lambda z: a * horner(z, _SINH), "z")
        return with_sign_of(select(a < k(0.5), small, large), d)

    return _wide(x, lambda d: bind(magnitude(d), lambda a: of(d, a), "a"))


def cosh(x: Expr) -> Expr:
    """Hyperbolic cosine: (e^a + e^-a) / 2."""

    def of(e: Expr) -> Expr:
        k = constants("float64", e)
        return (e + k(1.0) / e) * k(0.5)

    return _wide(x, lambda d: bind(_exp(magnitude(d)), of, "e"))


def expm1(x: Expr) -> Expr:
    """e^x - 1: a series below 1/2."""

    def of(d: Var) -> Expr:
        k = constants("float64", d)
        near = select(magnitude(d) < k(2.0**-40), d, d * horner(d, _EXPM1))  # keeps the sign of a zero
        return select(magnitude(d) < k(0.5), near, _exp(d) - k(1.0))

    return _wide(x, of)


def cbrt(x: Expr) -> Expr:
    """Cube root, by the third of the binary logarithm."""

    def of(d: Var, a: Expr) -> Expr:
        k = constants("float64", d)
        root = with_sign_of(exp2_wide(log2_wide(a) * k(1.0 / 3.0)), d)
        keeps = tirx.Or(tirx.Or(equal(a, k(0.0)), equal(a, k(math.inf))), is_nan(d))
        return select(keeps, d, root)

    return _wide(x, lambda d: bind(magnitude(d), lambda a: of(d, a), "a"))


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(x^2 + y^2), infinite as soon as one side is."""

    def of(a: Expr, b: Expr) -> Expr:
        infinite = constant(math.inf, "float64", a)
        either = tirx.Or(equal(magnitude(a), infinite), equal(magnitude(b), infinite))
        return select(either, infinite, tirx.sqrt(a * a + b * b))

    return _wide2(x, y, of)


def asinh(x: Expr) -> Expr:
    """Inverse hyperbolic sine: log(1 + a + a^2 / (1 + sqrt(a^2 + 1)))."""

    def of(d: Var, a: Expr) -> Expr:
        k = constants("float64", d)
        more = bind(a * a, lambda z: a + z / (k(1.0) + tirx.sqrt(z + k(1.0))), "z")
        value = select(a < k(2.0**-40), a, bind(more, _log1p, "w"))
        return with_sign_of(select(a < k(math.inf), value, a), d)

    return _wide(x, lambda d: bind(magnitude(d), lambda a: of(d, a), "a"))


def acosh(x: Expr) -> Expr:
    """Inverse hyperbolic cosine: log(1 + (x - 1) + sqrt((x - 1) (x + 1))).

    It is NaN below 1.
    """

    def of(d: Var) -> Expr:
        k = constants("float64", d)
        more = bind(d - k(1.0), lambda t: t + tirx.sqrt(t * (d + k(1.0))), "t")
        value = select(d < k(math.inf), bind(more, _log1p, "w"), d)
        return select(d >= k(1.0), value, k(math.nan))

    return _wide(x, of)


def atanh(x: Expr) -> Expr:
    """Inverse hyperbolic tangent: log(1 + 2 a / (1 - a)) / 2.

    It is infinite at 1, and NaN beyond.
    """

    def of(d: Var, a: Expr) -> Expr:
        k = constants("float64", d)
        more = a * k(2.0) / (k(1.0) - a)
        value = select(a < k(2.0**-40), a, bind(more, _log1p, "w") * k(0.5))
        pole = select(equal(a, k(1.0)), k(math.inf), k(math.nan))
        return with_sign_of(select(a < k(1.0), value, pole), d)

    return _wide(x, lambda d: bind(magnitude(d), lambda a: of(d, a), "a"))


def _wide(x: Expr, body: UnaryNode) -> Expr:
    """A function of float64 applied to a float32."""
    return cast("float32", bind(cast("float64", x), body, "d"))


def _wide2(x: Expr, y: Expr, body: BinaryNode) -> Expr:
    wide = bind(cast("float64", x), lambda a: bind(cast("float64", y), lambda b: body(a, b), "v"), "u")
    return cast("float32", wide)


def _cofunction(d: Var) -> Expr:
    """sqrt(1 - d^2), without cancellation; NaN where abs(d) > 1."""
    one = constant(1.0, "float64", d)
    return tirx.sqrt((one - d) * (one + d))


def _angle(y: Expr, x: Expr) -> Expr:
    """Return the angle of a point: a polynomial of the coordinates' quotient, then the octant."""
    k = constants("float64", y)

    def of(a: Expr, b: Expr) -> Expr:
        low, high = select(a < b, a, b), select(a < b, b, a)
        both = equal(low, high)  # includes infinities and zeros; on the diagonal the quotient is 1
        slope = select(both, select(equal(high, k(0.0)), k(0.0), k(1.0)), low / high)
        return bind(slope, lambda t: octant(a, b, bind(t * t, lambda z: t + t * z * horner(z, _ATAN), "z")), "t")

    def octant(a: Expr, b: Expr, r: Expr) -> Expr:
        steep = bind(r, lambda v: select(a > b, k(math.pi / 2) - v, v), "r")
        behind = signed_bits_of(x) < constant(0, "int64", x)
        whole = bind(steep, lambda v: select(behind, k(math.pi) - v, v), "v")
        return bind(whole, lambda v: select(tirx.Or(is_nan(y), is_nan(x)), k(math.nan), with_sign_of(v, y)), "angle")

    return bind(magnitude(y), lambda a: bind(magnitude(x), lambda b: of(a, b), "b"), "a")


def _exp(d: Var) -> Expr:
    """e^d, limited so that its rounding to float32 overflows and underflows as it must."""
    return exp2_wide(d * constant(1.0 / math.log(2.0), "float64", d))


def _log1p(w: Expr) -> Expr:
    """log(1 + w) for w >= 0 and finite."""
    k = constants("float64", w)
    near = bind(w / (w + k(2.0)), lambda s: atanh_wide(s) * k(2.0), "s")
    return select(w < k(0.25), near, log2_wide(w + k(1.0)) * k(math.log(2.0)))
