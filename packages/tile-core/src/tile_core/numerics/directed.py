"""Floats rounded to a smaller format in a named direction or at random, on bits.

Results are equal on every target.

The result is a number of the source's type that the format holds, so that the conversion after it is exact. What is
greater than the format's largest number overflows there, by the rules of ``tile_core.numerics.rules``.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Call, Expr, Var
from tile_core.numerics.build import absolute_bits, bind, bits_of, constants, equal, float_of, select, type_name
from tile_core.records import dataclass
from tile_runtime.dtype_table import Format
from tile_runtime.numerics.formats import EVERY, WIDE

__all__ = ["DIRECTIONS", "clamp_expr", "round_expr"]

#: Towards zero, up, down, and up or down by a random word.
DIRECTIONS = ("rz", "ru", "rd", "rs")


def round_expr(value: Expr, dtype: str, mode: str, word: Expr | None = None) -> Expr:
    """A number rounded to what a format holds, unlimited above; NaN and infinities are unchanged.

    Parameters
    ----------
    value
        Expression of type float32 or float64, of one lane.
    dtype
        A float type with a smaller mantissa.
    mode
        One of ``DIRECTIONS``. Beyond the largest number, what is not rounded away from zero becomes that number.
    word
        For ``"rs"`` a random ``uint32``: with the fraction ``f`` of the last place that is dropped, the magnitude is
        rounded up if ``floor(f * 2**32) + word >= 2**32``.
    """
    form, wide = EVERY[dtype], WIDE[type_name(value)]

    def of(u: Var, a: Var) -> Call:
        k = constants(f"uint{wide.bits}", u)
        sign = u ^ a
        positive = equal(sign, k(0))
        away = {"rz": None, "ru": positive, "rd": tirx.Not(positive), "rs": None}[mode]
        magnitude = _Magnitude(a, form, wide, mode, away, word)
        rounded = bind(
            _e8m0(magnitude) if not form.signed else _signed(magnitude), lambda r: _limited(r, magnitude), "rounded"
        )
        return float_of(select(a >= k(wide.infinity), u, sign | rounded))

    return bind(bits_of(value), lambda u: bind(absolute_bits(u), lambda a: of(u, a), "size"), "bits")


def clamp_expr(value: Expr, dtype: str) -> Expr:
    """Return a number saturated to a format's largest, infinities included; NaN is NaN."""
    form, wide = EVERY[dtype], WIDE[type_name(value)]

    def of(u: Var, a: Var) -> Call:
        k = constants(f"uint{wide.bits}", u)
        most = k(_bits_of_code(form.largest, form, wide))
        beyond = tirx.And(a > most, a <= k(wide.infinity))
        return float_of(select(beyond, (u ^ a) | most, u))

    return bind(bits_of(value), lambda u: bind(absolute_bits(u), lambda a: of(u, a), "size"), "bits")


@dataclass(frozen=True)
class _Magnitude:
    """State of a directed or stochastic rounding of the magnitude with bits ``a``."""

    a: Var
    form: Format
    wide: Format
    mode: str
    away: Expr | None
    word: Expr | None

    def up(self, fraction: Expr, inexact: Expr) -> Expr:
        """Whether to round up a ``fraction``: the dropped bits below the last place."""
        if self.mode == "rz":
            return tirx.const(False, "bool")
        if self.away is not None:
            return tirx.And(self.away, inexact)
        assert self.word is not None
        high = fraction if self.wide.bits == 32 else tirx.Cast("uint32", fraction >> tirx.const(32, "uint64"))
        return high > (self.word ^ tirx.const(0xFFFFFFFF, "uint32"))

    def by(self, shift: Expr) -> Expr:
        """The magnitude rounded to a multiple of ``2**shift`` units of its own last place."""
        k = constants(f"uint{self.wide.bits}", self.a)
        dropped = self.a & ((k(1) << shift) - k(1))

        def to(d: Var) -> Expr:
            up = self.up(d << (k(self.wide.bits) - shift), tirx.Not(equal(d, k(0))))
            return (self.a - d) + select(up, k(1) << shift, k(0))

        return bind(dropped, to, "dropped")


def _signed(magnitude: _Magnitude) -> Expr:
    a, form, wide = magnitude.a, magnitude.form, magnitude.wide
    k = constants(f"uint{wide.bits}", a)
    first = wide.mantissa - form.mantissa
    if form.bias == wide.bias:
        return magnitude.by(k(first))
    lowest = wide.bias - form.bias + 1  # the exponent's field of the smallest normal number
    unit = lowest - form.mantissa  # and of the smallest number

    def at(field: Var) -> Expr:
        inside = select(field < k(unit), k(form.mantissa), k(lowest) - field)
        shift = k(first) + select(field < k(lowest), inside, k(0))
        coarse = bind(shift, magnitude.by, "shift")
        return select(field < k(unit), _below_unit(magnitude, field, unit), coarse)

    return bind(a >> k(wide.mantissa), at, "field")


def _below_unit(magnitude: _Magnitude, field: Var, unit: int) -> Expr:
    """Zero or the format's smallest number, for what is less than that."""
    a, wide = magnitude.a, magnitude.wide
    k = constants(f"uint{wide.bits}", a)
    whole = (a & k((1 << wide.mantissa) - 1)) | k(1 << wide.mantissa)
    far = k(unit - 1) - select(field < k(unit), field, k(unit - 1))
    shifted = (whole << k(wide.bits - 1 - wide.mantissa)) >> select(far < k(wide.bits), far, k(wide.bits - 1))
    fraction = select(far < k(wide.bits), shifted, k(0))
    return select(magnitude.up(fraction, tirx.Not(equal(a, k(0)))), k(unit << wide.mantissa), k(0))


def _e8m0(magnitude: _Magnitude) -> Expr:
    """Round to powers of two from 2^-127, which also stands for all smaller numbers."""
    a, wide = magnitude.a, magnitude.wide
    k = constants(f"uint{wide.bits}", a)
    if wide.bits == 64:
        least, shift = (wide.bias - magnitude.form.bias) << wide.mantissa, k(wide.mantissa)
    else:  # where 2^-127 is subnormal
        least, normal = 1 << (wide.mantissa - 1), 1 << wide.mantissa
        shift = select(a < k(normal), k(wide.mantissa - 1), k(wide.mantissa))
    return select(a < k(least), a, bind(shift, magnitude.by, "shift"))


def _limited(r: Var, magnitude: _Magnitude) -> Expr:
    """Limit a magnitude to the format's largest unless it rounds away from zero."""
    if magnitude.mode == "rs":
        return r
    k = constants(f"uint{magnitude.wide.bits}", r)
    most = k(_bits_of_code(magnitude.form.largest, magnitude.form, magnitude.wide))
    beyond = r > most
    if magnitude.away is not None:
        beyond = tirx.And(beyond, tirx.Not(magnitude.away))
    return select(beyond, most, r)


def _bits_of_code(code: int, form: Format, wide: Format) -> int:
    """The bits of a normal number of a format in a wider one."""
    return (code + ((wide.bias - form.bias) << form.mantissa)) << (wide.mantissa - form.mantissa)
