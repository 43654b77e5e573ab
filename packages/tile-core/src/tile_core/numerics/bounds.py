"""The table of bounds: the largest error of each float32 operation, by level of numerics.

A bound holds on every target, so it is the weakest that the libraries of the targets document for what is emitted at
the level. Tests sweep it over all values and compare it with the documents; ``verify``, the conformance suite and the
fuzzer judge by it; the page on scalars shows it.

The page names the documents. Where one states differences from the correctly rounded result, half a unit is added;
where it states a composition of functions, the error is that of the composition.

float16 and bfloat16 are computed in float32 and rounded once more. float64 has one bound at every level, ``WIDE``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tile_core.compat.types import Array
from tile_core.numerics.levels import FAST, STANDARD, STRICT
from tile_core.records import dataclass

__all__ = [
    "BOUNDS",
    "EXACT",
    "EXPANDED",
    "FLUSHED",
    "LEAST",
    "WIDE",
    "ErrorBound",
    "LevelBounds",
    "as_table",
    "bound_of",
    "units_of",
]

#: The least normal number of float32 and bfloat16: a smaller one is subnormal.
LEAST = 2.0**-126
#: Types whose subnormal numbers level ``"fast"`` may flush to zero, as operands and results; copies keep them.
FLUSHED = frozenset({"float32", "tfloat32", "bfloat16"})


@dataclass(frozen=True)
class ErrorBound:
    """The largest error of an operation.

    Attributes
    ----------
    ulp
        In units in the last place of the exact result; 0.5 is one rounding to nearest.
    per_power
        More units for each power of two between the result and 1.
    per_exponent
        More units for each unit of the last argument, an exponent.
    absolute
        A further error that does not depend on the result.
    low, high
        Range of the argument where the bound holds; outside, any number or NaN may be the result.
    argument
        Position of this argument.
    """

    ulp: float
    per_power: float = 0.0
    per_exponent: float = 0.0
    absolute: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    argument: int = 0

    def allowed(self, exact: Array, arguments: Sequence[Array], dtype: str = "float32") -> Array:
        """Return the error bound of each element; infinity outside of the range.

        Parameters
        ----------
        exact
            The exact results, as float64.
        arguments
            The arguments, as float64.
        dtype
            The type that is computed in.
        """
        with np.errstate(all="ignore"):
            size = np.abs(exact)
            units = np.full(np.shape(exact), self.ulp)
            if self.per_power:
                power = np.abs(np.log2(size))
                units = units + self.per_power * np.where(np.isfinite(power), power, 0.0)
            if self.per_exponent:
                units = units + self.per_exponent * np.abs(arguments[-1])
            error = units * units_of(exact, dtype) + self.absolute
            at = arguments[self.argument] if len(arguments) > self.argument else arguments[0]
            outside = (at < self.low) | (at > self.high)
        return np.where(outside, np.inf, np.where(np.isnan(error), 0.0, error))

    def __str__(self) -> str:
        parts = [f"{self.ulp:g}"] if self.ulp or not self.absolute else []
        parts += [f"{self.per_power:g} abs(log2(y))"] * bool(self.per_power)
        parts += [f"{self.per_exponent:g} abs(x2)"] * bool(self.per_exponent)
        text = " + ".join(parts) + " ulp" * bool(parts)
        if self.absolute:
            text = f"{text} + " * bool(text) + _power(self.absolute)
        if math.isinf(self.low) and math.isinf(self.high):
            return text
        name = "x" if self.argument == 0 else f"x{self.argument + 1}"
        if self.low == -self.high:
            return f"{text} for abs({name}) <= {_power(self.high)}"
        low = "" if math.isinf(self.low) else f"{_power(self.low)} <= "
        return f"{text} for {low}{name}" + ("" if math.isinf(self.high) else f" <= {_power(self.high)}")


@dataclass(frozen=True)
class LevelBounds:
    """The bounds of an operation at the three levels."""

    strict: ErrorBound
    standard: ErrorBound
    fast: ErrorBound

    def at(self, level: str) -> ErrorBound:
        """Return the bound of a level."""
        found: ErrorBound = {STRICT: self.strict, STANDARD: self.standard, FAST: self.fast}[level]
        return found


def _function(ulp: float, fast: ErrorBound) -> LevelBounds:
    """Return the row of a function, whose implementations do not depend on fusing."""
    return LevelBounds(ErrorBound(ulp), ErrorBound(ulp), fast)


def _rounded() -> LevelBounds:
    return LevelBounds(ErrorBound(0.5), ErrorBound(0.5), ErrorBound(0.5))


#: A logarithm near 1 is approximated with an absolute error.
_LOGARITHM = ErrorBound(3.5, absolute=2.0**-21)

BOUNDS: Mapping[str, LevelBounds] = {
    "add": _rounded(),
    "sub": _rounded(),
    "mul": _rounded(),
    # A divisor above 2^126 has a reciprocal that is flushed.
    "div": LevelBounds(ErrorBound(0.5), ErrorBound(2.5), ErrorBound(3, low=-(2.0**126), high=2.0**126, argument=1)),
    # x * rsqrt(x): two units next to a power of two are four of the other side.
    "sqrt": LevelBounds(ErrorBound(0.5), ErrorBound(2), ErrorBound(4.5)),
    "rsqrt": _function(2.5, ErrorBound(2.5)),
    "cbrt": _function(4, ErrorBound(6)),
    "exp": _function(4, ErrorBound(3, per_power=1.4)),
    # The square of exp2(x / 2), where an instruction flushes subnormal results.
    "exp2": LevelBounds(ErrorBound(4), ErrorBound(5), ErrorBound(3, per_power=2)),
    "exp10": _function(4, ErrorBound(4, per_power=3)),
    "expm1": _function(4, ErrorBound(6)),
    "log": _function(4, _LOGARITHM),
    "log2": _function(4, _LOGARITHM),
    "log10": _function(4, _LOGARITHM),
    "log1p": _function(4, ErrorBound(6)),
    # exp2(x2 * log2(x)): an error of the logarithm grows with the exponent.
    "pow": _function(16, ErrorBound(3, per_power=7, per_exponent=6, low=LEAST)),
    "sin": _function(4, ErrorBound(0, absolute=2.0**-13, low=-math.pi, high=math.pi)),
    "cos": _function(4, ErrorBound(0, absolute=2.0**-13, low=-math.pi, high=math.pi)),
    # sin(x) * (1 / cos(x))
    "tan": _function(6, ErrorBound(0, absolute=2.0**-10, low=-1, high=1)),
    "asin": _function(4, ErrorBound(6)),
    "acos": _function(4, ErrorBound(6)),
    "atan": _function(5, ErrorBound(6)),
    # The arc tangent of an approximate quotient.
    "atan2": _function(6, ErrorBound(10.5, low=-(2.0**126), high=2.0**126, argument=1)),
    "hypot": _function(4, ErrorBound(6)),
    # Made of exponentials that cancel near 0.
    "sinh": _function(4, ErrorBound(9.5, per_power=2.8, absolute=2.0**-20)),
    "cosh": _function(4, ErrorBound(6, per_power=2)),
    "tanh": _function(5, ErrorBound(8193, absolute=2.0**-20, low=-40, high=40)),
    # Logarithms of arguments that cancel for negative x, and near 1.
    "asinh": _function(4, ErrorBound(6, absolute=2.0**-20, low=-1, high=2.0**60)),
    "acosh": _function(5, ErrorBound(6, absolute=2.0**-11, low=1, high=2.0**60)),
    "atanh": _function(5, ErrorBound(6, absolute=2.0**-20, low=-1, high=1)),
    "sigmoid": _function(4, ErrorBound(8, per_power=2)),
    "erf": _function(4, ErrorBound(6)),
}
"""By the name in ``T``; ``add``, ``sub``, ``mul`` and ``div`` are the operators."""

EXACT = frozenset(
    "floor ceil trunc round rint nearbyint fmod copysign nextafter abs neg max min clamp".split()
)  # fmt: skip
"""Operations whose results are exact at every level, but for subnormal numbers that level ``"fast"`` may flush."""

EXPANDED: Mapping[str, float] = {name: 3.0 if name == "sigmoid" else 2.0 for name in BOUNDS}
"""Units in the last place of the functions where the core expands them, at every level."""

WIDE = ErrorBound(4)
"""Of all functions of float64 at every level; its operators and square root are rounded once."""


def as_table() -> str:
    """Return the table in Markdown, as the page on scalars shows it."""
    signs = {"add": "x + x2", "sub": "x - x2", "mul": "x * x2", "div": "x / x2"}
    rows = [f'| function | `"{STRICT}"` | `"{STANDARD}"` | `"{FAST}"` |', "| --- | --- | --- | --- |"]
    rows += [f"| `{signs.get(name, name)}` | {r.strict} | {r.standard} | {r.fast} |" for name, r in BOUNDS.items()]
    return "\n".join(rows)


def bound_of(name: str, level: str, dtype: str) -> ErrorBound | None:
    """Return the bound of an operation; ``None`` for an exact one.

    Parameters
    ----------
    name
        As in ``BOUNDS``.
    level
        Level of numerics.
    dtype
        The type of the result; of 16-bit floats it is the bound of float32, in which they are computed.
    """
    row = BOUNDS.get(name)
    if row is None:
        return None
    if dtype != "float64":
        return row.at(level)
    return row.strict if row.strict.ulp == 0.5 else WIDE


def units_of(exact: Array, dtype: str = "float32") -> Array:
    """Return the unit in the last place of numbers in a type.

    Below the normal numbers it is the least subnormal one.
    """
    mantissa, least, most = (52, -1074, 1023) if dtype == "float64" else (23, -149, 127)
    exponent = np.frexp(np.asarray(exact, np.float64))[1] - 1
    power = np.clip(np.where(exact == 0, least, exponent) - mantissa, least, most - mantissa)
    return np.ldexp(1.0, np.where(np.isfinite(exact), power, most - mantissa))


def _power(x: float) -> str:
    """Return a number as text, powers of two as such."""
    mantissa, exponent = math.frexp(abs(x))
    if mantissa == 0.5 and abs(exponent - 1) > 6:
        return f"{'-' * (x < 0)}2^{exponent - 1}"
    return "pi" if x == math.pi else f"{x:g}"
