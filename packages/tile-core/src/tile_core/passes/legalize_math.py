"""Replace calls of elementary functions that would run per lane by vectorizable expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Call, Expr
from tile_core.numerics import inverse, math, standard_math
from tile_core.numerics.build import cast, type_name
from tile_core.numerics.levels import STANDARD, STRICT
from tile_core.numerics.minmax import max_expr, min_expr
from tile_core.numerics.regions import region_of
from tile_core.numerics.rounded import ROUNDED

__all__ = ["LOOSE", "MATH", "WIDE", "legalize_math"]

Builder = Callable[..., Expr]

MATH: Mapping[str, Builder] = {
    **{
        f"tirx.{name}": getattr(math, name)
        for name in ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sin", "cos",
                     "tan", "rsqrt", "pow")
    },
    **{
        f"tirx.{name}": getattr(inverse, name)
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "expm1", "fmod",
                     "hypot", "sinh")
    },
    "prim.log2": math.log2,
    "tirx.max": max_expr,
    "tirx.min": min_expr,
}  # fmt: skip
"""Expression builders by the name of the operator that they replace; ``tirx.max`` and ``min`` denote the nodes."""

LOOSE: Mapping[str, Builder] = {
    f"tirx.{name}": getattr(standard_math, name) for name in ("erf", "exp", "exp2", "sigmoid", "tanh")
}
"""Builders that levels other than ``"strict"`` prefer."""

WIDE: Mapping[str, Builder] = {
    "tirx.tanh": math.tanh_wide,
    "tirx.exp10": math.exp10_wide,
    **{
        f"tirx.{name}": inverse.library(name)
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "expm1", "fmod",
                     "hypot", "log1p", "sinh", "tan")
    },
}  # fmt: skip
"""Builders for float64, where TVM's own expressions are no better than float32."""


def legalize_math(
    func: Expr,
    table: Mapping[str, Builder] = MATH,
    rounded: Mapping[str, Builder] = ROUNDED,
    level: str = STANDARD,
    loose: Mapping[str, Builder] = LOOSE,
) -> Expr:
    """Replace elementary functions, ``Max`` and ``Min`` on float32 and float16 by the expressions of ``table``.

    float16 goes through float32 (and is rounded once). float64 stays with the target's library, except for ``WIDE``.
    bfloat16 must have been lowered before (``legalize_floats``).

    Parameters
    ----------
    func
        A PrimFunc of scalar statements.
    table
        Builders by operator name; a target that has an exact, vectorised function of its own leaves it out.
    rounded
        Builders of operations that name their rounding; empty for a target whose text prints them.
    level
        Level of numerics outside of regions.
    loose
        Builders that levels other than ``"strict"`` prefer.

    Returns
    -------
    PrimFunc
        ``func`` itself if it calls none of them.
    """

    def on_call(e: Call) -> Expr:
        name = getattr(e.op, "name", "")
        if name in rounded:
            return rounded[name](*e.args)
        if name in WIDE and type_name(e) == "float64":
            return WIDE[name](*e.args)
        builder = table.get(name)
        if builder is not None and (region_of(e) or level) != STRICT:
            builder = loose.get(name, builder)
        if builder is None or type_name(e) not in ("float32", "float16"):
            return e
        return cast(type_name(e), builder(*[cast("float32", a) for a in e.args]))

    def on_extremum(e: Expr) -> Expr:
        builder = table.get("tirx.max" if isinstance(e, tirx.Max) else "tirx.min")
        return builder(e.a, e.b) if builder is not None and type_name(e).startswith("float") else e

    entries = [(ir.Call, on_call), ((tirx.Max, tirx.Min), on_extremum)]
    body = tvm_ffi.structural_map(func.body, entries)
    return func if body.same_as(func.body) else func.with_body(body)
