"""Scalar arithmetic for every target: cases that machines leave undefined.

Rewriters run in this order: conversions while floats have their own types, divisions before passes that hide
arithmetic, wrapping before passes that add integer arithmetic of their own, which does not overflow, and extremes
before floats: what is written out for bfloat16 is computed in float32. ``require_defined`` holds after all of them.
"""

from __future__ import annotations

from tile_core.analysis.ranges import sizes_of
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import InternalError
from tile_core.numerics.build import type_name
from tile_core.numerics.extremes import expand_extremes
from tile_core.numerics.truncation import limits_of
from tile_core.passes import wrapping
from tile_core.passes.conversions import total_conversions
from tile_core.passes.divisions import total_divisions
from tile_core.passes.spine import Plan


def defined(
    plan: Plan, own: frozenset[tuple[str, str]] = frozenset(), *, sized: bool = False, copies: bool = False,
    extremes: bool = True, flushed: bool = False,
) -> Stmt:  # fmt: skip
    """Return the body of a plan with scalar arithmetic that is defined for all operands.

    Parameters
    ----------
    own
        Pairs of element types whose conversion by the target already is so, see ``total_conversions``.
    sized
        Whether symbolic extents are known not to be negative.
    copies
        Whether a later pass copies the dividends of floor divisions.
    extremes
        Whether the maximum and minimum of floats become comparisons and selects.
    flushed
        Whether the machine's comparisons may take subnormal numbers for zeros.
    """
    body = total_conversions(plan.body, own)
    body = total_divisions(body, sizes_of(plan.params) if sized else (), copies)
    body = wrapping.hide(body, plan.params)
    return expand_extremes(body, flushed) if extremes else body


#: Nodes that ``require_defined`` looks at.
PARTIAL = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.LShift, tirx.RShift, tirx.Cast)


def require_defined(e: Expr) -> None:
    """Refuse an operation on a constant whose result compilers, LLVM included, leave undefined.

    Parameters
    ----------
    e
        One of the nodes ``PARTIAL``, after the last pass.

    Raises
    ------
    InternalError
        If an integer is divided by 0 or shifted by its width, or a float does not fit into an integer type.
    """
    kind = type_name(e)
    if not kind.startswith(("int", "uint")):
        return
    if type(e) is tirx.Cast:
        value, (low, high) = _constant(e.value), limits_of(kind)
        holds = not isinstance(value, float) or low - 1 < value < high + 1
    elif type(e) in (tirx.LShift, tirx.RShift):
        count = _constant(e.b)
        holds = count is None or 0 <= count < DTYPES[kind].bits
    else:
        holds = _constant(e.b) != 0
    if not holds:
        raise InternalError(stage="code generation", detail=f"{e} has no result in the languages of compilers")


def _constant(e: Expr) -> float | None:
    value = e.value if type(e) is tirx.Broadcast else e
    if type(value) is tirx.IntImm:
        return int(value.value)
    return float(value.value) if type(value) is tirx.FloatImm else None
