"""The table of bounds contains what vendors document for the functions that texts call.

Sources: CUDA C++ Programming Guide 13, appendix "Mathematical Functions" (differences from the correctly rounded
result, so half a unit more from the exact one); Metal Shading Language Specification 4.1, tables 8.1 and 8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tile_core.numerics.bounds import BOUNDS, bound_of, units_of
from tile_core.numerics.levels import FAST, STANDARD, STRICT
from tile_core.reference.functions import FUNCTIONS

CUDA = {
    "rsqrt": 2, "cbrt": 1, "hypot": 3, "exp": 2, "exp2": 2, "exp10": 2, "expm1": 1, "log": 1, "log2": 1, "log10": 2,
    "log1p": 1, "sin": 2, "cos": 2, "tan": 4, "asin": 2, "acos": 2, "atan": 2, "atan2": 3, "sinh": 3, "cosh": 2,
    "tanh": 2, "asinh": 3, "acosh": 4, "atanh": 3, "pow": 4, "erf": 2,
}  # fmt: skip
METAL = {
    "rsqrt": 0.5, "exp": 4, "exp2": 4, "exp10": 4, "log": 4, "log2": 4, "log10": 4, "sin": 4, "cos": 4, "tan": 6,
    "asin": 4, "acos": 4, "atan": 5, "atan2": 6, "sinh": 4, "cosh": 4, "tanh": 5, "asinh": 4, "acosh": 4, "atanh": 5,
    "pow": 16,
}  # fmt: skip
#: The least exact functions of float64: CUDA's, and AMD's (HIP math API; the difference from the C++ library).
WIDE = {"asinh": 3.5, "acosh": 3.5, "erf": 4}

Errors = Callable[..., Any]


@pytest.mark.parametrize("level", [STRICT, STANDARD])
@pytest.mark.parametrize("name", CUDA)
def test_precise_functions(name: str, level: str) -> None:
    assert BOUNDS[name].at(level).ulp >= max(CUDA[name] + 0.5, METAL.get(name, 0))


def test_wide_functions() -> None:
    assert all(bound_of(name, FAST, "float64").ulp >= ulp for name, ulp in WIDE.items())


def _near_one(inside: float, ulp: float) -> Errors:
    """Return the errors of a logarithm: absolute between 1/2 and 2, in units elsewhere."""
    return lambda y, x: np.where((x >= 0.5) & (x <= 2), inside, ulp * units_of(y))


def _exponent(ulp: float, per_argument: float) -> Errors:
    return lambda y, x: (ulp + np.floor(np.abs(per_argument * x))) * units_of(y)


#: What stands behind CUDA's intrinsics.
CUDA_FAST: dict[str, Errors] = {
    "exp": _exponent(2.5, 1.173),
    "exp10": _exponent(2.5, 2.97),
    "log": _near_one(2.0**-21.41, 3.5),
    "log2": _near_one(2.0**-22, 2.5),
    "log10": _near_one(2.0**-24, 3.5),
    "sin": lambda y, x: np.full_like(x, 2.0**-21.41),
    "cos": lambda y, x: np.full_like(x, 2.0**-21.19),
    "tanh": lambda y, x: 2.0**-11 * np.abs(y),
    "div": lambda y, x, z: 2.5 * units_of(y),
}
_LOG, _LOG2, _EXP = _near_one(2.0**-21, 3), _near_one(2.0**-22, 2), _exponent(3, 2)


def _exp(x: Any) -> Any:
    return _EXP(np.exp(x), x)


def _rounding(y: Any) -> Any:
    return units_of(y) / 2


def _sqrt(y: Any, x: Any) -> Any:
    """x * rsqrt(x)"""
    return x * 2 * units_of(1 / y) + _rounding(y)


def _tanh(y: Any, x: Any) -> Any:
    """(t - 1) / (t + 1) with t = exp(2 x)"""
    t = np.exp(2 * x)
    return 2 / (t + 1) ** 2 * _exp(2 * x) + 2.5 * units_of(y) + (_rounding(t - 1) / (t + 1) + np.abs(y) * 2.0**-24)


def _acosh(y: Any, x: Any) -> Any:
    """log(x + sqrt(x * x - 1)); below the rounding of the square, the root is off by that of the rounding."""
    square, rest = _rounding(x * x), x * x - 1
    root = np.sqrt(rest + square) - np.sqrt(np.maximum(rest - square, 0)) + _sqrt(np.sqrt(rest), rest)
    total = x + np.sqrt(rest)
    return (root + _rounding(total)) / total + _LOG(y, total)


def _asinh(y: Any, x: Any) -> Any:
    """log(x + sqrt(x * x + 1))"""
    square = x * x + 1
    root, total = np.sqrt(square), x + np.sqrt(square)
    lost = (_rounding(square) + _rounding(x * x)) / (2 * root) + _sqrt(root, square) + _rounding(total)
    return lost / total + _LOG(y, total)


def _atanh(y: Any, x: Any) -> Any:
    """log((1 + x) / (1 - x)) / 2"""
    q = (1 + x) / (1 - x)
    relative = _rounding(1 + x) / (1 + x) + _rounding(1 - x) / (1 - x) + 2.5 * units_of(q) / q
    return (relative + _LOG(2 * y, q)) / 2


def _atan2(y: Any, a: Any, b: Any) -> Any:
    """atan(a / b), and pi added or taken off for a negative b"""
    q = np.abs(a / b)
    angle = np.arctan(q)
    far = np.where(b < 0, _rounding(y) + 2.0**-23.4, 0)
    return 2.5 * units_of(q) / (1 + q * q) + 5 * units_of(angle) + far


#: What stands behind MSL's fast functions, to first order where it states a composition.
METAL_FAST: dict[str, Errors] = {
    "div": lambda y, a, b: 2.5 * units_of(y),
    "rsqrt": lambda y, x: 2 * units_of(y),
    "sqrt": _sqrt,
    "exp": _EXP,
    "exp2": _EXP,
    "exp10": lambda y, x: (
        _EXP(y, x * np.log2(10)) + y * np.log(2) * np.abs(x * np.log2(10)) * (2.0**-24 + 2.0**-25.4)
    ),
    "log": _LOG,
    "log2": _LOG2,
    "log10": lambda y, x: _LOG2(np.log2(x), x) * np.log10(2) + np.abs(y) * 2.0**-25 + _rounding(y),
    "pow": lambda y, a, b: (
        _EXP(y, b * np.log2(a))
        + y * np.log(2) * (np.abs(b) * _LOG2(np.log2(a), a) + _rounding(b * np.log2(a)))
    ),
    "sin": lambda y, x: np.full_like(x, 2.0**-13),
    "cos": lambda y, x: np.full_like(x, 2.0**-13),
    "tan": lambda y, x: (1 + np.abs(y)) * 2.0**-13 / np.cos(x) + 3 * units_of(y),
    "asin": lambda y, x: 5 * units_of(y),
    "acos": lambda y, x: 5 * units_of(y),
    "atan": lambda y, x: 5 * units_of(y),
    "atan2": _atan2,
    "sinh": lambda y, x: (_exp(x) + _exp(-x)) / 2 + _rounding(y),
    "cosh": lambda y, x: (_exp(x) + _exp(-x)) / 2 + _rounding(y),
    "tanh": _tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}  # fmt: skip


def _arguments(name: str) -> list[Any]:
    """Return float32 arguments in the range of a bound, of all sizes and near powers of two."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        sizes = 2.0 ** rng.uniform(-126, 126, 40000) * rng.choice([-1, 1], 40000)
        x = np.concatenate([sizes, rng.uniform(-90, 90, 40000), rng.uniform(-2, 2, 40000)])
        x = np.concatenate([x, 1 + 2.0 ** -rng.uniform(0, 23, 9000), -1 + 2.0 ** -rng.uniform(0, 23, 9000)])
        # Results next to powers of two, where units change.
        powers = 2.0 ** rng.integers(-120, 120, 9000) * (1 + rng.uniform(-1, 1, 9000) * 2.0**-12)
        x = np.concatenate([x, powers, np.log(powers), np.arcsinh(powers), np.log2(powers)])
    x = x.astype(np.float32).astype(np.float64)
    if name == "pow":
        return [np.abs(x), rng.permutation(np.clip(x, -90, 90)).astype(np.float32).astype(np.float64)]
    return [x, rng.permutation(x)] if name in ("div", "atan2") else [x]


TABLES = {"CUDA": CUDA_FAST, "Metal": METAL_FAST}


@pytest.mark.parametrize(("vendor", "name"), [(vendor, name) for vendor, table in TABLES.items() for name in table])
@np.errstate(all="ignore")
def test_fast_functions(vendor: str, name: str) -> None:
    given = _arguments(name)
    exact = given[0] / given[1] if name == "div" else np.asarray(FUNCTIONS[name](*given), np.float64)
    normal = np.isfinite(exact) & (np.abs(exact) > 2.0**-120) & (np.abs(exact) < 2.0**126)
    allowed = bound_of(name, FAST, "float32").allowed(exact, given)
    stated = TABLES[vendor][name](exact, *given)
    compared = normal & np.isfinite(stated) & np.isfinite(allowed)
    assert compared.sum() > 5000
    ratios = np.where(compared, stated / np.where(allowed > 0, allowed, 1), 0)
    at = int(np.argmax(ratios))
    assert ratios[at] <= 1 + 1e-9, (ratios[at], [float(g[at]) for g in given], stated[at] / units_of(exact[at]))
