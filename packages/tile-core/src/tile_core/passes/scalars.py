"""Passes over scalar arithmetic for every target: cases that machines leave undefined.

They run in this order: conversions while floats have their own types, divisions before passes that hide arithmetic,
and wrapping before passes that add integer arithmetic of their own. ``require_defined`` holds after all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.analysis.ranges import sizes_of
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.errors import InternalError
from tile_core.numerics.build import type_name
from tile_core.numerics.extremes import expand_extremes
from tile_core.numerics.truncation import limits_of
from tile_core.passes import wrapping
from tile_core.passes.conversions import total_conversions
from tile_core.passes.divisions import total_divisions
from tile_core.passes.spine import Pass, Plan

if TYPE_CHECKING:
    from tile_core.context import Context


def conversions(own: frozenset[tuple[str, str]] = frozenset()) -> Pass:
    """Return the pass that defines conversions to integers for all floats.

    Parameters
    ----------
    own
        Pairs of element types whose conversion by the target already is so, see ``total_conversions``.
    """

    def run(plan: Plan, ctx: Context) -> Plan:
        return plan.replace(body=total_conversions(plan.body, own))

    return Pass("conversions", run, "while floats have their own types, whose ranges are known")


def divisions(*, sized: bool = False, copies: bool = False) -> Pass:
    """Return the pass that defines divisions for all operands.

    Parameters
    ----------
    sized
        Whether symbolic extents are known not to be negative.
    copies
        Whether a later pass copies the dividends of floor divisions.
    """

    def run(plan: Plan, ctx: Context) -> Plan:
        return plan.replace(body=total_divisions(plan.body, sizes_of(plan.params) if sized else (), copies))

    return Pass("divisions", run, "before passes that hide arithmetic")


def wrap() -> Pass:
    """Return the pass that makes the wrapping of integer arithmetic explicit."""

    def run(plan: Plan, ctx: Context) -> Plan:
        return plan.replace(body=wrapping.hide(plan.body, plan.params))

    return Pass("wrap", run, "before passes that add integer arithmetic of their own, which does not overflow")


def extremes(*, flushed: bool = False) -> Pass:
    """Return the pass that lowers the maximum and minimum of floats to comparisons and selects.

    Parameters
    ----------
    flushed
        Whether the machine's comparisons may take subnormal numbers for zeros.
    """

    def run(plan: Plan, ctx: Context) -> Plan:
        return plan.replace(body=expand_extremes(plan.body, flushed))

    return Pass("extremes", run, "before floats: what is written out for bfloat16 is computed in float32")


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
    if isinstance(e, tirx.Cast):
        value, (low, high) = _constant(e.value), limits_of(kind)
        holds = not isinstance(value, float) or low - 1 < value < high + 1
    elif isinstance(e, (tirx.LShift, tirx.RShift)):
        count = _constant(e.b)
        holds = count is None or 0 <= count < DTYPES[kind].bits
    else:
        holds = _constant(e.b) != 0
    if not holds:
        raise InternalError(stage="code generation", detail=f"{e} has no result in the languages of compilers")


def _constant(e: Expr) -> float | None:
    value = e.value if isinstance(e, tirx.Broadcast) else e
    if isinstance(value, tirx.IntImm):
        return int(value.value)
    return float(value.value) if isinstance(value, tirx.FloatImm) else None
