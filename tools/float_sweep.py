"""Sweep functions of one float32 over values, and compare them with the table of bounds.

The exact results are those of NumPy in float64, whose errors are far below a unit in the last place of float32.
"""

from __future__ import annotations

import numpy as np

from tile_core.numerics.bounds import BOUNDS, EXPANDED, LEAST, ErrorBound, bound_of
from tile_core.numerics.levels import FAST
from tile_core.records import dataclass
from tile_core.reference.functions import FUNCTIONS
from tile_core.testing.case import output, tensor
from tile_core.testing.data import Array
from tile_core.testing.run import Session, load

__all__ = ["NAMES", "Worst", "mantissas", "part_of_all", "swept", "worst"]

#: Functions of one float: of the table, and exact ones.
NAMES = (
    *(name for name in BOUNDS if name not in ("add", "sub", "mul", "div", "pow", "atan2", "hypot")),
    "floor", "ceil", "trunc", "rint", "nearbyint", "round", "abs",
)  # fmt: skip
_BLOCK = 1024
_TEXT = """import tile_core.language as T


@T.prim_func
def main(X: T.Tensor(({count},), "float32"), Y: T.Tensor(({count},), "float32")):
    with T.Kernel(T.ceildiv({count}, {block}), threads=128) as bx:
        for i in T.Parallel({block}):
            Y[bx * {block} + i] = T.{name}(X[bx * {block} + i])
"""
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
_NEAREST = float(np.finfo(np.float32).max) * (1 + 2.0**-25)


@dataclass(frozen=True)
class Worst:
    """The largest error of a sweep.

    Attributes
    ----------
    ratio
        The error divided by the bound; above 1 the bound is broken.
    argument, found, exact
        Where, and the results there.
    """

    ratio: float
    argument: float
    found: float
    exact: float


def part_of_all(part: int, parts: int) -> Array:
    """Return one of ``parts`` equal parts of all float32 values."""
    return np.arange(part % parts, 1 << 32, parts, dtype=np.uint32).view(np.float32)


def mantissas(part: int, bits: int = 12) -> Array:
    """Return values with all signs and exponents, and ``2**bits`` equidistant mantissas; ``part`` is their offset."""
    step = 1 << (23 - bits)
    return np.arange(part % step, 1 << 32, step, dtype=np.uint32).view(np.float32)


def swept(name: str, x: Array, target: str, runtime: str | None, level: str, expanded: bool = False) -> Worst:
    """Return the largest error of a function on a target, as ``worst`` does.

    Special values are included.
    """
    x = np.concatenate([x, np.array(_SPECIAL, np.float32)])
    session = Session(target, runtime, options={"numerics": level})
    kernel = session.compile(load(_TEXT.format(name=name, count=len(x), block=_BLOCK), name))
    arrays = {"X": x, "Y": np.full(len(x), np.nan, np.float32)}
    session.call(kernel, [tensor("X", "float32", len(x)), output("Y", "float32", len(x))], arrays)
    return worst(name, x, arrays["Y"], level, expanded)


def worst(name: str, x: Array, found: Array, level: str, expanded: bool = False) -> Worst:
    """Return the largest error of results.

    Parameters
    ----------
    name
        One of ``NAMES``.
    x, found
        Arguments and results as float32.
    level
        Level of numerics, whose bound holds.
    expanded
        Whether the core expands the function, so that the tighter bound of ``EXPANDED`` holds.
    """
    bound = bound_of(name, level, "float32") or ErrorBound(0)
    if expanded and name in EXPANDED:
        bound = ErrorBound(min(EXPANDED[name], bound.ulp if level != FAST else EXPANDED[name]))
    with np.errstate(all="ignore"):
        exact, ratios = _ratios(name, x, found, bound, level)
        if level == FAST:
            tiny = np.abs(exact) < LEAST * (1 + 2.0**-20)
            ratios = np.where(tiny & (found == 0), 0.0, ratios)
            small = (np.abs(x) < LEAST) & (x != 0)
            ratios[small] = np.minimum(ratios[small], _ratios(name, x[small] * 0, found[small], bound, level)[1])
    at = int(np.argmax(ratios))
    return Worst(float(ratios[at]), float(x[at]), float(found[at]), float(exact[at]))


def _ratios(name: str, x: Array, found: Array, bound: ErrorBound, level: str) -> tuple[Array, Array]:
    """Return exact results, and errors divided by the bound.

    They are infinite where a NaN, an infinity or a zero is another one.
    """
    wide, have = x.astype(np.float64), found.astype(np.float64)
    exact = np.asarray(FUNCTIONS["roundaway" if name == "round" else name](wide))
    allowed = bound.allowed(exact, [wide])
    error = np.abs(have - exact)
    ratios = np.where(error == 0, 0.0, error / np.where(allowed == 0, np.finfo(np.float64).tiny, allowed))
    overflow = np.isinf(have) & np.isfinite(exact) & (np.sign(have) == np.sign(exact))
    beyond = _NEAREST - np.abs(exact)
    ratios = np.where(overflow, np.where(beyond <= 0, 0.0, beyond / allowed), ratios)
    same = (have == exact) | (np.isnan(have) & np.isnan(exact))
    if level != FAST:
        same &= (np.signbit(have) == np.signbit(exact)) | (have != 0)
    special = ~np.isfinite(exact) | (np.isnan(have)) | ((exact == 0) & (bound.absolute == 0))
    ratios = np.where(special, np.where(same, 0.0, np.inf), ratios)
    return exact, np.where(np.isinf(allowed), 0.0, ratios)
