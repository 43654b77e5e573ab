"""``max`` and ``min`` of floats as single operators, for targets that have them as instructions.

TVM's own ``Max`` and ``Min`` ignore NaN, so the operators here are opaque calls. Their rules are
those of ``tile_core.numerics.rules``. A target without such instructions expands them (``expand_extremes``).
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr
from tile_core.numerics.build import type_name
from tile_core.numerics.minmax import max_expr, min_expr

__all__ = ["expand_extremes", "extreme", "extreme_of", "float_extreme", "loose_extreme"]

_EXPRESSIONS: dict[str, Callable[[Expr, Expr, bool, bool], Expr]] = {"max": max_expr, "min": min_expr}
_NODES = {"max": tirx.Max, "min": tirx.Min}
_NAMES = {f"{nodes.FLOAT_PREFIX}{kind}{suffix}": (kind, bool(suffix)) for kind in _NODES for suffix in ("", "_nan")}


def extreme(kind: str, a: Expr, b: Expr, nan_propagate: bool = False) -> Expr:
    """Return the ``"max"`` or ``"min"`` of two values of one type, integers or floats."""
    if not type_name(a).startswith(("float", "bfloat")):
        return _NODES[kind](a, b)
    return float_extreme(kind, a, b, nan_propagate)


def float_extreme(kind: str, a: Expr, b: Expr, nan_propagate: bool = False) -> Call:
    """Return a call of ``tile.float_max`` or ``min``; with ``_nan`` a NaN wins."""
    return ir.Call(
        nodes.register_scalar_op(f"{nodes.FLOAT_PREFIX}{kind}{'_nan' if nan_propagate else ''}"), [a, b], ret_ty=a.ty
    )


def loose_extreme(kind: str, a: Expr, b: Expr) -> Call:
    """A call of the target's own larger or smaller of two float32 (``Capabilities.loose_extremes``).

    A NaN is left out. Which of two zeros, or of a zero and a subnormal number or two of those, is given, is open; so is
    whether a subnormal number is given as zero.
    """
    return ir.Call(nodes.register_scalar_op(f"{nodes.FLOAT_PREFIX}{kind}_loose"), [a, b], ret_ty=a.ty)


def extreme_of(e: Expr) -> tuple[str, bool] | None:
    """Return the kind of such a call and whether NaN wins, else ``None``."""
    return _NAMES.get(nodes.operator_name(e))


def expand_extremes(body: Stmt, flushed: bool = False) -> Stmt:
    """Return the statement with such calls as comparisons and selects; ``flushed`` as in ``max_expr``."""

    def expand(e: Call) -> Expr:
        found = extreme_of(e)
        return e if found is None else _EXPRESSIONS[found[0]](e.args[0], e.args[1], found[1], flushed)

    return map_expr(body, expand, ir.Call)
