"""Elementary functions on float32 as straight-line tirx expressions, for targets without vectorized or precise ones.

Every builder takes float32 expressions (any number of lanes) and returns a float32 expression without branches, tables
or calls other than ``floor`` and ``sqrt`` (TVM does not vectorise ``nearbyint``), so ``VectorizeLoop`` and LLVM make
vector code of it. Results follow the page ``tile_core.numerics.rules`` for *all* inputs: subnormal arguments and
results, zeros, infinities, NaN.

How they were made. Arguments are reduced to a small interval with identities that are exact in the format used; on the
interval a polynomial approximates it. Its coefficients come from a minimax fit (Lawson's iteratively reweighted
least squares on 2000 Chebyshev nodes, weighted so that the *relative* error of the result is levelled); the error bound
stands beside each, and a test measures it again against float64. Where float32 cannot hold the intermediate result
(``pow``, ``log10``, ``log1p``, ``exp10``, and ``sin``, ``cos``, ``tan``) it is float64, and one rounding ends it.
Products that are added may be fused or not: no step relies on either.
"""

from __future__ import annotations

import functools
import math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Call, Expr, Stmt, UnaryNode, Var
from tile_core.numerics.build import (
    bind,
    bits_of,
    cast,
    constant,
    constants,
    equal,
    float_of,
    horner,
    is_nan,
    magnitude,
    negate_if,
    select,
    signed_bits_of,
    type_name,
    with_sign_of,
)  # fmt: skip
from tile_core.numerics.minmax import clamp_expr, max_expr, min_expr
from tile_runtime.numerics.formats import IEEE

__all__ = [
    "COSINE", "EXP", "EXP2", "LN2_HIGH", "LN2_LOW", "LOG2E", "SINE", "atanh_wide", "clamp_expr", "cos", "erf",
    "exp", "exp10", "exp10_wide", "exp2", "exp2_wide", "log", "log10", "log1p", "log2", "log2_wide", "max_expr",
    "min_expr", "pow", "rsqrt", "sigmoid", "sin", "sqrt", "tan", "tanh", "tanh_wide",
]  # fmt: skip

LOG2E = 1.0 / math.log(2.0)
LN2_HIGH = 0.693145751953125  # ln 2 to 17 bits: its product with an exponent is exact in float32
LN2_LOW = 1.4286068202862268e-06

# Round to nearest: adding 1.5 * 2^mantissa leaves the integer in the low bits.
_MAGIC = {"float32": 1.5 * 2.0**23, "float64": 1.5 * 2.0**52}

# (e^r - 1 - r) / r^2 on |r| <= ln2/2; relative error of e^r below 2^-28.
EXP = [0.49999993411977844, 0.1666652010272786, 0.04166839431587159, 0.008368780883870242, 0.0013814462047494172]
# (2^r - 1) / r on |r| <= 1/2, for float32 (2^-28) and for float64 (2^-40).
EXP2 = {
    "float32": [0.6931472029870023, 0.24022647896595212, 0.05550332159755202, 0.00961843862042718,
                0.0013399004459446102, 0.00015353255147114008],
    "float64": [0.6931471805481191, 0.24022650698128592, 0.05550410935677825, 0.009618128613109768,
                0.0013333454448287505, 0.00015403826679273187, 1.530926880927789e-05, 1.3178853542745727e-06],
}  # fmt: skip
# (log(1 + f) - f + f^2/2) / f^3 on sqrt(1/2) <= 1 + f <= sqrt(2); relative error of the logarithm below 2^-30.
_LOG = [0.33333312601175, -0.2500000960903651, 0.20002118826828763, -0.16667995431597105, 0.14219549042095228,
        -0.12405594550344502, 0.11888190353843207, -0.116756281797343, 0.06746551641843872]  # fmt: skip
# (atanh(s) / s - 1) / s^2 in s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); relative error of atanh below 2^-44.
_ATANH = [0.3333333333792348, 0.19999997802256236, 0.14286055579437631, 0.11088049350454986, 0.0979276676534945]
# (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.625; 2^-27.
_TANH = [-0.3333328392140247, 0.13331491199195938, -0.05374349166522178, 0.020650568463632214, -0.005717025792332302]
# erf(x) / x - 1 in x^2, |x| <= 0.9; 2^-31.
_ERF = [0.12837916680235179, -0.3761263531034693, 0.1128371972251452, -0.026860752781810094, 0.005204435955517392,
        -0.0008181926509514289, 8.53883596799513e-05]  # fmt: skip
# -log(erfc(a)) / a on 0.9 <= a <= 4; relative error of 1 - erfc below 2^-30.
_ERFC = [1.1286370779245536, 0.6351980222207321, 0.10615907050994265, -0.023694585613695224, 0.0036103518283894668,
         -0.000314860684227522, 1.0433385077458525e-05]  # fmt: skip
#: (sin(y) / y - 1) / y^2 and (cos(y) - 1) / y^2 in y^2, |y| <= pi/4; 2^-37 and 2^-34.
SINE = [-0.1666666664061186, 0.008333329266638916, -0.00019839296108066962, 2.717939719411813e-06]
COSINE = [-0.499999997139696, 0.04166662201515785, -0.0013886721275466743, 2.4386368935637977e-05]

TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041F
"""floor(2/pi * 2^196). A test computes it again."""
_CHUNK = 28  # bits; a float32 significand (24) times a chunk is exact in float64 (53)
_CHUNKS = [((TWO_OVER_PI >> (196 - _CHUNK * (k + 1))) % (1 << _CHUNK)) * 2.0 ** (-_CHUNK * (k + 1)) for k in range(7)]


def exp(x: Expr) -> Expr:
    """Return e^x by Cody and Waite reduction.

    x = n ln2 + r, then a degree 6 polynomial and two scalings by powers of two.
    """
    return bind(limited(x, -104.0, 89.0), lambda v: _exp_reduced(v, _scale_twice))


def _power(x: Var) -> Expr:
    """Return e^x of an argument that needs no limits, and whose result is normal."""
    return _exp_reduced(x, _scale_once)


def exp2(x: Expr) -> Expr:
    """2^x, exact for integers. The reduction x = n + r is exact."""
    return bind(limited(x, -151.0, 130.0), lambda v: _exp2_reduced(v, _scale_twice))


def exp10(x: Expr) -> Expr:
    """10^x, as 2^(x log2(10)) in float64."""
    return cast("float32", exp2_wide(cast("float64", x) * constant(math.log2(10.0), "float64", x)))


def exp10_wide(x: Expr) -> Expr:
    """10^x in float64, by the target's power."""
    return tirx.pow(constant(10.0, "float64", x), x)


def tanh_wide(x: Expr) -> Expr:
    """The hyperbolic tangent in float64, by the C library."""
    return tirx.call_pure_extern("float64", "tanh", x)


def log(x: Var) -> Expr:
    """Natural logarithm: x = 2^e (1 + f), then e ln2 + log(1 + f).

    ln2 has two parts.
    """

    def joined(e: Var, f: Var) -> Expr:
        k = constants("float32", x)
        return _log1p_tail(f, lambda tail: e * k(LN2_HIGH) + (f + (tail + e * k(LN2_LOW))))

    return bind(x, lambda v: _log_specials(v, _log_reduced(v, joined)))


def log2(x: Expr) -> Expr:
    """Binary logarithm: e + log(1 + f) log2(e).

    The integer part of log2(e) multiplies without rounding.
    """

    def joined(e: Expr, f: Var) -> Expr:
        k = constants("float32", x)
        return _log1p_tail(f, lambda tail: e + (f + (tail * k(LOG2E) + f * k(LOG2E - 1.0))))

    return bind(x, lambda v: _log_specials(v, _log_reduced(v, joined)))


def log10(x: Expr) -> Expr:
    """Decimal logarithm, through the float64 logarithm."""

    def joined(v: Var) -> Expr:
        wide = log2_wide(cast("float64", v)) * constant(math.log10(2.0), "float64", v)
        return _log_specials(v, cast("float32", wide))

    return bind(x, joined)


def log1p(x: Expr) -> Expr:
    """Return log(1 + x) without loss for small x.

    It is 2 atanh(x / (2 + x)) near 0, and the float64 logarithm of 1 + x elsewhere.
    """

    def near(v: Var) -> Expr:
        return bind(v / (v + constant(2.0, "float64", v)), lambda s: atanh_wide(s) * constant(2.0, "float64", v))

    def joined(v: Var) -> Expr:
        d = cast("float64", v)
        one = constant(1.0, "float64", v)
        far = log2_wide(d + one) * constant(math.log(2.0), "float64", v)
        small = magnitude(v) < constant(0.25, "float32", v)
        whole = cast("float32", select(small, bind(d, near, "d"), far))
        tiny = magnitude(v) < constant(2.0**-25, "float32", v)  # keeps the sign of a zero
        return select(tiny, v, _log_specials(v, whole, pole=-1.0))

    return bind(x, joined)


def tanh(x: Var, power: UnaryNode = _power) -> Expr:
    """Hyperbolic tangent by a polynomial near 0 and the exponential function elsewhere.

    An odd polynomial below 0.625, 1 - 2 / (e^2a + 1) above, where a = min(abs(x), 9.2).
    """

    def joined(v: Var, a: Var) -> Call:
        k = constants("float32", x)
        small = bind(a * a, lambda z: a + a * z * horner(z, _TANH), "z")
        large = k(1.0) - k(2.0) / (bind(limited(a, 0.0, 9.2) * k(2.0), power, "b") + k(1.0))
        return with_sign_of(select(a < k(0.625), small, large), v)

    return bind(x, lambda v: bind(magnitude(v), lambda a: joined(v, a), "a"))


def sigmoid(x: Var, exponential: UnaryNode = exp) -> Expr:
    """1 / (1 + e^-x), from e^-abs(x), which cannot overflow; subnormal results included."""

    def joined(v: Var, e: Var) -> Expr:
        one = constant(1.0, "float32", x)
        return select(v < constant(0.0, "float32", x), e, one) / (one + e)

    def powered(v: Var) -> Expr:
        minus = float_of(bits_of(v) | constant(0x80000000, "uint32", v))
        return bind(exponential(minus), lambda e: joined(v, e), "e")

    return bind(x, powered)


def erf(x: Var, power: UnaryNode = _power) -> Expr:
    """Error function by a polynomial near 0 and the exponential function elsewhere.

    An odd polynomial below 0.9, 1 - e^(-a q(a)) above, with q from a fit of log(erfc).
    """

    def joined(v: Var, a: Var) -> Call:
        k = constants("float32", x)
        small = bind(a * a, lambda z: a + a * horner(z, _ERF), "z")
        tail = bind(limited(a, 0.0, 4.0), lambda b: b * horner(b, _ERFC) * k(-1.0), "b")
        large = k(1.0) - bind(tail, power)
        return with_sign_of(select(a < k(0.9), small, large), v)

    return bind(x, lambda v: bind(magnitude(v), lambda a: joined(v, a), "a"))


def sin(x: Var) -> Expr:
    """Sine, for every float32 argument (see ``_quarter_periods``)."""

    def joined(v: Var, y: Var, quarters: Var) -> Expr:
        odd, half = _bit(quarters, 0), _bit(quarters, 1)
        value = cast("float32", negate_if(half, bind(y * y, lambda z: select(odd, _cosine(z), _sine(y, z)), "z")))
        return select(magnitude(v) < constant(2.0**-12, "float32", v), v, value)  # keeps the sign of a zero

    return bind(x, lambda v: _quarter_periods(v, lambda y, quarters: joined(v, y, quarters)))


def cos(x: Var) -> Expr:
    """Cosine, for every float32 argument."""

    def joined(y: Var, quarters: Var) -> Expr:
        odd = _bit(quarters, 0)
        flip = _bit(quarters + constant(1, "int64", quarters), 1)
        return cast("float32", negate_if(flip, bind(y * y, lambda z: select(odd, _sine(y, z), _cosine(z)), "z")))

    return bind(x, lambda v: _quarter_periods(v, joined))


def tan(x: Expr) -> Expr:
    """Tangent, for every float32 argument."""

    def quotient(v: Var, s: Stmt, c: Var, quarters: Var) -> Expr:
        odd = _bit(quarters, 0)
        value = cast("float32", negate_if(odd, select(odd, c, s) / select(odd, s, c)))
        return select(magnitude(v) < constant(2.0**-12, "float32", v), v, value)

    def joined(v: Var, y: Expr, quarters: Var) -> Expr:
        def parts(z: Var) -> Expr:
            return bind(_sine(y, z), lambda s: bind(_cosine(z), lambda c: quotient(v, s, c, quarters), "c"), "s")

        return bind(y * y, parts, "z")

    return bind(x, lambda v: _quarter_periods(v, lambda y, quarters: joined(v, y, quarters)))


def sqrt(x: Expr) -> Expr:
    """Square root; the target's own is correctly rounded."""
    return tirx.sqrt(x)


def rsqrt(x: Expr) -> Expr:
    """1 / sqrt(x); infinite, with its sign, at the zeros."""
    return constant(1.0, type_name(x), x) / tirx.sqrt(x)


def pow(x: Var, y: Expr) -> Expr:
    """x^y = 2^(y log2 abs(x)) in float64, with the special values of C99 Annex F.

    1 for y = 0 and for x = 1, NaN included; negative x with an integral y takes its sign from the parity of y, with any
    other finite y it is NaN.
    """

    def logarithm(a: Var) -> Expr:
        zero, infinite = constant(0.0, "float64", a), constant(math.inf, "float64", a)
        finite = select(equal(a, infinite), infinite, log2_wide(a))
        return select(equal(a, zero), constant(-math.inf, "float64", a), finite)

    def joined(v: Var, w: Expr) -> Expr:
        exponent = cast("float64", w) * bind(cast("float64", magnitude(v)), logarithm, "a")
        return _pow_specials(v, w, cast("float32", exp2_wide(exponent)))

    return bind(x, lambda v: bind(y, lambda w: joined(v, w), "y"), "x")


def _pow_specials(x: Var, y: Expr, size: Expr) -> Expr:
    """``pow`` from the power ``size`` of the magnitude."""
    k = constants("float32", x)
    negative, infinity = x < k(0.0), k(math.inf)
    integral = equal(tirx.floor(y), y)
    half = y * k(0.5)
    odd = tirx.And(integral, tirx.Not(equal(tirx.floor(half), half)))
    minus = tirx.And(odd, signed_bits_of(x) < constant(0, "int32", x))
    value = negate_if(minus, size)
    undefined = tirx.And(tirx.And(negative, x > k(-math.inf)), tirx.Not(integral))
    value = select(tirx.Or(tirx.Or(is_nan(x), is_nan(y)), undefined), k(math.nan), value)
    unit = tirx.And(equal(x, k(-1.0)), equal(magnitude(y), infinity))
    return select(tirx.Or(tirx.Or(equal(y, k(0.0)), equal(x, k(1.0))), unit), k(1.0), value)


def limited(x: Expr, low: float, high: float) -> Expr:
    """``x`` kept within the range where the reduction works; NaN passes."""
    lo, hi = constant(low, type_name(x), x), constant(high, type_name(x), x)
    # One after the other: each is the minimum or maximum of vector units, whose second operand is the result for NaN.
    return bind(bind(x, lambda v: select(v < lo, lo, v)), lambda v: select(v > hi, hi, v))


def _nearest(x: Expr, body: BinaryNode) -> Expr:
    """Return ``body(n, i)`` of the integer nearest to ``x``, as float and integer.

    Both have the width of ``x``.
    """
    magic = constant(_MAGIC[type_name(x)], type_name(x), x)
    form = IEEE[type_name(x)]
    zero = constant(((form.bias + form.mantissa) << form.mantissa) + (1 << (form.mantissa - 1)), f"int{form.bits}", x)
    return bind(x + magic, lambda t: bind(t - magic, lambda n: body(n, signed_bits_of(t) - zero), "n"))


def _power_of_two(n: Expr) -> Call:
    """2^n for an int32 or int64 ``n`` within the normal range of float32 or float64."""
    form = IEEE["float" + type_name(n).removeprefix("int")]
    return float_of((n + constant(form.bias, type_name(n), n)) << constant(form.mantissa, type_name(n), n))


def _scale_once(p: Expr, n: Expr) -> Expr:
    return p * _power_of_two(n)


def _scale_twice(p: Expr, n: Expr) -> Expr:
    """Return p 2^n for any n in ``exp``.

    The first product is exact, the second rounds into the subnormals.
    """

    def scaled(n: Var) -> Expr:
        half = n >> constant(1, "int32", n)
        return bind(half, lambda h: p * _power_of_two(h) * _power_of_two(n - h), "h")

    return bind(n, scaled, "i")


def _exp_reduced(x: Var, scale: BinaryNode) -> Expr:
    k = constants("float32", x)

    def joined(h: Var, low: Var, r: Var, i: Expr) -> Expr:
        lost = (h - r) - low  # what the subtraction rounded away
        return scale(k(1.0) + (r + (r * r * horner(r, EXP) + lost)), i)

    def reduced(n: Var, i: Expr) -> Expr:
        def parts(h: Var) -> Expr:
            return bind(n * k(LN2_LOW), lambda low: bind(h - low, lambda r: joined(h, low, r, i), "r"), "low")

        return bind(x - n * k(LN2_HIGH), parts, "h")

    return _nearest(x * k(LOG2E), reduced)


def _exp2_reduced(x: Var, scale: BinaryNode) -> Expr:
    name = type_name(x)
    one = constant(1.0, name, x)
    return _nearest(x, lambda n, i: bind(x - n, lambda r: scale(one + r * horner(r, EXP2[name]), i), "r"))


def exp2_wide(t: Expr) -> Expr:
    """Return 2^t in float64, limited so that rounding to float32 overflows and underflows correctly."""
    return bind(limited(t, -200.0, 200.0), lambda v: _exp2_reduced(v, _scale_once))


def _log_reduced(x: Var, body: BinaryNode) -> Expr:
    """Return ``body(e, f)`` with x = 2^e (1 + f) for positive finite x.

    sqrt(1/2) <= 1 + f < sqrt(2).
    """
    k = constants("int32", x)
    tiny = x < constant(2.0**-126, "float32", x)
    normal = select(tiny, x * constant(2.0**23, "float32", x), x)
    shift = select(tiny, constant(-23.0, "float32", x), constant(0.0, "float32", x))

    def split(i: Var) -> Expr:
        return bind((i - k(0x3F3504F3)) >> k(23), lambda e: joined(i, e), "e")

    def joined(i: Var, e: Var) -> Expr:
        fraction = float_of(i - (e << k(23))) - constant(1.0, "float32", x)
        return bind(cast("float32", e) + shift, lambda d: bind(fraction, lambda f: body(d, f), "f"), "d")

    return bind(signed_bits_of(normal), split, "i")


def _log1p_tail(f: Var, body: UnaryNode) -> Expr:
    """``body(log(1 + f) - f)``."""
    tail = bind(f * f, lambda z: f * z * horner(f, _LOG) - z * constant(0.5, "float32", f), "z")
    return bind(tail, body, "tail")


def _log_specials(x: Var, value: Expr, pole: float = 0.0) -> Expr:
    """Return ``value`` above the pole, -infinity at it, NaN below.

    Infinity and NaN are their own results.
    """
    k = constants("float32", x)
    beyond = select(equal(x, k(pole)), k(-math.inf), k(math.nan))
    return select(x > k(pole), select(equal(x, k(math.inf)), x, value), beyond)


def log2_wide(d: Var) -> Expr:
    """Return log2 of a positive, normal float64, to a relative 2^-44.

    x = 2^e m, then log m = 2 atanh((m - 1) / (m + 1)).
    """
    k = constants("int64", d)
    one = constant(1.0, "float64", d)

    def split(i: Var) -> Expr:
        return bind((i - k(0x3FE6A09E667F3BCD)) >> k(52), lambda e: joined(i, e), "e")

    def joined(i: Var, e: Var) -> Expr:
        scale = constant(2.0 * LOG2E, "float64", d)
        ratio = bind(float_of(i - (e << k(52))), lambda m: (m - one) / (m + one), "m")
        logarithm = bind(ratio, lambda s: atanh_wide(s) * scale, "s")
        return cast("float64", cast("int32", e)) + logarithm

    return bind(signed_bits_of(d), split, "i")


def atanh_wide(s: Var) -> Expr:
    """Return atanh of a float64 to a relative 2^-44.

    The argument is at most (sqrt(2) - 1) / (sqrt(2) + 1).
    """
    return bind(s * s, lambda z: s + s * z * horner(z, _ATANH), "z")


def _sine(y: Var, z: Var) -> Expr:
    return y + y * z * horner(z, SINE)


def _cosine(z: Var) -> Expr:
    return constant(1.0, "float64", z) + z * horner(z, COSINE)


def _bit(n: Expr, index: int) -> Expr:
    return equal((n >> constant(index, "int64", n)) & constant(1, "int64", n), constant(1, "int64", n))


def _quarter_periods(x: Var, body: BinaryNode) -> Expr:
    """Return ``body(y, n)`` of a float64 y with x = n pi/2 + y.

    abs(y) <= pi/4 holds, and the low bits of n, an int64, are n modulo 4.

    Payne and Hanek's idea in float64: 2/pi is cut into chunks of 28 bits. The product of x with a chunk is exact, and
    so is its remainder modulo 4 (full rotations do not matter), however large x is. Their sum gives n; with n taken off
    first, every partial sum is exact until the chunk after the units of x, and from there on as small as the result, so
    that even the float32 nearest to a multiple of pi/2 (which cancels about 30 bits) keeps its accuracy. 2/pi to
    196 bits covers arguments up to 2^128.
    """
    k = constants("float64", x)

    def remainder(d: Var, chunk: float) -> Expr:
        if chunk < 2.0**-130:  # the product with any float32 is below 1
            return d * k(chunk)
        return bind(d * k(chunk), lambda t: t - k(4.0) * tirx.floor(t * k(0.25) + k(0.5)), "t")

    def add(d: Var, parts: list[Var]) -> Expr:
        if len(parts) < len(_CHUNKS):
            return bind(remainder(d, _CHUNKS[len(parts)]), lambda r: add(d, [*parts, r]), "r")
        return _nearest(functools.reduce(lambda a, b: a + b, parts), lambda n, i: finish(n, i, parts))

    def finish(n: Var, i: Expr, parts: list[Var]) -> Expr:
        rest = functools.reduce(lambda a, b: a + b, parts[1:], parts[0] - n)
        return bind(rest * k(math.pi / 2), lambda y: bind(i, lambda quarters: body(y, quarters), "n"), "y")

    return bind(cast("float64", x), lambda d: add(d, []), "d")
