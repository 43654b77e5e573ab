"""``T.ieee_*``: the exact result as a fraction, rounded once by the name's mode."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tile_core.compat.types import Array

__all__ = ["FUNCTIONS"]

_PLAIN: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "fma": lambda a, b, c: a * b + c,
    "fdiv": lambda a, b: a / b, "frcp": lambda a: type(a)(1) / a, "fsqrt": np.sqrt,
    "frsqrt": lambda a: type(a)(1) / np.sqrt(a),
}  # fmt: skip
#: Operations that NumPy rounds to nearest.
_NEAREST: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "fdiv": np.divide, "fsqrt": np.sqrt,
}  # fmt: skip
_ARITY = {"fma": 3, "frcp": 1, "fsqrt": 1, "frsqrt": 1}


def _rounded(op: str, mode: str, kind: type[np.floating], *x: float) -> float:
    """Return the operation's value in a float type, as a Python float."""
    plain = _PLAIN[op](*(kind(v) for v in x))
    root, value = op in ("fsqrt", "frsqrt"), Fraction(1)
    divisor = x[-1] if op in ("fdiv", "frcp", "frsqrt") else 1.0
    if op == "fma" and math.isfinite(x[0]) and math.isfinite(x[1]) and not math.isfinite(x[2]):
        return x[2]
    if not all(map(math.isfinite, x)) or divisor == 0 or (root and x[0] <= 0):
        return float(plain)
    exact = [Fraction(v) for v in x]
    if root:
        below = _root(exact[0] if op == "fsqrt" else 1 / exact[0])
    else:
        value = _PLAIN[op](*exact) if op != "frcp" else 1 / exact[0]
        if value == 0:
            same = op in ("mul", "fdiv") or (math.copysign(1, plain) < 0 and mode == "rn")
            return float(plain) if same else -0.0 if mode == "rd" and _cancels(op, x) else float(plain)
        if value < 0:  # by symmetry
            mode = {"ru": "rd", "rd": "ru"}.get(mode, mode)
        below = functools.partial(_compare, abs(value))
    most = float(np.finfo(kind).max)
    near = float(plain) if root else float(min(abs(value), Fraction(most)))
    size = _nearest(below, kind, mode, min(near, most))
    return size if root or value > 0 else -size


def _cancels(op: str, x: tuple[float, ...]) -> bool:
    """Whether a sum of zero has terms of opposite signs."""
    first = x[0] * x[1] if op == "fma" else x[0]
    last = -x[-1] if op == "sub" else x[-1]
    return first != 0 or last != 0 or math.copysign(1, first) != math.copysign(1, last)


def _compare(value: Fraction, candidate: Fraction) -> int:
    return (candidate > value) - (candidate < value)


def _root(square: Fraction) -> Callable[[Fraction], int]:
    return lambda candidate: (candidate**2 > square) - (candidate**2 < square)


def _nearest(side: Callable[[Fraction], int], kind: type[np.floating], mode: str, guess: float) -> float:
    """Return the float on the wanted side of a number; ``side`` compares a candidate."""
    low = kind(guess)
    while side(Fraction(float(low))) > 0:
        low = np.nextafter(low, kind(0))
    while True:
        high = np.nextafter(low, kind(math.inf))
        if not math.isfinite(high) or side(Fraction(float(high))) > 0:
            break
        low = high
    if side(Fraction(float(low))) == 0 or mode in ("rd", "rz"):
        return float(low)
    if mode == "ru":
        return float(high)
    neighbour = high if math.isfinite(high) else np.nextafter(low, kind(0))
    step = abs(Fraction(float(neighbour)) - Fraction(float(low)))
    middle = side(Fraction(float(low)) + step / 2)
    even = int(np.array(low).view(f"u{np.dtype(kind).itemsize}")) % 2 == 0
    return float(low if middle > 0 or (middle == 0 and even) else high)


def _each(op: str, mode: str, kind: type[np.floating]) -> Callable[..., Array]:
    if mode == "rn" and op in _NEAREST:

        def nearest(*x: Array) -> Array:
            with np.errstate(all="ignore"):
                return np.asarray(_NEAREST[op](*(v.astype(kind) for v in x))).astype(np.float64)

        return nearest
    ufunc = np.frompyfunc(functools.partial(_rounded, op, mode, kind), _ARITY.get(op, 2), 1)

    def apply(*x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(*x)).astype(np.float64)

    return apply


FUNCTIONS: dict[str, Callable[..., Array]] = {
    f"ieee_{op}_{mode}_{name}": _each(op, mode, kind)
    for op in _PLAIN
    for mode in ("rn", "rz", "ru", "rd")
    for name, kind in (("float32", np.float32), ("float64", np.float64))
}
